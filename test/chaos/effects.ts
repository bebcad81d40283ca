// The effects of a call, as text: those that its answer promises, and those that the database contains. Both sides
// write an effect in the same words, so the checker can compare them.
import type { Session } from "../../src/database/types.ts";
import { finalOf, suffixOf, verdictOf, type Entry } from "./history.ts";
import { callerOf, tenants } from "./tenants.ts";

// Requests of the harness itself, which are not part of the workload.
const isOurs = (requestId: string): boolean => requestId.startsWith("s-");

// The effects that must exist because of the answer.
export function effectsOf(entry: Entry): string[] {
  const { call } = entry;
  const final = finalOf(entry);
  if (final === null || call.kind === "query") return [];
  const tenant = tenants[call.variant].id;
  const caller = callerOf(call.accessKey) ?? "-";
  const record = `request ${tenant} ${caller} ${call.requestId} ${call.kind} ${final.status} ${final.text}`;
  if (verdictOf(final) !== "ok") return [record];
  const answer = JSON.parse(final.text);
  const redemption = `redemption ${tenant} ${caller} ${call.requestId} ${answer.redemption}`;
  const movement = (id: string) => ["ledger", "event", "feed"].map((table) => `${table} ${tenant} ${suffixOf(id)}`);
  switch (call.kind) {
    case "lock":
      return [record, redemption];
    case "redeem":
      return [record, redemption, ...movement(answer.redemption)];
    case "confirm":
      return [record, ...movement(answer.redemption)];
    case "reverse":
      return [record, `reversal ${tenant} ${answer.reversal} ${answer.redemption}`, ...movement(answer.reversal)];
    case "cancel":
      return [record, `cancelled ${tenant} ${answer.redemption}`];
    case "void":
      return [
        record,
        ...["voiding", "voided event", "voided feed"].map((name) => `${name} ${tenant} ${answer.coupon_id}`),
      ];
    case "create_batch": {
      const batch = answer.batch.external_id;
      return [
        record,
        `batch ${tenant} ${caller} ${call.requestId} ${batch}`,
        `minted ${tenant} ${batch} ${call.count}`,
      ];
    }
    case "allocate_batch":
      return [record, `allocated ${tenant} ${(entry.body as { batch: string }).batch}`];
  }
}

// The effects in the database, and how often each of them exists.
export async function readEffects(session: Session): Promise<Map<string, number>> {
  const rows = await session.rows<{ effect: string; request: string | null }>(`
    with batch as (
      select b.*, t.external_id as tenant, p.external_id as caller
      from core.batch b
      join core.tenant t using (tenant_id)
      left join core.party p on p.tenant_id = b.tenant_id and p.party_id = b.caller_id),
    fed as (
      select t.external_id as tenant, e.event_type, rules.format_id('evt', f.event_id) as event,
             rules.format_id('cpn', e.coupon_id) as coupon
      from rules.feed_event f join core.tenant t using (tenant_id) join rules.event e using (tenant_id, event_id))
    select concat_ws(' ', 'request', q.tenant, coalesce(q.caller, '-'), q.request_id, q.operation, q.http_status,
                     q.response) as effect, q.request_id as request
    from report.request q
    union all
    select concat_ws(' ', 'redemption', r.tenant, coalesce(r.caller, '-'), r.lock_request_id, r.redemption), null
    from report.redemption r
    union all
    select concat_ws(' ', 'reversal', r.tenant, r.reversal, r.redemption), null
    from report.redemption r where r.reversal is not null
    union all
    select concat_ws(' ', 'cancelled', r.tenant, r.redemption), null
    from report.redemption r where r.stored_status = 'CANCELLED'
    union all
    select concat_ws(' ', 'ledger', l.tenant, substr(l.entry, 5)), null from report.ledger l
    union all
    select concat_ws(' ', 'event', e.tenant, substr(e.event, 5)), null
    from report.event e where e.redemption is not null
    union all
    select concat_ws(' ', 'feed', f.tenant, substr(f.event, 5)), null
    from fed f where f.event_type in ('coupon.redeemed', 'coupon.reversed')
    union all
    select concat_ws(' ', 'voiding', v.tenant, v.coupon), null from report.voiding v
    union all
    select concat_ws(' ', 'voided event', e.tenant, e.coupon), null
    from report.event e where e.event_type = 'coupon.voided'
    union all
    select concat_ws(' ', 'voided feed', f.tenant, f.coupon), null from fed f where f.event_type = 'coupon.voided'
    union all
    select concat_ws(' ', 'batch', b.tenant, coalesce(b.caller, '-'), b.request_id, b.external_id), b.request_id
    from batch b
    union all
    select concat_ws(' ', 'minted', b.tenant, b.external_id, count(*)), b.request_id
    from batch b join core.coupon c using (tenant_id, batch_id)
    where b.status <> 'PENDING' group by b.tenant, b.external_id, b.request_id
    union all
    select concat_ws(' ', 'allocated', b.tenant, b.external_id), b.request_id
    from batch b where b.status = 'ALLOCATED'`);
  const found = new Map<string, number>();
  for (const { effect, request } of rows)
    if (request === null || !isOurs(request)) found.set(effect, (found.get(effect) ?? 0) + 1);
  return found;
}
