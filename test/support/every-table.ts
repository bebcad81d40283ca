// A database with at least one row in every table of core, and with coupons and batches in every state.
import type { Test } from "tap";
import type { Address } from "../../src/config/database-address.ts";
import { openSession } from "../../src/database/connect.ts";
import type { Session } from "../../src/database/types.ts";
import { tenants } from "./tenants.ts";
import { newRequestId, startService, type Running } from "./service.ts";

/** A superuser's session as in psql, and the IDs of rows by name, such as "issued" or "locked_redemption". */
export type EveryTable = { address: Address; session: Session; ids: Record<string, string> };

const merchant = "mch_a";
const states = ["issued", "locked", "redeemed", "reversed", "voided", "cancelled", "free", "extended", "unposted"];
type Batches = Record<"allocated" | "completed" | "past" | "pending", string>;
type Made = { batches: Batches; codes: Record<string, string>; couponIds: Record<string, string> };

export async function fillEveryTable(t: Test): Promise<EveryTable> {
  const [tenantA, , tenantB] = structuredClone(tenants) as [any, any, any];
  const [template] = tenantA.templates;
  tenantA.templates.push({ ...template, id: "tpl_unused", name: "without a batch" });
  tenantA.parties[0].webhook = { url: "https://example.com/hook" };
  const service = await startService(t, { tenants: [tenantA, tenantB] });
  const made = await makeBatches(service);
  await callEverything(service, made);

  const session = openSession(service.address, { name: "psql" });
  t.teardown(() => session.end());
  const ids = await readIds(session, made);
  ids["day"] = await workOneDay(session, ids);

  // Redeemed after the sequencer ran, so its ledger entry is not posted yet.
  await must(service, "/v1/coupons/redeem", { coupon: made.codes["unposted"], merchant });
  ids["unposted"] = await readKey(
    session,
    "select entry_id::text as key from core.ledger_entry where entry_id not in (select entry_id from rules.posting)",
  );
  return { address: service.address, session, ids };
}

async function must(service: Running, path: string, body: object, idempotencyKey?: string): Promise<any> {
  const options = idempotencyKey === undefined ? {} : { idempotencyKey };
  const reply = await service.as("ak_a").post(path, { request_id: newRequestId(), ...body }, options);
  if (reply.status !== 200) throw new Error(reply.text);
  return reply.json;
}

async function makeBatches(service: Running): Promise<Made> {
  const a = service.as("ak_a");
  const allocated = await service.makeBatch(a, "tpl_fixed", states.length);
  const completed = await service.makeBatch(a, "tpl_scoped", 1, { isReleased: false });
  const past = await service.makeBatch(a, "tpl_fixed", 1, { isOver: true });
  const { batch } = await must(service, "/v1/batches", { template: "tpl_fixed", total_count: 3 }, "two");
  return {
    batches: { allocated: allocated.id, completed: completed.id, past: past.id, pending: batch.external_id },
    codes: Object.fromEntries(states.map((state, index) => [state, allocated.codes[index]!])),
    couponIds: Object.fromEntries(states.map((state, index) => [state, allocated.couponIds[index]!])),
  };
}

/** Brings each coupon into the state of its name. Also records refusals, with and without an idempotency-key. */
async function callEverything(service: Running, { codes, couponIds }: Made): Promise<void> {
  await must(service, "/v1/coupons/lock", { request_id: "lock", coupon: codes["locked"], merchant });
  await must(service, "/v1/coupons/redeem", { coupon: codes["redeemed"], merchant, order_amount: 20 });
  const { redemption } = await must(service, "/v1/coupons/redeem", { coupon: codes["reversed"], merchant });
  await must(service, "/v1/redemptions/reverse", { redemption });
  await must(service, "/v1/coupons/void", { coupon: codes["voided"], merchant });
  await must(service, "/v1/coupons/lock", { request_id: "cancelled", coupon: codes["cancelled"], merchant });
  await must(service, "/v1/coupons/cancel", { lock_request_id: "cancelled", coupon: codes["cancelled"] });
  const a = service.as("ak_a");
  await a.post("/v1/coupons/cancel", {
    request_id: newRequestId(),
    lock_request_id: "never",
    coupon: codes["issued"],
  });
  await a.post(
    "/v1/coupons/lock",
    { request_id: newRequestId(), coupon: codes["issued"], merchant: "mch_none" },
    { idempotencyKey: "one" },
  );
  await service.admin.rows("select admin.extend_coupon('ten_a', $1, '2098-01-01', 'a test')", [couponIds["extended"]]);
}

