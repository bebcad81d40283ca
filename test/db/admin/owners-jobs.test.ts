// Statements and background work where owners have rows with the same keys: each owner gets what belongs
// to it, once.
import t from "tap";
import { openSession } from "../../../src/database/connect.ts";
import { daySeconds, noonOffset, zoneOf } from "../../support/business-days.ts";
import { fits } from "../../support/fits.ts";
import type { Story } from "../../support/owners.ts";
import { startOwners, type Owners } from "../../support/start-owners.ts";
import { findChanges, nameTables } from "../../support/twin.ts";

let owners: Owners;
let stories: Story[];

t.before(async () => {
  owners = await startOwners(t);
  ({ stories } = owners);
});

const tenants = ["ten_a1", "ten_a2", "ten_b1", "ten_b2"];
const forEach = (changes: (tenant: string) => Record<string, string>) =>
  Object.fromEntries(
    tenants.flatMap((tenant) => Object.entries(changes(tenant)).map(([table, rows]) => [`${tenant} ${table}`, rows])),
  );

// A session in which triggers do not refuse to change what never changes.
async function openPsql() {
  const session = openSession(owners.service.address, { name: "psql" });
  t.teardown(() => session.end());
  await session.run("set session_replication_role = replica");
  return session;
}

const changesOf = (act: () => Promise<unknown>) => findChanges(owners.service.owner, act);

t.test("Locks lapse and coupons expire for each owner, and the events reach its feed and webhook", async (t) => {
  const { service, books } = owners;
  // The lock of a twin ends next after that of its tenant.
  await service.owner.rows(
    `update core.redemption set lock_expires_at = started_at + tenant_id * interval '1 microsecond'
     where status = 'LOCKED'`,
  );
  for (const [index, { tenant, coupons }] of stories.entries()) {
    const end = `2021-01-0${index + 1}`;
    await service.admin.rows("select admin.extend_coupon($1, $2, $3, 'why')", [tenant, coupons.issued.id, end]);
  }
  const lapse = (limit: number) => changesOf(() => service.owner.rows("select jobs.lapse_locks($1)", [limit]));
  const expire = (limit: number) => changesOf(() => service.owner.rows("select jobs.expire_coupons($1)", [limit]));
  for (const tenant of ["ten_a1", "ten_a2"])
    t.strictSame(await lapse(1), nameTables(tenant, { coupon: "-1 +1", redemption: "-1 +1" }), "one at a time");
  t.strictSame(
    await lapse(100),
    forEach((tenant) => {
      const rest = tenant.startsWith("ten_a") ? "-5 +5" : "-6 +6";
      return { coupon: rest, redemption: rest };
    }),
  );
  const expired = { coupon: "-1 +1", coupon_extension: "-1 +0", event: "-0 +1" };
  t.strictSame(await expire(1), nameTables("ten_a1", expired), "one at a time");
  const both = { coupon: "-2 +2", coupon_extension: "-2 +0", event: "-0 +2" };
  t.strictSame(
    await expire(100),
    forEach((one) => (one === "ten_a1" ? expired : both)),
  );
  t.strictSame(
    await changesOf(books.sequence),
    forEach((one) => ({
      delivery: "-0 +2",
      feed: one.startsWith("ten_a") ? "-1 +1" : "-2 +2",
      feed_page: one.startsWith("ten_a") ? "-0 +1" : "-0 +2",
    })),
  );
  for (const [tenant, coupon] of [
    ["ten_a1", stories[0]!.coupons["to void"].id],
    ["ten_b1", stories[2]!.coupons["to void"].id],
  ] as const) {
    await service.admin.rows("select admin.void_coupon($1, $2, 'why')", [tenant, coupon]);
    t.strictSame(
      await changesOf(books.sequence),
      nameTables(tenant, { delivery: "-0 +1", feed: "-1 +1", feed_page: "-0 +1" }),
    );
  }
});

