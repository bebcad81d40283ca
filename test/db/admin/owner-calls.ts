// The calls of owners.test.ts: functions of the schemas admin and jobs that are called for one owner.
import { kinds, type Story } from "../../support/owners.ts";

// The numbers that background work is called with.
export type Numbers = {
  tenant: number;
  party: number;
  pending: number;
  released: number;
  keys: string;
  events: string[];
  worker: number;
};

// Each call in this order: its arguments, its rows, and which rows it changes in the tenant.
export type Call = {
  name: string;
  args: (story: Story, numbers: Numbers) => unknown[];
  answer?: (story: Story, numbers: Numbers) => unknown[];
  changes?: Record<string, string>;
};

const shared = "00000000-0000-4000-8000-000000000001";
const holderOf = ({ tenant, side }: Story) =>
  `00000000-0000-4000-8000-0000000${Buffer.from(tenant.slice(-2)).toString("hex")}${side}`;
// The first coupon of each side has the same code in both tenants of a variant, the others have not.
const hashOf = ({ tenant, side }: Story, number: number) => {
  const owner = number === 1 ? "0000" : Buffer.from(tenant.slice(-2)).toString("hex");
  return `00000000-0000-4000-800${side}-0000000${owner}${number}`;
};
const later = "2098-01-01T00:00:00Z";
const [audit, one] = ["-0 +1", "-1 +1"];

const twinOf = (story: Story) => ({
  ...story,
  tenant: story.tenant.replace(/.$/, (last) => (last === "1" ? "2" : "1")),
});

// Each merchant gets the makers of both sides as delegates.
const otherMaker = ({ side }: Story) => `pty_m${side === 1 ? 2 : 1}`;

