// Business days of owners whose books are at different days, although their rows have the same keys: each owner's
// entries, days, statements and files are its own.
import t, { type Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import { daySeconds, setZone, zoneOf } from "../support/business-days.ts";
import { findBrokenInvariants } from "../support/inspect.ts";
import { credential, party, template } from "../support/tenants.ts";
import { pick } from "./books.ts";
import { closeDay, enterFinished, sequence } from "./days.ts";
import { addTwins, tellStory } from "./story.ts";
import { grant, type Teller } from "./teller.ts";
import { findChanges, ownChanges } from "./twin.ts";
import { openReader } from "./reports.ts";

let teller: Teller;
let yesterday: string;
let dates: [today: string, tomorrow: string];
t.before(async () => {
  teller = await tellStory(t);
  await addTwins(teller);
  const { calendar, owners } = teller;
  yesterday = calendar.dateOf(owners[0]!, 0);
  dates = [calendar.dateOf(owners[0]!), calendar.dateOf(owners[0]!, 2)];
});

/** Moves the clock of a party: 0 is yesterday. */
const isOn = (party: string, day: number) =>
  setZone(teller.world, party, zoneOf(teller.calendar.noon + day * daySeconds));

async function compareViews(t: Test, ...views: string[]): Promise<void> {
  const { compareView } = await openReader(t, teller);
  for (const view of views) await compareView(t, view);
}

async function listStatements(accessKey: string): Promise<[string, string][]> {
  const { json } = await teller.world.as(accessKey).get(`/v1/reconciliations?cursor=${yesterday}`);
  return json.reconciliations.map((one: any) => [one.business_date, one.distributor_party_id]);
}

t.test("A day is closed and finished for its own distributor", async (t) => {
  const owner = teller.owners[6]!;
  const lines = "statement_line -0 +2, store_line -0 +2, batch_line -0 +1";
  const closed = `ledger_book … -1 +1, party -1 +1, statement -0 +1, ${lines}, event … -0 +1`;
  t.strictSame(await findChanges(teller.world.owner, () => closeDay({ teller, owner })), ownChanges(owner, closed));
  t.strictSame(await findBrokenInvariants(teller.world.owner), [], "although another day of its tenant is open");
});

t.test("An entry is posted to the open day of its own distributor, under the next number of that day", async (t) => {
  for (const owner of teller.owners)
    await grant({ teller, owner, key: owner.shop }, "redeem", owner.coupons.toRedeem!, { orderMinor: 2_400 });
  await sequence(teller);
  await compareViews(t, "posting", "statement", "statement_line", "event");
});

t.test("In Variant A the list of a tenant waits for the distributors of this tenant", async (t) => {
  const { owners } = teller;
  const [one, two, twin, other] = [owners[0]!, owners[1]!, owners[4]!, owners[5]!];
  const both = ["pty_d1", "pty_d2"].map((party) => [dates[0], party]);
  const lists = async () => [await listStatements(one.maker), await listStatements(twin.maker)];
  for (const owner of [one, two]) await closeDay({ teller, owner });
  t.strictSame(await lists(), [both, []]);
  await closeDay({ teller, owner: twin }, { isFinished: false });
  t.strictSame(await lists(), [both, []], "closed, not ready");
  const { at } = await teller.during(teller.world.steps.finishStatements);
  enterFinished({ teller, owner: twin }, teller.books.of("statement").at(-1)!, at);
  t.strictSame(await lists(), [both, []], "one of two");
  await closeDay({ teller, owner: other });
  t.strictSame(await lists(), [both, both]);
});

t.test("A statement waits for the earlier days of its own distributor only", async (t) => {
  const { owners, world, books } = teller;
  // In the twin, the first one's day of tomorrow is over too. The party has the same number as one that waits.
  const [one, two, twin, other] = [owners[2]!, owners[3]!, owners[6]!, owners[7]!];
  await grant({ teller, owner: other, key: other.shop }, "redeem", other.coupons.spare!, { orderMinor: 2_400 });
  for (const owner of [one, two, other, twin]) await closeDay({ teller, owner }, { isFinished: false });
  const waiting = books.of("statement").slice(-4);
  const numberOf = "(select party_id from core.party where tenant_id = $1 and external_id = $2)";
  const tomorrow = [twin.number, twin.distributorParty, waiting[3]!.business_date];
  await world.owner.rows(`select jobs.summarize_statement($1, ${numberOf}, $3::text::date)`, tomorrow);
  const finish = `select jobs.finish_statement($1, ${numberOf}, $3::text::date, $4, 1, 'x', 1, 1, 'y') as is_done`;
  const entries = Number(waiting[3]!.entry_count);
  const { answer, at } = await teller.during(() => world.owner.rows<any>(finish, [...tomorrow, entries]));
  t.equal(answer[0].is_done, true, "tomorrow is finished although others wait for today");
  enterFinished({ teller, owner: twin }, waiting[3]!, at);
  const due = await world.owner.rows("select business_date::text as date from jobs.list_due_statements(100)");
  t.strictSame(
    [...due],
    [0, 1, 2].map(() => ({ date: dates[0] })),
  );
  const { at: later } = await teller.during(world.steps.finishStatements);
  for (const [index, owner] of [one, two, other].entries()) enterFinished({ teller, owner }, waiting[index]!, later);
  await compareViews(t, "statement", "statement_line", "posting");
  t.strictSame(world.steps.log, []);
});

t.test("Administrators list the ready statements by tenant, distributor and date, page by page", async (t) => {
  const { world, books } = teller;
  const session = openSession(world.address, { name: "coupon test", role: "coupon_admin" });
  t.teardown(() => session.end());
  // An index would return them in order.
  await session.run("set enable_indexscan = off; set enable_bitmapscan = off");
  const page = "select *, business_date::text as day from admin.list_statements($1, $2, $3::text::date, 1)";
  const listed: any[] = [];
  let after = [0, 0, "2000-01-01"];
  for (let count = 0; count <= books.of("statement").length; count += 1)
    for (const row of await session.rows<any>(page, after)) {
      listed.push(row);
      after = [row.tenant_id, row.distributor_id, row.day];
    }
  const order = (row: any) => row.tenant_id * 1e6 + row.distributor_id * 1e3 + dates.indexOf(row.day);
  const inOrder = listed.toSorted((one, other) => order(one) - order(other));
  t.strictSame(listed, inOrder);
  const shown = listed.map((row) => [row.tenant, row.distributor, row.day, row.detail_rows, row.summary_rows]);
  const names = "tenant distributor business_date entry_count summary_rows";
  const ready = books.of("statement").map((row) => Object.values(pick(row, names)));
  t.strictSame(shown.map((row) => row.map(String)).sort(), ready.sort());
});

t.test("The book of a new tenant begins on its own day, and its only distributor need not be named", async (t) => {
  const { world } = teller;
  const parties = ["pty_one", "pty_west"].map((id) => party(id));
  const owned = { templates: [template("tpl_one", "pty_one")], credentials: [credential("ak_one")] };
  await world.apply({ tenants: [{ id: "ten_one", name: "one", variant: "A", parties, ...owned }] });
  await isOn("pty_one", 0);
  await isOn("pty_west", -1);
  const by = world.as("ak_one");
  await world.makeBatch(by, "tpl_one", 1);
  await world.steps.sequence();
  await isOn("pty_one", 1);
  await world.steps.close();
  const paths = ["detail", "summary"].map((kind) => `/v1/reconciliations/${yesterday}/${kind}`);
  const { reconciliations } = (await by.get("/v1/reconciliations")).json;
  const links = reconciliations.flatMap(({ files }: any) => files.map(({ href }: any) => href));
  t.strictSame(links, paths, "whatever others have closed");
  t.equal((await by.get(paths[0]!)).status, 200);
  t.equal((await by.get(paths[0]!.replace(yesterday, dates[0]))).status, 404);
});

t.test("Only in Variant A a new distributor's book begins after every date that its tenant has closed", async (t) => {
  const { world, owners } = teller;
  // Where it is still a day that the others have closed.
  await isOn("pty_p", 1);
  for (const { maker, template } of [owners[0]!, owners[2]!])
    await world.makeBatch(world.as(maker), template, 1, { distributor: "pty_p" });
  await world.steps.sequence();
  const opened = await world.owner.rows(
    `select t.external_id as tenant, b.open_on::text as day
     from core.ledger_book b join core.tenant t using (tenant_id)
     join core.party p using (tenant_id, party_id) where p.external_id = 'pty_p' order by 1`,
  );
  const [ofA, ofB] = [
    { tenant: "ten_a1", day: dates[1] },
    { tenant: "ten_b1", day: dates[0] },
  ];
  t.strictSame([...opened], [ofA, ofB]);
});