t.test("A batch that is over expires alone, although the twin has one with the same number", async (t) => {
  const { service } = owners;
  const { tenant, shop, merchant, batches, coupons } = stories.find((story) => story.tenant === "ten_b1")!;
  const lock = { request_id: "lives on", merchant, coupon: coupons["to lock"].code };
  t.equal((await service.as(shop).post("/v1/coupons/lock", lock)).status, 200);
  // The twin has the same coupon, not locked and past its end.
  await service.admin.rows("select admin.extend_coupon('ten_b2', $1, '2021-01-01', 'why')", [coupons["to lock"].id]);
  const session = await openPsql();
  const { external_id } = batches["ALLOCATED"]!;
  await session.rows("update core.batch set valid_to = '2020-01-02' where external_id = $1", [external_id]);
  await session.rows(
    `update core.coupon c set valid_to = '2020-01-02' from core.batch b
     where (b.tenant_id, b.batch_id) = (c.tenant_id, c.batch_id) and b.external_id = $1`,
    [external_id],
  );
  const [open] = await service.owner.rows<{ count: number }>(
    "select count(*)::int as count from report.coupon where batch = $1 and stored_status = 'ISSUED'",
    [external_id],
  );
  const count = open!.count;
  t.ok(count > 4);
  t.strictSame(
    await changesOf(() => service.owner.rows("select jobs.expire_coupons(100)")),
    nameTables(tenant, { batch: "-1 +1", coupon: `-${count} +${count}`, event: `-0 +${count}` }),
  );
});

t.test("A day is closed and summarized for each owner; files are listed and read by owner", async (t) => {
  const { service } = owners;
  // The day of one distributor ends first.
  await owners.books.sequence();
  await service.owner.rows(
    `update core.party p set time_zone = $1
     from core.tenant t where t.tenant_id = p.tenant_id and t.external_id = 'ten_b2' and p.external_id = 'pty_d1'`,
    [zoneOf(noonOffset() + daySeconds)],
  );
  const closed = { event: "-0 +1", ledger_book: "-1 +1", statement: "-0 +1", statement_line: "-0 +1" };
  t.strictSame(await changesOf(() => owners.books.close()), nameTables("ten_b2", closed));
  await owners.books.sequence();
  t.strictSame(
    await changesOf(() => owners.close()),
    forEach((tenant) => {
      const rest = tenant === "ten_b2" ? "1" : "2";
      return {
        event: `-0 +${rest}`,
        ledger_book: `-${rest} +${rest}`,
        party: `-${rest} +${rest}`,
        statement: `-0 +${rest}`,
        statement_line: `-0 +${rest}`,
      };
    }),
  );
  const listed = await service.admin.rows<any>("select * from admin.list_statements(0, 0, '2000-01-01', 100)");
  t.strictSame(
    listed
      .map(({ tenant, distributor, detail_rows, summary_rows }) => [tenant, distributor, detail_rows, summary_rows])
      .sort(),
    stories.map(({ tenant, distributorParty }) => [tenant, distributorParty, 4, 1]).sort(),
  );
  const reported = await service.admin.rows<any>(
    `select s.tenant, s.distributor, s.entry_count, l.merchant, l.template, l.redemption_count, l.net_amount::float
     from report.statement s full join report.statement_line l using (tenant, distributor, business_date)`,
  );
  t.strictSame(
    reported.map((row) => Object.values(row)).sort(),
    stories
      .map((story) => [story.tenant, story.distributorParty, 4, story.merchant, story.template, 3, 2 * story.amount])
      .sort(),
  );
  for (const { tenant_id, distributor_id, tenant, distributor } of listed) {
    const story = stories.find((one) => one.tenant === tenant && one.distributorParty === distributor)!;
    for (const [kind, lines] of [
      ["detail", 4],
      ["summary", 1],
    ] as const) {
      const page = await service.admin.rows<{ number: number; fields: string[] }>(
        "select * from rules.read_statement_page($1, $2, $3, $4, 0, 100)",
        [tenant_id, distributor_id, owners.date, kind],
      );
      t.strictSame(
        page.map(({ number }) => number),
        Array.from({ length: lines }, (_, index) => index + 1),
      );
      for (const { fields } of page)
        fits(
          t,
          [...fields],
          kind === "detail" ? { 7: story.template, 8: story.merchant } : { 1: story.merchant, 2: story.template },
        );
    }
  }
});

