// Each operation as an owner sends it: what it answers, and which of the owner's rows it changes.
import { routes } from "../../src/http/routes/table.ts";
import type { Client, Reply } from "../support/client.ts";
import type { Books } from "./books.ts";
import { amount, discountOf, type Owner } from "./tenants.ts";

type Fields = Record<string, unknown>;
export type Operation = {
  by: "maker" | "shop" | "distributor";
  fields: (owner: Owner, books: Books) => Fields;
  /** Of a write: parts of its answer; the changed rows by table, see ownChanges; why the same is refused once more. */
  answer?: (owner: Owner, books: Books) => Fields;
  changes?: (owner: Owner, books: Books) => string;
  again?: string;
};

const orderMinor = 8_000;

const inMoney = (owner: Owner, minor: number) => Number(amount(owner, minor, owner.currency));
const subscriber = ({ variant, distributorParty: party }: Owner) => (variant === "A" ? { party } : {});
const eventsOf = (books: Books, { tenant, distributorParty }: Owner) =>
  books.of("event").filter((row) => row.tenant === tenant && row.party === distributorParty);

const orderOf = (owner: Owner, coupon: string): Fields => ({
  merchant: owner.merchant,
  coupon: owner.coupons[coupon]!.code,
  order_amount: inMoney(owner, orderMinor),
  ...(owner.variant === "B" && { store: owner.store, terminal: owner.terminal }),
});

const grant = (coupon: string, changes: string, again: string): Operation => ({
  by: "shop",
  fields: (owner) => orderOf(owner, coupon),
  answer: (owner) => ({ discount_amount: inMoney(owner, discountOf(owner, orderMinor)) }),
  changes: () => `coupon -1 +1, redemption -0 +1${changes}`,
  again,
});

const endLock = (coupon: string, changes: string, again: string, isNamed: boolean): Operation => ({
  by: "shop",
  fields: ({ merchant, coupons }) => {
    const { code, requestId } = coupons[coupon]!;
    return { coupon: code, lock_request_id: requestId, ...(isNamed && { merchant }) };
  },
  answer: ({ coupons }) => ({ redemption: coupons[coupon]!.last.redemption }),
  changes: () => `coupon -1 +1, redemption -1 +1${changes}`,
  again,
});

const time = /^20.*Z$/;
const stop = (batch: Fields): Operation => ({
  by: "maker",
  fields: ({ batches }) => ({ batch: batches.scoped, reason: "leaked" }),
  answer: ({ batches }) => ({ batch: { external_id: batches.scoped, ...batch } }),
  changes: () => "batch -1 +1, audit -0 +1",
});