export const calls: Call[] = [
  {
    name: "jobs.claim_batch",
    args: (_, { tenant, pending, keys, worker }) => [tenant, pending, worker, shared, 2, keys],
    changes: { batch: one },
  },
  {
    name: "jobs.end_batch_lease",
    args: (_, { tenant, pending }) => [tenant, pending, shared],
    changes: { batch: one },
  },
  {
    name: "jobs.claim_batch",
    args: (story, { tenant, pending, keys, worker }) => [tenant, pending, worker, holderOf(story), 2, keys],
    changes: { batch: one },
  },
  {
    name: "jobs.mint_chunk",
    args: (story, { tenant, pending }) => [tenant, pending, holderOf(story), 1, [hashOf(story, 1), hashOf(story, 2)]],
    changes: { batch: one, coupon: "-0 +2" },
  },
  {
    name: "jobs.end_batch_lease",
    args: (story, { tenant, pending }) => [tenant, pending, holderOf(story)],
    changes: { batch: one },
  },
  {
    name: "jobs.claim_batch",
    args: (story, { tenant, pending, keys, worker }) => [tenant, pending, worker, holderOf(story), 2, keys],
    changes: { batch: one },
  },
  {
    // Coupon 3 has the code of another one of the tenant. The code of coupon 4 exists only in another tenant.
    name: "jobs.mint_chunk",
    args: (story, { tenant, pending }) => [
      tenant,
      pending,
      holderOf(story),
      3,
      [hashOf(story, 2), hashOf(twinOf(story), 2)],
    ],
    answer: () => [{ minted_count: 2, is_complete: false, collided: [3] }],
  },
  {
    name: "jobs.mint_chunk",
    args: (story, { tenant, pending }) => [tenant, pending, holderOf(story), 3, [hashOf(story, 3), hashOf(story, 4)]],
    answer: () => [{ minted_count: 4, is_complete: true, collided: null }],
    changes: { batch: one, coupon: "-0 +2", event: "-0 +1" },
  },
  {
    name: "jobs.claim_deliveries",
    args: (_, { tenant, party, worker }) => [tenant, party, worker, shared, 1],
    changes: { webhook: one },
  },
  {
    name: "jobs.end_webhook_lease",
    args: (_, { tenant, party }) => [tenant, party, shared],
    changes: { webhook: one },
  },
  {
    name: "jobs.claim_deliveries",
    args: (story, { tenant, party, worker }) => [tenant, party, worker, holderOf(story), 3],
    answer: ({ tenant, distributorParty }, { events }) =>
      events.slice(0, 3).map((event_id) => ({ event_id, tenant, party: distributorParty, attempt: 1 })),
    changes: { webhook: one },
  },
  {
    name: "jobs.record_deliveries",
    args: (story, { tenant, party, events }) => [
      tenant,
      party,
      holderOf(story),
      JSON.stringify([
        { event_id: events[0], attempt: 1, http_status: 204, duration_ms: 1, is_taken: true },
        { event_id: events[1], attempt: 1, http_status: 500, duration_ms: 1, is_taken: false, retry_after_seconds: 9 },
      ]),
    ],
    changes: { delivery: "-2 +1", delivery_attempt: "-0 +2", webhook: one },
  },
  {
    name: "jobs.end_webhook_lease",
    args: (story, { tenant, party }) => [tenant, party, holderOf(story)],
    changes: { webhook: one },
  },
  {
    name: "admin.disable_webhook",
    args: ({ tenant, distributorParty }) => [tenant, distributorParty, "why"],
    changes: { webhook: one, delivery: "-7 +7", audit },
  },
  {
    name: "admin.enable_webhook",
    args: ({ tenant, distributorParty }) => [tenant, distributorParty, "why"],
    changes: { webhook: one, audit },
  },
  {
    name: "admin.replay_event",
    args: ({ tenant }, { events }) => [tenant, null, "why", events[1]],
    changes: { delivery: one, audit },
  },
  {
    name: "admin.replay_parked",
    args: ({ tenant, distributorParty }) => [tenant, distributorParty, "why"],
    answer: () => [6],
    changes: { delivery: "-6 +6", audit },
  },
  {
    name: "admin.replay_range",
    args: ({ tenant, distributorParty }) => [tenant, distributorParty, "2020-01-01", later, "why"],
    answer: () => [8],
    changes: { delivery: "-7 +8", audit },
  },
  {
    name: "admin.set_webhook_secret",
    args: ({ tenant, distributorParty }) => [tenant, distributorParty, "\\x01", "\\x02", "why"],
    changes: { webhook: one, replaced_secret: "-0 +1", audit },
  },
  {
    name: "admin.add_delegate",
    args: ({ tenant, merchant, makerParty }) => [tenant, merchant, makerParty, "why"],
    changes: { merchant_delegate: "-0 +1", audit },
  },
  {
    name: "admin.add_delegate",
    args: (story) => [story.tenant, story.merchant, otherMaker(story), "why"],
    changes: { merchant_delegate: "-0 +1", audit },
  },
  {
    name: "admin.remove_delegate",
    args: ({ tenant, merchant, makerParty }) => [tenant, merchant, makerParty, "why"],
    changes: { merchant_delegate: "-1 +0", audit },
  },
  {
    name: "admin.remove_delegate",
    args: (story) => [story.tenant, story.merchant, otherMaker(story), "why"],
    changes: { merchant_delegate: "-1 +0", audit },
  },
  {
    name: "admin.void_coupon",
    args: ({ tenant, coupons }) => [tenant, coupons["to void"].id, "why"],
    changes: { coupon: one, voiding: "-0 +1", event: "-0 +1", audit },
  },
  {
    name: "admin.release_lock",
    args: ({ tenant, coupons }) => [tenant, coupons["to cancel"].id, "why"],
    answer: ({ coupons }) => [coupons["to cancel"].redemption],
    changes: { coupon: one, redemption: one, audit },
  },
  {
    name: "admin.extend_coupon",
    args: ({ tenant, coupons }) => [tenant, coupons.issued.id, later, "why"],
    changes: { coupon: one, coupon_extension: "-0 +1", audit },
  },
  {
    name: "admin.void_batch",
    args: ({ tenant, batches }) => [tenant, batches["COMPLETED"]!.external_id, "why"],
    answer: () => [1],
    changes: { coupon: one, voiding: "-0 +1", event: "-0 +1", audit },
  },
  {
    name: "admin.open_export",
    args: ({ batches }) => [batches["ALLOCATED"]!.external_id, false],
    answer: ({ batches }, { tenant, released }) => [
      { tenant_id: tenant, batch_id: released, external_id: batches["ALLOCATED"]!.external_id, total_count: 15 },
    ],
    changes: { audit },
  },
  {
    name: "admin.read_export_page",
    args: (_, { tenant, released }) => [tenant, released, 0, 100],
    answer: ({ coupons }) =>
      kinds.map((kind, index) => ({ number: index + 1, code_attempt: 0, coupon_id: coupons[kind].id })),
  },
  {
    name: "admin.destroy_codes",
    args: ({ batches }) => [batches["ALLOCATED"]!.external_id, "why"],
    changes: { batch: one, audit },
  },
  {
    name: "admin.revoke_credential",
    args: ({ maker }) => [maker, "why"],
    changes: { credential: one, audit },
  },
];
