// The functions of the schemas admin and jobs that are called for one owner, in an order in which each can act.
import { createHash } from "node:crypto";
import type { Owner } from "./tenants.ts";

/** What background work is called with: numbers, and the events that wait for the subscriber. */
export type Numbers = {
  tenantId: number;
  partyId: number;
  pending: number;
  released: number;
  unreleasedNumber: number;
  events: string[];
  /** How many events the subscriber has. */
  count: number;
};

/** A function, the names of its arguments in valuesOf, its changes for ownChanges, and the name of its rows there. */
type Call = [name: string, args: string, changes?: string, answer?: string];

export const calls: Call[] = [
  // All workers have the same holder.
  ["jobs.lease_batch", "tenantId pending worker shared 2 keys", "batch -1 +1"],
  ["jobs.end_batch_lease", "tenantId pending shared", "batch -1 +1"],
  ["jobs.lease_batch", "tenantId pending worker holder 2 keys", "batch -1 +1"],
  ["jobs.mint_chunk", "tenantId pending holder 1 hashes", "batch -1 +1, coupon -0 +2"],
  ["jobs.end_batch_lease", "tenantId pending holder", "batch -1 +1"],
  ["jobs.lease_batch", "tenantId pending worker holder 2 keys", "batch -1 +1"],
  ["jobs.mint_chunk", "tenantId pending holder 3 collidingHashes", "", "collided"],
  [
    "jobs.mint_chunk",
    "tenantId pending holder 3 lastHashes",
    "batch -1 +1, coupon -0 +2, event (maker) -0 +1",
    "minted",
  ],
  ["jobs.note_stuck_batch", "tenantId pending why", "stuck_work (maker) -0 +1"],
  ["jobs.note_stuck_work", "webhook tenantId partyId null why", "stuck_work … -0 +1"],
  ["jobs.lease_deliveries", "tenantId partyId worker shared 1", "webhook … -1 +1"],
  ["jobs.end_webhook_lease", "tenantId partyId shared", "webhook … -1 +1"],
  ["jobs.lease_deliveries", "tenantId partyId worker holder 2", "webhook … -1 +1", "claimed"],
  [
    "jobs.record_deliveries",
    "tenantId partyId holder results",
    "delivery … -2 +1, delivery_attempt … -0 +2, webhook … -1 +1",
  ],
  ["jobs.end_webhook_lease", "tenantId partyId holder", "webhook … -1 +1"],
  ["admin.test_webhook", "tenant distributorParty coupon.voided", "test_delivery … -0 +1, audit -0 +1"],
  [
    "admin.disable_webhook",
    "tenant distributorParty why",
    "webhook … -1 +1, delivery … -2 +2, test_delivery … -1 +0, audit -0 +1",
  ],
  ["admin.enable_webhook", "tenant distributorParty why", "webhook … -1 +1, audit -0 +1"],
  ["admin.replay_event", "tenant event why", "delivery … -1 +1, audit -0 +1"],
  ["admin.replay_parked", "tenant distributorParty why", "delivery … -1 +1, audit -0 +1", "one"],
  ["admin.replay_range", "tenant distributorParty early later why", "delivery … -0 +others, audit -0 +1", "all"],
  [
    "admin.set_webhook_secret",
    "tenant distributorParty \\x01 \\x02 why",
    "webhook … -1 +1, replaced_secret … -0 +1, audit -0 +1",
  ],
  ["admin.add_delegate", "tenant merchant makerParty why", "merchant_delegate -0 +1, audit -0 +1"],
  ["admin.add_delegate", "tenant merchant otherMaker why", "merchant_delegate -0 +1, audit -0 +1"],
  ["admin.remove_delegate", "tenant merchant makerParty why", "merchant_delegate -1 +0, audit -0 +1"],
  ["admin.remove_delegate", "tenant merchant otherMaker why", "merchant_delegate -1 +0, audit -0 +1"],
  ["admin.void_coupon", "tenant toVoid why", "coupon -1 +1, voiding -0 +1, event … -0 +1, audit -0 +1"],
  ["admin.release_lock", "tenant toCancel why", "coupon -1 +1, redemption -1 +1, audit -0 +1", "cancelled"],
  ["admin.extend_coupon", "tenant issued later why", "coupon -1 +1, coupon_extension -0 +1, audit -0 +1"],
  ["admin.suspend_batch", "unreleased why", "batch -1 +1, audit -0 +1"],
  ["admin.resume_batch", "unreleased why", "batch -1 +1, audit -0 +1"],
  ["admin.recall_batch", "unreleased why", "batch -1 +1, audit -0 +1"],
  ["jobs.lease_recall", "tenantId unreleasedNumber worker holder", "batch -1 +1", "leased"],
  [
    "jobs.recall_chunk",
    "tenantId unreleasedNumber holder 9",
    "batch -1 +1, coupon -1 +1, voiding -0 +1, event … -0 +1",
    "recalled",
  ],
  ["admin.open_export", "releasedBatch false", "audit -0 +1", "exported"],
  ["rules.read_export_page", "tenantId released 0 100", "", "coupons"],
  ["admin.destroy_codes", "releasedBatch why", "batch -1 +1, audit -0 +1"],
  ["admin.rotate_credential", "maker newKey \\x01 \\x02 why", "credential -0 +1, audit -0 +1"],
  ["admin.revoke_credential", "maker why", "credential -1 +1, audit -0 +1"],
];

