// Business days of owners whose books are at different days, although their rows have the same keys.
import t from "tap";
import { openSession } from "../../../src/database/connect.ts";
import { daySeconds, noonOffset, setZone, zoneOf } from "../../support/business-days.ts";
import { postOk } from "../../support/client.ts";
import { findBrokenInvariants } from "../../support/inspect.ts";
import { startOwners, type Owners } from "../../support/start-owners.ts";
import { credential, merchant, party, template } from "../../support/tenants.ts";

let owners: Owners;
let tomorrow: string;
t.before(async () => {
  owners = await startOwners(t);
  tomorrow = new Date(Date.parse(owners.date) + daySeconds * 1000).toISOString().slice(0, 10);
});

// Ends the day of one distributor.
const endDay = (tenant: string, party: string, days = 1) =>
  owners.service.owner.rows(
    `update core.party p set time_zone = $3
     from core.tenant t where t.tenant_id = p.tenant_id and t.external_id = $1 and p.external_id = $2`,
    [tenant, party, zoneOf(noonOffset() + days * daySeconds)],
  );

async function listStatements(accessKey: string): Promise<[string, string][]> {
  const { json } = await owners.service.as(accessKey).get("/v1/reconciliations");
  return json.reconciliations.map((one: any) => [one.business_date, one.distributor_party_id]);
}

t.test("An entry is posted to the open day of its own distributor, under the next number of that day", async (t) => {
  const { service, books, stories, date } = owners;
  await endDay("ten_b2", "pty_d1");
  await books.close();
  t.strictSame(await findBrokenInvariants(service.owner), [], "the distributors of a tenant have different open days");
  for (const { shop, merchant, coupons } of stories) {
    const body = { request_id: `post ${merchant}`, merchant, coupon: coupons["to redeem"].code };
    await postOk(service.as(shop), "/v1/coupons/redeem", body);
  }
  await books.sequence();
  const rows = await service.owner.rows<any>(
    `select tenant, distributor, business_date::text, number from report.posting
     where number > 4 or business_date > $1::text::date`,
    [date],
  );
  const place = (tenant: string, party: string) =>
    `${tenant} ${party}` === "ten_b2 pty_d1" ? [tomorrow, 1] : [date, 5];
  t.strictSame(
    rows.map((row) => Object.values(row)).sort(),
    stories.map(({ tenant, distributorParty: one }) => [tenant, one, ...place(tenant, one)]).sort(),
  );
});

t.test("In Variant A the list of a tenant waits for the distributors of this tenant", async (t) => {
  const { service, books, date } = owners;
  const both = [
    [date, "pty_d1"],
    [date, "pty_d2"],
  ];
  for (const party of ["pty_d1", "pty_d2"]) await endDay("ten_a1", party);
  const closeOne = async () =>
    (await service.owner.rows<{ count: number }>("select jobs.close_days(1) as count"))[0]!.count;
  t.strictSame([await closeOne(), await closeOne(), await closeOne()], [1, 1, 0]);
  await books.close();
  t.strictSame([await listStatements("ak_a1_m1"), await listStatements("ak_a2_m1")], [both, []]);
  await endDay("ten_a2", "pty_d1");
  await books.sequence();
  await books.closer.closeDays();
  t.strictSame([await listStatements("ak_a1_m1"), await listStatements("ak_a2_m1")], [both, []], "closed, not ready");
  await books.close();
  t.strictSame([await listStatements("ak_a1_m1"), await listStatements("ak_a2_m1")], [both, []], "one of two");
  await endDay("ten_a2", "pty_d2");
  await books.close();
  t.strictSame([await listStatements("ak_a1_m1"), await listStatements("ak_a2_m1")], [both, both]);
  const counted = await service.owner.rows<any>(
    "select tenant, distributor, entry_count from report.statement where tenant like 'ten\\_a_' or tenant = 'ten_b2'",
  );
  t.strictSame(counted.map((row) => Object.values(row)).sort(), [
    ...["ten_a1", "ten_a2"].flatMap((one) => [1, 2].map((side) => [one, `pty_d${side}`, 5])),
    ["ten_b2", "pty_d1", 4],
  ]);
});

t.test("A statement waits for the earlier days of its own distributor only", async (t) => {
  const { service, books, stories, date } = owners;
  // In the twin, pty_d1 has the same number. Its day counts one entry less.
  const { shop, merchant, coupons } = stories.find(
    (one) => one.tenant === "ten_b2" && one.distributorParty === "pty_d2",
  )!;
  await postOk(service.as(shop), "/v1/coupons/redeem", { request_id: "more", merchant, coupon: coupons.issued.code });
  await books.sequence();
  await endDay("ten_b2", "pty_d1", 2);
  for (const [tenant, party] of [
    ["ten_b1", "pty_d1"],
    ["ten_b1", "pty_d2"],
    ["ten_b2", "pty_d2"],
  ] as const)
    await endDay(tenant, party);
  await books.sequence();
  await books.closer.closeDays();
  const waiting = await service.owner.rows<any>(
    "select tenant, distributor, business_date::text from report.statement where ready_at is null",
  );
  t.strictSame(waiting.map((row) => Object.values(row)).sort(), [
    ["ten_b1", "pty_d1", date],
    ["ten_b1", "pty_d2", date],
    ["ten_b2", "pty_d1", tomorrow],
    ["ten_b2", "pty_d2", date],
  ]);
  const ready = await service.admin.rows<any>(
    "select tenant, distributor, business_date::text from admin.list_statements(0, 0, '2000-01-01', 100)",
  );
  t.strictSame(ready.map((row) => Object.values(row)).sort(), [
    ...["ten_a1", "ten_a2"].flatMap((one) => [1, 2].map((side) => [one, `pty_d${side}`, date])),
    ["ten_b2", "pty_d1", date],
  ]);
  const ofTomorrow = "from core.statement s where s.ready_at is null and s.business_date = $1::text::date";
  await service.owner.rows(
    `select jobs.summarize_statement(s.tenant_id, s.distributor_id, s.business_date) ${ofTomorrow}`,
    [tomorrow],
  );
  const [done] = await service.owner.rows<{ done: boolean }>(
    `select jobs.finish_statement(s.tenant_id, s.distributor_id, s.business_date, s.entry_count, 1, 'x', 1, 1, 'y')
              as done ${ofTomorrow}`,
    [tomorrow],
  );
  t.equal(done!.done, true);
  await books.close();
  const summarized = await service.owner.rows<any>(
    `select tenant, distributor, (redemption_count + reversal_count)::int as entries from report.statement_line
     where tenant like 'ten\\_b_' and business_date = $1::text::date`,
    [date],
  );
  t.strictSame(summarized.map((row) => Object.values(row)).sort(), [
    ["ten_b1", "pty_d1", 5],
    ["ten_b1", "pty_d2", 5],
    ["ten_b2", "pty_d1", 4],
    ["ten_b2", "pty_d2", 6],
  ]);
  t.strictSame(books.errors, []);
});