export const operations: Record<string, Operation> = {
  // First, while the sequencer has processed everything.
  close_day: {
    by: "distributor",
    fields: ({ distributorParty: distributor }) => ({ distributor }),
    answer: ({ distributorParty: distributor_party_id }) => ({ distributor_party_id }),
    changes: () => "ledger_book … -1 +1, statement -0 +1",
  },
  lock: grant("toLock", "", "COUPON_LOCKED"),
  redeem: grant("toRedeem", ", ledger_entry -0 +1", "COUPON_REDEEMED"),
  confirm: endLock("toConfirm", ", ledger_entry -0 +1", "LOCK_CONFIRMED", true),
  cancel: endLock("toCancel", "", "LOCK_CANCELLED", false),
  void: {
    by: "shop",
    fields: ({ merchant, coupons }) => ({ merchant, coupon: coupons.toVoid!.code }),
    answer: ({ coupons }) => ({ coupon_id: coupons.toVoid!.id }),
    changes: () => "coupon -1 +1, voiding -0 +1, event … -0 +1",
    again: "COUPON_NOT_VOIDABLE",
  },
  reverse: {
    by: "shop",
    fields: ({ coupons }) => ({ redemption: coupons.toReverse!.last.redemption }),
    answer: ({ coupons }) => ({ redemption: coupons.toReverse!.last.redemption }),
    // That of side 2 is reissued.
    changes: ({ currency }) =>
      `redemption -1 +1, reversal -0 +1, ledger_entry -0 +1${currency === "EUR" ? "" : ", coupon -1 +1"}`,
    again: "REDEMPTION_REVERSED",
  },
  create_batch: {
    by: "maker",
    fields: ({ template }) => ({ template, total_count: 6 }),
    answer: ({ makerParty: maker_party_id, distributorParty: distributor_party_id, template: template_id }) => ({
      batch: { status: "PENDING", total_count: 6, minted_count: 0, maker_party_id, distributor_party_id, template_id },
    }),
    changes: () => "batch -0 +1",
  },
  allocate_batch: {
    by: "maker",
    fields: ({ batches }) => ({ batch: batches.unreleased }),
    answer: ({ batches }) => ({ batch: { external_id: batches.unreleased, status: "ALLOCATED", total_count: 2 } }),
    changes: () => "batch -1 +1, event … -0 +1",
    again: "BATCH_ALREADY_ALLOCATED",
  },
  suspend_batch: stop({ suspended_at: time }),
  resume_batch: stop({ suspended_at: null }),
  recall_batch: stop({ recall: { requested_at: time, voided_count: 0, finished_at: null } }),
  test_webhook: {
    by: "distributor",
    fields: (owner) => ({ ...subscriber(owner), event_type: "coupon.expired" }),
    answer: () => ({ event_type: "coupon.expired" }),
    changes: () => "test_delivery … -0 +1",
  },
  open_portal: {
    by: "shop",
    fields: () => ({}),
    answer: () => ({ portal_link: /^lnk_/, url: /\/sign-in\?link=lnk_/, expires_at: time }),
    changes: () => "portal_link -0 +1",
  },
  replay_events: {
    by: "distributor",
    fields: (owner, books) => ({ ...subscriber(owner), event_id: eventsOf(books, owner).at(-1)!.event }),
    answer: () => ({ replayed: 1 }),
    changes: () => "delivery … -1 +1",
  },
  "replay_events of a time": {
    by: "distributor",
    fields: (owner) => ({ ...subscriber(owner), from: "2020-01-01T00:00:00Z", to: "2099-01-01T00:00:00Z" }),
    answer: (owner, books) => ({ replayed: eventsOf(books, owner).length }),
    // The one that was replayed before waits already.
    changes: (owner, books) => `delivery … -2 +${eventsOf(books, owner).length - 1}`,
  },
  query: { by: "shop", fields: (owner) => orderOf(owner, "issued") },
  get_redemption: {
    by: "shop",
    fields: ({ coupons }) => ({ redemption: coupons.toReverse!.last.redemption }),
  },
  list_redemptions: { by: "shop", fields: ({ merchant }) => ({ merchant }) },
  list_batches: { by: "maker", fields: () => ({}) },
  get_batch: { by: "maker", fields: ({ batches }) => ({ batch: batches.released }) },
  export_codes: {
    by: "maker",
    fields: ({ variant, batches, makerParty: party }) => ({
      batch: batches.unreleased,
      ...(variant === "A" && { party }),
    }),
  },
  get_request: { by: "shop", fields: ({ coupons }) => ({ request_id: coupons.toReverse!.requestId }) },
  pull_events: { by: "distributor", fields: () => ({}) },
  list_reconciliations: { by: "distributor", fields: () => ({}) },
  get_reconciliation: {
    by: "distributor",
    fields: ({ tenant, distributorParty: distributor }, books) => {
      const { business_date: date } = books.of("statement").find((row) => row.tenant === tenant)!;
      return { date, kind: "detail", distributor };
    },
  },
  get_webhook: { by: "distributor", fields: subscriber },
};

export const routeOf = (name: string) => routes.find(({ operation }) => operation === name.split(" ")[0])!;

// The fields that name what a 404 calls a resource, where the words differ.
const fieldsOf: Record<string, string[]> = {
  request: ["request_id"],
  event: ["event_id"],
  reconciliation: ["date", "distributor"],
};

/** The fields with IDs, in the order in which the service checks them, with the resource that a 404 names. */
export function idsOf(name: string, { variant }: Owner): [field: string, resource: string][] {
  const resources = routeOf(name).resources?.(variant) ?? [];
  return resources.flatMap((resource): [string, string][] => {
    if (resource === "event" && name !== "replay_events") return [];
    // In Variant B a caller has one webhook, and does not name it.
    if (resource === "webhook") return variant === "A" ? [["party", resource]] : [];
    // To a party that is neither its maker nor its distributor, a batch does not exist.
    if (name === "export_codes" && variant === "A") return ["batch", "party"].map((field) => [field, resource]);
    return (fieldsOf[resource] ?? [resource]).map((field) => [field, resource]);
  });
}

/** Sends the fields in the path, the query or the body, as the route wants them. */
export async function sendOperation(by: Client, name: string, fields: Fields, request_id: string): Promise<Reply> {
  const { method, path, isWrite } = routeOf(name);
  const rest = new Map(Object.entries(fields));
  const target = path.replace(/\{(\w+)\}/g, (_, field) => {
    const value = encodeURIComponent(String(rest.get(field)));
    rest.delete(field);
    return value;
  });
  const others = Object.fromEntries(rest);
  if (method === "GET") return by.get(rest.size === 0 ? target : `${target}?${new URLSearchParams(others as any)}`);
  return by.post(target, isWrite ? { request_id, ...others } : others, { idempotencyKey: `key ${request_id}` });
}
