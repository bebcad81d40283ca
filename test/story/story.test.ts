// Report views, metrics and answers by value. The story keeps its own books, and every column of every report view and
// every sample of every metric must agree with them. A view, column or metric without an expectation fails here.
import t from "tap";
import { createChecker } from "../../src/worker/tasks/check.ts";
import { createLog } from "../../src/common/log.ts";
import { scrape } from "../support/scrape.ts";
import { expectBatch, expectFeed, expectQuery, expectStatement, readTimes } from "./expected/answers.ts";
import { compareFiles } from "./expected/files.ts";
import { compareView, expectAll, openReader } from "./expected/views.ts";
import { expectMetrics, readSamples, type Sample } from "./expected/metrics.ts";
import { keys } from "./tenants.ts";
import { tellStory, type Story } from "./story.ts";

let story: Story;
t.before(async () => {
  story = await tellStory(t);
});

const sorted = (samples: Iterable<[string, Sample]>) =>
  Object.fromEntries([...samples].toSorted(([one], [other]) => (one < other ? -1 : 1)));

t.test("Each metric has the figure of the story", async (t) => {
  const { answer: seen, at } = await story.teller.during(() => scrape(story.metrics));
  const expected = expectMetrics(story, at);
  t.strictSame(sorted(Object.entries(readSamples(seen, expected))), sorted(expected));
});

t.test("Each column of each report view has the value of the story", async (t) => {
  const { session, views } = await openReader(t, story);
  const expected = expectAll(story);
  t.strictSame(Object.keys(expected).toSorted(), [...views.keys()], "every view has an expectation");
  for (const [view, columns] of views) {
    await compareView(t, session, view, columns, expected[view]!);
    t.equal(expected[view]!.length > 0, !["invariants", "stuck_work"].includes(view), `report.${view} has rows`);
  }
});

t.test("Each line of each statement's files has the figures of the story", (t) => {
  const finished = story.books.statements.filter(({ files }) => files !== null);
  t.equal(finished.length, 3);
  for (const statement of finished) compareFiles(t, statement);
  t.end();
});

t.test("Each answer about a coupon, a batch, a feed or a statement has the values of the story", async (t) => {
  const { books, service } = story;
  const compare = (seen: unknown, wanted: unknown, what: string) => t.strictSame(readTimes(seen, wanted), wanted, what);
  for (const coupon of books.coupons.filter(({ code }) => code !== "")) {
    const { till } = keys[coupon.batch.tenant.variant];
    const { json } = await service.as(till).post("/v1/coupons/query", { coupon: coupon.code, merchant: "mch_kiosk" });
    compare(json.coupon, expectQuery(story, coupon), `query of ${coupon.batch.template} ${coupon.number}`);
  }
  for (const batch of books.batches) {
    const { json } = await service.as(keys[batch.tenant.variant].maker).get(`/v1/batches/${batch.id}`);
    compare(json.batch, expectBatch(batch), `batch of ${batch.template}`);
  }
  for (const [tenant, party] of [
    [books.tenants[0]!, null],
    [books.tenants[1]!, "pty_one"],
  ] as const) {
    const by = service.as(keys[tenant.variant].maker);
    const { json } = await by.get("/v1/events?limit=1000");
    compare(json.events, expectFeed(story, tenant, party), `feed of ${tenant.id}`);
    const list = (await by.get("/v1/reconciliations")).json.reconciliations;
    const finished = books.statements.filter((one) => one.tenant === tenant && one.files !== null);
    compare(list, finished.map(expectStatement), `statements of ${tenant.id}`);
  }
});

t.test("The metrics of the self-check count the violations of each invariant", async (t) => {
  const { teller, metrics, observer, service } = story;
  const check = createChecker({
    address: service.address,
    role: "coupon_worker",
    log: createLog("silent"),
    stopping: new AbortController().signal,
    onChecked: observer.checked,
  });
  const laws = async () => [...(await scrape(metrics))].filter(([name]) => name.startsWith("coupon_law"));
  t.strictSame(await laws(), [], "nothing before the first check");
  const change = (to: string) =>
    teller.psql.rows(`update core.delivery set parked_at = ${to} where attempt_count = 10`);
  await change("null");
  const { at } = await teller.during(check);
  const [broken, ...others] = await laws();
  const expected = { 'coupon_law_broken_rows{law="delivery is parked after 10 attempts"}': 1, coupon_laws_broken: 1 };
  const { coupon_laws_checked_timestamp_seconds: checkedAt, ...counts } = Object.fromEntries([broken!, ...others]);
  t.strictSame(counts, expected);
  t.ok(checkedAt! >= at.from - 0.001 && checkedAt! <= at.to + 0.001);
  await change("now()");
});