t.test("The book of a new tenant begins on its own day, and its only distributor need not be named", async (t) => {
  const { service, books, date } = owners;
  const one = {
    id: "ten_one",
    name: "one",
    variant: "A",
    parties: [party("pty_one"), party("pty_west")],
    merchants: [merchant("mch_one", "pty_one")],
    templates: [template("tpl_one", "pty_one")],
    credentials: [credential("ak_one")],
  };
  await service.apply({ tenants: [one] });
  await setZone(service, "pty_one", zoneOf(noonOffset()));
  // It is yesterday there.
  await setZone(service, "pty_west", zoneOf(noonOffset() - daySeconds));
  await service.makeBatch(service.as("ak_one"), "tpl_one", 1);
  await books.sequence();
  const opened = await service.owner.rows<{ day: string }>(
    `select b.open_on::text as day from core.ledger_book b join core.tenant t using (tenant_id)
     where t.external_id = 'ten_one'`,
  );
  t.strictSame(
    opened.map(({ day }) => day),
    [date],
    "whatever days others have closed",
  );
  await endDay("ten_one", "pty_one");
  await books.close();
  t.strictSame(await listStatements("ak_one"), [[date, "pty_one"]]);
  const { json } = await service.as("ak_one").get("/v1/reconciliations");
  t.strictSame(
    json.reconciliations[0].files.map(({ href }: any) => href),
    [`/v1/reconciliations/${date}/detail`, `/v1/reconciliations/${date}/summary`],
  );
  for (const day of [date, tomorrow]) {
    const { status } = await service.as("ak_one").get(`/v1/reconciliations/${day}/detail`);
    t.equal(status, day === date ? 200 : 404);
  }
  t.strictSame(books.errors, []);
});

t.test("Only in Variant A a new distributor's book begins after every date that its tenant has closed", async (t) => {
  const { service, books, date } = owners;
  // Where it is still the day that the others have closed.
  await setZone(service, "pty_p", zoneOf(noonOffset()));
  for (const key of ["ak_a1_m1", "ak_b1_m1"]) {
    const body = { request_id: "new distributor", template: "tpl_1", total_count: 1, distributor: "pty_p" };
    const { batch } = await postOk(service.as(key), "/v1/batches", body);
    await service.mint();
    await postOk(service.as(key), "/v1/batches/allocate", { request_id: "release it", batch: batch.external_id });
  }
  await books.sequence();
  const opened = await service.owner.rows<{ tenant: string; day: string }>(
    `select t.external_id as tenant, b.open_on::text as day
     from core.ledger_book b join core.tenant t using (tenant_id)
     join core.party p using (tenant_id, party_id) where p.external_id = 'pty_p' order by 1`,
  );
  t.strictSame(
    opened.map((row) => ({ ...row })),
    [
      { tenant: "ten_a1", day: tomorrow },
      { tenant: "ten_b1", day: date },
    ],
  );
});

t.test(
  "Statements are listed by tenant, distributor and date, and a page continues where the last one ended",
  async (t) => {
    const session = openSession(owners.service.address, { name: "coupon test", role: "coupon_admin" });
    t.teardown(() => session.end());
    // An index would return them in order.
    await session.run("set enable_indexscan = off; set enable_bitmapscan = off");
    type Listed = { tenant_id: number; distributor_id: number; day: string };
    const list = (after: Listed, limit: number) =>
      session.rows<Listed>(
        `select tenant_id, distributor_id, business_date::text as day
       from admin.list_statements($1, $2, $3::text::date, $4)`,
        [after.tenant_id, after.distributor_id, after.day, limit],
      );
    const start = { tenant_id: 0, distributor_id: 0, day: "2000-01-01" };
    const all = [...(await list(start, 100))];
    const order = ({ tenant_id, distributor_id, day }: Listed) =>
      tenant_id * 1e6 + distributor_id * 1e3 + (day === tomorrow ? 1 : 0);
    t.strictSame(
      all,
      all.toSorted((one, other) => order(one) - order(other)),
    );
    t.equal(new Set(all.map(({ tenant_id }) => tenant_id)).size, 5);
    t.ok(all.some(({ day }) => day === tomorrow));
    const paged: Listed[] = [];
    for (const one of all) {
      const [next] = await list(paged.at(-1) ?? start, 1);
      t.strictSame(next, one);
      paged.push(one);
    }
    t.strictSame([...(await list(all.at(-1)!, 1))], []);
  },
);