/**
 * Those that act for all owners at once, or whose tests are in days.test.ts, at the end of functions.test.ts, in
 * test/db/api/sandbox.test.ts, test/db/cells.test.ts, test/db/clearing.test.ts, or in test/commands/sandbox.test.ts.
 */
export const testedElsewhere = `admin.apply admin.find_local admin.list_statements admin.list_webhooks jobs.close_days
  jobs.clear_departed jobs.expire_coupons jobs.finish_statement jobs.lapse_locks jobs.list_due_batches
  jobs.list_due_recalls jobs.list_due_statements
  jobs.list_due_webhooks jobs.list_stuck_work jobs.prune_attempts jobs.prune_cancellations jobs.prune_feed
  jobs.prune_requests jobs.read_metrics jobs.sequence_events jobs.summarize_statement
  jobs.try_stuck_work admin.reset_sandbox admin.perform_in_sandbox`;

/** Those that know no owner. */
export const global = `admin.forget_key admin.has_tenants admin.join_cell admin.note_restore jobs.analyze_grown_tables
  admin.close_tenants admin.list_moving admin.mark_drained admin.open_tenants admin.read_nonces admin.release_tenants
  admin.end_split admin.take_tenants admin.write_nonces jobs.join_workers jobs.find_prune_start
  jobs.note_prune_step jobs.prune_nonces`;

const uuid = (text: string) => createHash("md5").update(text).digest("hex");

/** The arguments and the rows of calls by their names. Other words stand for themselves. */
export function valuesOf(owner: Owner, numbers: Numbers): Record<string, any> {
  const { tenant, variant, side, distributorParty: party, coupons, batches } = owner;
  const { tenantId: tenant_id, released: batch_id, events, count } = numbers;
  const twin = tenant.replace(/.$/, (last) => (last === "1" ? "2" : "1"));
  // The first coupon of a side has the same code in both tenants of a variant, the others have not.
  const hash = (number: number, of = tenant) => uuid(`${number === 1 ? variant : of} ${side} ${number}`);
  const result = { attempt: 1, duration_ms: 1 };
  return {
    ...owner,
    ...numbers,
    null: null,
    shared: uuid("shared"),
    holder: uuid(`${tenant} ${side}`),
    hashes: [hash(1), hash(2)],
    // Coupon 3 has the code of another one of the tenant. The code of coupon 4 exists only in another tenant.
    collidingHashes: [hash(2), hash(2, twin)],
    lastHashes: [hash(3), hash(4)],
    collided: [{ minted_count: 2, is_complete: false, collided: [3] }],
    minted: [{ minted_count: 4, is_complete: true, collided: null }],
    event: events[0],
    claimed: events.slice(0, 2).map((event_id) => ({ event_id, tenant, party, attempt: 1 })),
    results: JSON.stringify([
      { ...result, event_id: events[0], http_status: 204, is_taken: true },
      { ...result, event_id: events[1], http_status: 500, is_taken: false, retry_after_seconds: 9 },
    ]),
    early: "2020-01-01T00:00:00Z",
    later: "2098-01-01T00:00:00Z",
    one: [1],
    leased: [true],
    recalled: [{ is_over: false, is_held_up: false }],
    all: [count],
    newKey: `${owner.maker}_new`,
    otherMaker: `pty_m${side === 1 ? 2 : 1}`,
    ...Object.fromEntries(["toVoid", "toCancel", "issued"].map((name) => [name, coupons[name]!.id])),
    cancelled: [coupons.toCancel!.last.redemption],
    unreleased: batches.unreleased,
    releasedBatch: batches.released,
    exported: [{ tenant_id, batch_id, external_id: batches.released, total_count: 22 }],
    coupons: Object.values(coupons)
      .slice(0, 22)
      .map(({ id: coupon_id }, index) => ({ number: index + 1, code_attempt: 0, coupon_id })),
  };
}
