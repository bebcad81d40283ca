// Right rows, right values: each column of each report view, each sample of each metric and each answer of each read
// must agree with the books of the story, for both sides of two tenants and their twins. A view, column, metric or read
// without an expectation fails here.
import t from "tap";
import { chooseCommand } from "../../src/command-line/command.ts";
import { webhooks } from "../../src/commands/webhooks.ts";
import { routes } from "../../src/http/routes/table.ts";
import type { Metrics } from "../../src/server/metrics-server.ts";
import { observeWork } from "../../src/worker/metrics.ts";
import { startReceiver } from "../support/receiver.ts";
import { openMetrics, openMetricsDatabase, scrape } from "../support/scrape.ts";
import { reads } from "./answers.ts";
import { compare, type Row } from "./books.ts";
import { readEvents, sequence } from "./days.ts";
import { voidCoupon } from "./lives.ts";
import { addToLines, answers, ask, compareAnswers, dateAfter, questions, stretchStory } from "./questions.ts";
import { addTwins, tellStory } from "./story.ts";
import { separateTimes, type Teller } from "./teller.ts";
import type { Owner } from "./tenants.ts";
import { leaveOldWork, leaveWork, tellDeliveries, tellRefusals } from "./troubles.ts";
import { enterDerived, expectMetrics, openReader } from "./reports.ts";

let teller: Teller;
let metrics: Metrics;
t.before(async () => {
  metrics = await openMetrics(t);
  const receiver = await startReceiver(t);
  teller = await tellStory(t, { http: true, url: receiver.url });
  const { world, books, owners } = teller;
  await world.owner.rows("delete from core.invariant_check");
  const observer = observeWork(metrics, openMetricsDatabase(t, world.address, "coupon_worker"));
  const [a1, , b1] = owners as [Owner, Owner, Owner];
  for (const owner of [a1, b1]) await tellRefusals(teller, owner);
  await leaveOldWork(teller);
  await tellDeliveries(t, teller, observer, receiver);
  const attempts = books.of("delivery_attempt").map(({ tenant, party, event }) => [`/${tenant}/${party}`, event]);
  const received = receiver.received.map(({ path, id }) => [path, id]);
  t.strictSame(received, attempts, "each event reaches its own subscriber");
  await leaveWork(t, teller);
  await addTwins(teller);
  // From here on the twins differ. The last two events are not sequenced.
  const voidOne = (owner: Owner, coupon: string) =>
    voidCoupon({ teller, owner, key: owner.shop }, owner.coupons[coupon]!, "at last");
  for (const owner of [a1, b1]) await voidOne(owner, "toVoid");
  await sequence(teller);
  for (const owner of [a1, b1]) await voidOne(owner, "spare");
  await separateTimes(teller);
  await readEvents(teller);
  enterDerived(teller);
});

t.test("Each metric of the background work has the figure of the story", async (t) => {
  const { answer, at } = await teller.during(() => scrape(metrics));
  const samples = [...answer].filter(([name]) => /^coupon_(?!build_)/.test(name));
  compare(t, Object.fromEntries(samples), expectMetrics(teller, at), "samples");
});