async function readKey(session: Session, text: string, params: unknown[] = []): Promise<string> {
  const [row] = await session.rows<{ key: string }>(text, params);
  return row!.key;
}

async function readIds(session: Session, { batches }: Made): Promise<Record<string, string>> {
  const ids: Record<string, string> = {};
  const byNumber = `
    select c.coupon_id::text as key from core.coupon c join core.batch b using (tenant_id, batch_id)
    where b.external_id = $1 and c.number = $2`;
  for (const [index, state] of states.entries())
    ids[state] = await readKey(session, byNumber, [batches.allocated, index + 1]);
  ids["past"] = await readKey(session, byNumber, [batches.past, 1]);
  for (const state of ["locked", "redeemed", "reversed", "cancelled"])
    ids[`${state}_redemption`] = await readKey(
      session,
      "select redemption_id::text as key from core.redemption where coupon_id = $1",
      [ids[state]],
    );
  for (const name of ["allocated", "completed", "pending"] as const)
    ids[name] = await readKey(session, "select batch_id::text as key from core.batch where external_id = $1", [
      batches[name],
    ]);
  for (const name of ["ten_a", "ten_b"])
    ids[name] = await readKey(session, "select tenant_id::text as key from core.tenant where external_id = $1", [name]);
  ids["distributor"] = await readKey(
    session,
    "select distributor_id::text as key from core.batch where batch_id = $1",
    [ids["allocated"]],
  );
  return ids;
}

/**
 * Writes the worker's rows: feeds, postings and deliveries. Closes one business day with its files, and the day before
 * without files. Returns the day with files.
 */
async function workOneDay(session: Session, ids: Record<string, string>): Promise<string> {
  await session.rows("select jobs.sequence_events(1000)");
  const closed = await readKey(
    session,
    "select business_date::text as key from rules.posting where tenant_id = $1 limit 1",
    [ids["ten_a"]],
  );
  const day = [ids["ten_a"], ids["distributor"], closed];
  await session.run("begin");
  await session.rows("update core.ledger_book set open_on = $3::date + 1 where tenant_id = $1 and party_id = $2", day);
  await session.rows(
    `insert into core.statement
       (tenant_id, distributor_id, business_date, entry_count, is_one_of_several, closed_at)
     select $1, $2, $3::date - n,
            case n when 0 then (select count(*) from rules.posting where tenant_id = $1) else 0 end, false, now()
     from generate_series(0, 1) n`,
    day,
  );
  await session.run("commit");
  await session.rows(
    `insert into core.statement_line
       (tenant_id, distributor_id, business_date, number, merchant_id, template_id, currency,
        redemption_count, redemption_minor, reversal_count, reversal_minor)
     select $1, $2, $3, row_number() over (), merchant_id, template_id, currency,
            redemption_count, redemption_minor, reversal_count, reversal_minor
     from rules.summarize_day($1, $2, $3)`,
    day,
  );
  await session.rows(
    `update core.statement
     set ready_at = now(), detail_bytes = 1, detail_sha256 = '',
         summary_rows = 1, summary_bytes = 1, summary_sha256 = ''
     where business_date = $1`,
    [closed],
  );
  await session.rows(
    `insert into core.event (tenant_id, event_id, event_type, party_id, business_date, occurred_at, recorded_at)
     values ($1, gen_random_uuid(), 'reconciliation.ready', $2, $3, now(), now())`,
    day,
  );
  await session.rows(
    `select jobs.record_deliveries(tenant_id, party_id, null, jsonb_build_array(jsonb_build_object(
       'event_id', event_id, 'attempt', 1, 'duration_ms', 1, 'is_taken', false)))
     from core.delivery limit 1`,
  );
  await session.rows("select rules.create_test_delivery(tenant_id, party_id, 'batch.generated') from core.webhook");
  await session.rows("update core.webhook set sealed_secret = sealed_secret || '0'");
  await session.rows("insert into core.event_gap select 999999999, pg_current_xact_id()");
  await session.rows(
    `insert into core.event_gap (event_seq, tenant_id, party_id)
     select 999999998, tenant_id, party_id from core.webhook`,
  );
  await session.rows(
    "select rules.note_stuck_work('events', tenant_id, party_id, null, 'why') from core.webhook limit 1",
  );
  return closed;
}