t.test("The event of a statement names its own distributor, and that of a batch its own batch", async (t) => {
  const announced = await owners.service.owner.rows<any>(
    `select t.external_id as tenant, p.external_id as party, rules.describe_event(e)::json ->> 3 as named
     from rules.event e join core.tenant t using (tenant_id) join core.party p using (tenant_id, party_id)
     where e.event_type = 'reconciliation.ready'`,
  );
  t.strictSame(
    announced.map((row) => Object.values(row)).sort(),
    stories.map(({ tenant, distributorParty: one }) => [tenant, one, one]).sort(),
  );
  const ofBatches = await owners.service.owner.rows<any>(
    `select rules.describe_event(e)::json ->> 2 as named, b.external_id as batch
     from rules.event e join core.batch b using (tenant_id, batch_id)`,
  );
  t.ok(ofBatches.length >= 8 * 4, "two batches of each owner are completed and released");
  t.strictSame(
    ofBatches.map(({ named }) => named),
    ofBatches.map(({ batch }) => batch),
  );
});

t.test("Old events are pruned from the feed of their owner", async (t) => {
  // All of one feed, and the first of the feed whose party has the same number in the twin.
  const session = await openPsql();
  await session.rows(
    `update core.feed_page f set sequenced_at = now() - interval '9 days'
     from core.party p join core.tenant t using (tenant_id)
     where (f.tenant_id, f.party_id) = (p.tenant_id, p.party_id)
       and ((t.external_id, p.external_id) = ('ten_b1', 'pty_d1')
            or (t.external_id, p.external_id, f.first_position) = ('ten_b2', 'pty_d2', 1))`,
  );
  const prune = () => owners.service.owner.rows("select jobs.prune_feed(8, 100)");
  t.strictSame(await changesOf(prune), { "ten_b1 feed_page": "-4 +0", "ten_b2 feed_page": "-1 +0" });
});

t.test("The lag of deliveries is that of the oldest one to a subscriber that is enabled and not paused", async (t) => {
  const session = await openPsql();
  await session.run("begin");
  // The nth subscriber waits n hours for its oldest delivery.
  const subscribers = await session.rows<{ tenant_id: number; party_id: number }>(
    "select tenant_id, party_id from core.webhook order by tenant_id, party_id",
  );
  const change = async (nth: number, table: string, set: string) => {
    const { tenant_id, party_id } = subscribers[nth - 1]!;
    await session.rows(`update core.${table} set ${set} where tenant_id = $1 and party_id = $2`, [tenant_id, party_id]);
  };
  const readLag = async () => {
    const [row] = await session.rows<{ lag: number }>(
      "select trunc(delivery_lag / 3600)::int as lag from jobs.read_metrics()",
    );
    return row!.lag;
  };
  t.equal(subscribers.length, 8);
  for (let nth = 1; nth <= 8; nth += 1)
    await change(nth, "delivery", `parked_at = null, next_attempt_at = clock_timestamp() - interval '${nth} hours'`);
  t.equal(await readLag(), 8);
  await change(8, "webhook", "disabled_at = now()");
  t.equal(await readLag(), 7);
  await change(7, "webhook", "paused_until = clock_timestamp() + interval '1 hour'");
  t.equal(await readLag(), 6);
  await change(7, "webhook", "paused_until = clock_timestamp()");
  t.equal(await readLag(), 7, "the pause is over");
  await change(7, "delivery", "parked_at = now()");
  t.equal(await readLag(), 6);
  await session.run("update core.delivery set next_attempt_at = clock_timestamp() + interval '1 hour'");
  t.equal(await readLag(), 0, "nothing is due yet");
  await session.run("rollback");
});