t.test("Each column of each report view has the value of the story, in each tenant", async (t) => {
  const { books, owners, psql } = teller;
  const { views, compareView } = await openReader(t, teller);
  const empty: string[] = [];
  for (const view of views) {
    empty.push(...(await compareView(t, view)));
    t.equal(books.of(view).length > 0, !["invariants", "stuck_work"].includes(view), `report.${view} has rows`);
  }
  const untold = /^(invariants|stuck_work|delivery_attempt\.test_event|webhook_health\.event_types)/;
  const forgotten = empty.filter((column) => !untold.test(column));
  t.strictSame(forgotten, [], "each column has a value in the story");

  // An ID is the same in a tenant and in its twin.
  const { id } = owners[0]!.coupons.reversed!;
  for (const view of ["coupon", "redemption", "ledger", "posting", "event"]) {
    const rows = books.of(view).filter(({ coupon }) => coupon === id);
    await compareView(t, view, rows, `find_${view}('${id}')`);
  }

  const described = await psql.rows<{ line: string }>(
    `select concat_ws(' ', e.event_seq, d.body ->> 2, case when e.batch_id is null then d.body ->> 3 end) as line
     from rules.event e, lateral (select rules.describe_event(e)::json as body) d where e.coupon_id is null`,
  );
  const lines = described.map(({ line }) => line).sort();
  const others = books.of("event").filter(({ coupon }) => !coupon);
  const expected = others.map((row) => `${row.event_seq} ${row.batch ?? `${row.business_date} ${row.party}`}`);
  t.strictSame(lines, expected.sort(), "an event names its own batch, or its own day and distributor");
});

t.test("Each question of docs/reports has the answer of the story, in each tenant that is no sandbox", async (t) => {
  const { psql, calendar } = teller;
  t.strictSame(Object.keys(questions).sort(), Object.keys(answers).sort(), "each question has an expectation");
  await psql.run("begin");
  for (const [name, text] of Object.entries(questions))
    t.strictSame(await ask(teller, name, text), [], `${name}: all tenants are sandboxes`);
  const books = await stretchStory(teller);
  const [row] = await psql.rows<{ today: string }>("select current_date::text as today");
  const firstDay = new Date(calendar.startedAt * 1_000).toISOString().slice(0, 10);
  // As it stands, and when the periods begin on the first day of the story or after it.
  for (const [name, text] of Object.entries(questions)) {
    for (const today of [row!.today, ...[2, 3, 7, 8, 30, 31, 32, 365].map((days) => dateAfter(firstDay, days))]) {
      const seen = await ask(teller, name, text.replaceAll("current_date", `date '${today}'`));
      compareAnswers(t, seen, answers[name]!(books, today), `${name} on ${today}`);
    }
    t.not((await ask(teller, name, text)).length, 0, `${name} as it stands`);
  }
  await psql.run("update core.statement_line set redemption_minor = redemption_minor + 7");
  const wrong = await ask(teller, "reconciliation", questions["reconciliation"]!);
  compareAnswers(t, wrong, addToLines(books, answers["reconciliation"]!(books, row!.today), 7), "wrong lines");
  await psql.run("rollback");
});

for (const [operation, check] of Object.entries(reads))
  t.test(`${operation} shows all that its caller owns, and nothing else`, async (t) => {
    for (const owner of teller.owners)
      await t.test(`${owner.tenant}, side ${owner.side}`, (t) => check(t, teller, owner));
  });

t.test("Every read has an expectation", (t) => {
  const names = routes.filter(({ isWrite }) => !isWrite).map(({ operation }) => operation);
  t.strictSame(Object.keys(reads).sort(), names.sort());
  t.end();
});

t.test("npm run webhooks shows one party of one tenant", async (t) => {
  const { world, books } = teller;
  for (const { tenant, distributorParty: party } of teller.owners) {
    const show = async (word: string, column: string) => {
      const { command, args } = chooseCommand(webhooks, [word, tenant, party, "--json"]);
      const output = await command.read(args)({ database: world.admin, keys: world.keys });
      return JSON.parse(output)
        .map((row: Row) => row[column])
        .sort();
    };
    const own = (view: string) => books.of(view).filter((row) => row.tenant === tenant && row.party === party);
    const eventsOf = (rows: Row[]) => rows.map(({ event }) => event).sort();
    t.strictSame(await show("parked", "event"), eventsOf(own("delivery").filter(({ status }) => status === "PARKED")));
    t.strictSame(await show("log", "event"), eventsOf(own("delivery_attempt")));
    t.strictSame(
      await show("status", "url"),
      own("webhook").map(({ full }) => full),
    );
  }
});
