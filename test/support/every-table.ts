// A database with at least one row in every table of core, and with coupons and batches in every state.
import type { Test } from "tap";
import type { Session } from "../../src/database/types.ts";
import { moveToNoon } from "./business-days.ts";
import type { Coupon } from "./caller.ts";
import { newRequestId } from "./request-id.ts";
import { scenario, type Scenario } from "./scenario.ts";
import { tenants } from "./tenants.ts";

/** A superuser's session as in psql, and the IDs of rows by name, such as "issued" or "locked_redemption". */
export type EveryTable = { world: Scenario; session: Session; ids: Record<string, string> };

const names = ["issued", "locked", "redeemed", "reversed", "voided", "cancelled", "free", "extended", "unposted"];

export async function fillEveryTable(t: Test): Promise<EveryTable> {
  const [tenantA, , tenantB] = structuredClone(tenants) as [any, any, any];
  tenantA.templates.push({ ...tenantA.templates[0], id: "tpl_unused", name: "without a batch" });
  tenantA.parties[0].webhook = { url: "https://example.com/hook" };
  const world = await scenario(t, { file: { tenants: [tenantA, tenantB] } });
  const { till } = world.a;
  await moveToNoon(world, "pty_a");

  const allocated = await world.makeBatch(till, "tpl_fixed", names.length);
  const completed = await world.makeBatch(till, "tpl_scoped", 1, { isReleased: false });
  const past = await world.makeBatch(till, "tpl_fixed", 1, { isOver: true });
  const wanted = { request_id: newRequestId(), template: "tpl_fixed", total_count: 3 };
  // One is VOIDED, and the recall waits for the lock of the other.
  const recalled = await world.makeBatch(till, "tpl_fixed", 2);
  await till.ok.lock(recalled.coupons[1]!);
  await till.ok.recallBatch(recalled.id);
  await world.steps.recall();
  const pending = (await till.post("/v1/batches", wanted, { idempotencyKey: "two" })).json.batch.external_id;
  const coupons = Object.fromEntries(names.map((name, index) => [name, allocated.coupons[index]!]));
  await bringIntoStates(world, coupons);

  const session = await world.openPsql();
  const others = { past: past.coupons[0]!, awaited: recalled.coupons[1]! };
  const named = Object.entries({ ...coupons, ...others }).map(([name, { id }]) => [name, id]);
  const batches = { allocated: allocated.id, completed: completed.id, pending, recalled: recalled.id };
  const ids = await readIds(session, { ...Object.fromEntries(named), ...batches });
  await world.steps.close();
  await moveToNoon(world, "pty_a", 1);
  await world.steps.close();
  ids["day"] = await writeOtherRows(session);

  // Redeemed after the sequencer ran, so its ledger entry is not posted yet.
  const { redemption } = await till.ok.redeem(coupons["unposted"]!);
  const [row] = await session.rows<{ id: string }>("select rules.parse_id('red', $1) as id", [redemption]);
  ids["unposted"] = row!.id;
  return { world, session, ids };
}

/** Brings each coupon into the state of its name. Also records refusals, with and without an idempotency-key. */
async function bringIntoStates({ a: { till }, admin }: Scenario, coupons: Record<string, Coupon>): Promise<void> {
  const { issued, locked, redeemed, reversed, voided, cancelled, extended } = coupons as Record<string, any>;
  await till.ok.lock(locked, { request_id: "lock" });
  await till.ok.redeem(redeemed, { order_amount: 20 });
  await till.ok.redeem(reversed);
  await till.ok.reverse(reversed);
  await till.ok.void(voided);
  await till.ok.lock(cancelled, { request_id: "cancelled" });
  await till.ok.cancel(cancelled);
  await till.cancel(issued);
  const elsewhere = { request_id: newRequestId(), coupon: issued.code, merchant: "mch_none" };
  await till.post("/v1/coupons/lock", elsewhere, { idempotencyKey: "one" });
  await admin.rows("select admin.extend_coupon('ten_a', $1, '2098-01-01', 'a test')", [extended.id]);
}

/** The keys of the named coupons and batches, of redemptions by their coupons, of tenants, and of the distributor. */
async function readIds(session: Session, named: Record<string, string>): Promise<Record<string, string>> {
  const rows = await session.rows<{ name: string; key: string }>(
    `with named as (select * from jsonb_each_text($1::text::jsonb) n (name, external_id)),
          coupon as (select n.name, rules.parse_id('cpn', n.external_id) as id from named n),
          batch as (select n.name, b.batch_id, b.distributor_id from named n join core.batch b using (external_id))
     select name, id::text as key from coupon where id is not null
     union all
     select c.name || '_redemption', r.redemption_id::text from coupon c join core.redemption r on r.coupon_id = c.id
     union all
     select name, batch_id::text from batch
     union all
     select 'distributor', distributor_id::text from batch where name = 'allocated'
     union all
     select external_id, tenant_id::text from core.tenant`,
    [JSON.stringify(named)],
  );
  return Object.fromEntries(rows.map(({ name, key }) => [name, key]));
}

/**
 * Writes what the service writes only in time or in trouble: a day without files, an attempt, a test, a replaced
 * secret, gaps and stuck work. Returns the closed day with files.
 */
async function writeOtherRows(session: Session): Promise<string> {
  await session.run(`
    insert into core.statement
      (tenant_id, distributor_id, business_date, entry_count, is_one_of_several, closed_at)
    select tenant_id, distributor_id, business_date - 1, 0, false, now() from core.statement;
    select jobs.record_deliveries(tenant_id, party_id, null, jsonb_build_array(jsonb_build_object(
      'event_id', event_id, 'attempt', 1, 'duration_ms', 1, 'is_taken', false)))
    from core.delivery limit 1;
    select rules.create_test_delivery(tenant_id, party_id, 'batch.generated') from core.webhook;
    update core.webhook set sealed_secret = sealed_secret || '0';
    insert into core.event_gap select 999999999, pg_current_xact_id();
    insert into core.event_gap (event_seq, tenant_id, party_id)
    select 999999998, tenant_id, party_id from core.webhook;
    select rules.note_stuck_work('events', tenant_id, party_id, null, 'why') from core.webhook limit 1;
    select rules.check_invariant('event is in one table');
    select jobs.note_prune_step('request', 512);
    select console.open_session(sha256('a cookie'), 'anna', 12);
    insert into core.portal_link (link_id, tenant_id, credential_id, created_at, expires_at)
    select gen_random_uuid(), tenant_id, credential_id, now(), now() + interval '10 minutes' from core.credential;
    insert into core.console_session (token_hash, name, signed_in_at, expires_at, tenant_id, credential_id)
    select sha256('another cookie'), 'ten_a', now(), now() + interval '1 hour', tenant_id, credential_id
    from core.credential limit 1`);
  const [day] = await session.rows<{ key: string }>(
    "select business_date::text as key from core.statement where ready_at is not null",
  );
  return day!.key;
}
