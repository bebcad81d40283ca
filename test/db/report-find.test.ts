// report.find_… finds everything under an external ID, and nothing else. report.make_key turns times into keys.
import t, { type Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import { setZone } from "../support/business-days.ts";
import { sequenceEvents } from "../support/sequence-events.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";

// As if the entries had been recorded in the westernmost time zone, in the last moment of a day. In UTC it is the next
// day, and almost noon.
async function recordOnTheDayBefore(t: Test, service: Running): Promise<void> {
  await setZone(service, "pty_a", "Etc/GMT+12");
  const psql = openSession(service.address, { name: "psql" });
  t.teardown(psql.end);
  await psql.run(
    `set session_replication_role = replica;
     update core.ledger_entry set recorded_at = '2026-01-02 11:59:59.999999Z'`,
  );
}

t.test("One ID of a redemption, its reversal, their entries or events finds all of them", async (t) => {
  const service = await startService(t);
  const by = service.as("ak_a");
  const { codes, couponIds } = await service.makeBatch(by, "tpl_fixed", 3);
  const merchant = "mch_a";
  const post = async (path: string, body: object) => {
    const { status, json, text } = await by.post(path, { request_id: newRequestId(), ...body });
    if (status !== 200) throw new Error(text);
    return json;
  };
  const { redemption } = await post("/v1/coupons/redeem", { coupon: codes[0], merchant, order_id: "order-1" });
  await post("/v1/redemptions/reverse", { redemption });
  await post("/v1/coupons/redeem", { coupon: codes[1], merchant, order_id: "order-2" });
  await post("/v1/coupons/void", { coupon: codes[2], merchant });
  await recordOnTheDayBefore(t, service);
  await sequenceEvents(service.owner);
  const reader = openSession(service.address, { name: "coupon test reader", role: "coupon_report" });
  t.teardown(reader.end);
  const find = async (name: string, column: string, id: string) =>
    (
      await reader.rows<{ found: string }>(`select ${column}::text as found from report.find_${name}($1) order by 1`, [
        id,
      ])
    ).map(({ found }) => found);

  const entries = await reader.rows<{ entry: string; reversal: string | null }>(
    "select entry, reversal from report.ledger where order_id = 'order-1' order by entry_type",
  );
  t.strictSame(
    entries.map(({ reversal }) => reversal === null),
    [true, false],
  );
  const [entry, reversalEntry] = entries.map((row) => row.entry) as [string, string];
  const reversal = entries[1]!.reversal!;
  const events = [entry, reversalEntry].map((id) => id.replace("led_", "evt_"));
  const postings = [`${entry} 1`, `${reversalEntry} 2`].map((line) => `2026-01-01 ${line}`).toSorted();
  for (const id of [couponIds[0]!, redemption as string, reversal, entry, reversalEntry, ...events]) {
    t.strictSame(await find("ledger", "entry", id), [entry, reversalEntry].toSorted(), `entries of ${id}`);
    t.strictSame(
      await find("posting", "business_date || ' ' || entry || ' ' || number", id),
      postings,
      `postings of ${id}`,
    );
    t.strictSame(await find("event", "event", id), events.toSorted(), `events of ${id}`);
    t.strictSame(await find("redemption", "redemption", id), [redemption], `redemptions of ${id}`);
  }
  t.strictSame(await find("coupon", "status", couponIds[0]!), ["REDEEMED"]);
  t.strictSame(await find("event", "event_type", couponIds[2]!), ["coupon.voided"], "an event without a redemption");
  for (const name of ["ledger", "posting", "event", "redemption", "coupon"])
    for (const id of ["", "cpn_", "order-1", couponIds[0]!.toUpperCase(), `${couponIds[0]!}0`])
      t.strictSame(await find(name, "tenant", id), [], `find_${name} of '${id}'`);
});

t.test("A range of keys is a range of times", async (t) => {
  const service = await startService(t);
  const by = service.as("ak_a");
  const { codes } = await service.makeBatch(by, "tpl_fixed", 1);
  await by.post("/v1/coupons/lock", { request_id: newRequestId(), coupon: codes[0], merchant: "mch_a" });
  const [row] = await service.owner.rows<{ lowest: string; around: number; before: number; after: number }>(
    `select report.make_key('2026-11-22 10:00:00.123Z') as lowest,
            count(*) filter (where redemption_key < report.make_key(started_at - interval '1 second'))::int as before,
            count(*) filter (where redemption_key > report.make_key(started_at + interval '1 second'))::int as after,
            count(*)::int as around
     from report.redemption`,
  );
  const milliseconds = Date.parse("2026-11-22T10:00:00.123Z").toString(16).padStart(12, "0");
  const lowest = `${milliseconds.slice(0, 8)}-${milliseconds.slice(8)}-0000-0000-000000000000`;
  t.strictSame({ ...row! }, { lowest, around: 1, before: 0, after: 0 });
});
