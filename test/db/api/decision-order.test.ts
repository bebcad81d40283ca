// The order in which an operation decides: a call that deserves several refusals gets the one that comes first in the
// table of docs/integrate.md. test/http/refusals.test.ts has the refusals before an operation decides.
import t from "tap";
import { batchKey, makeCode } from "../../../src/crypto/coupon-code.ts";
import type { Coupon } from "../../support/caller.ts";
import { newRequestId } from "../../support/request-id.ts";
import { scenario } from "../../support/scenario.ts";
import { readState } from "../../support/state.ts";

const world = await scenario(t);

type Terms = Record<string, unknown>;
/** What makes a lock or redeem deserve a refusal. */
type Fault = {
  code: string;
  /** Of the coupon's template. */
  terms?: Terms;
  /** Changes the call. */
  spoil?(call: Terms): void;
  /** What happens to the coupon before. */
  step?: "keep" | "lock" | "expire" | "redeem" | "void" | "cancel";
  /** Faults that no coupon has beside this one. */
  excludes?: string[];
};

// In the order of the table. INVALID_REQUEST is the one that depends on the coupon's currency.
const faults: Fault[] = [
  { code: "NOT_FOUND", spoil: (call) => (call["merchant"] = "mch_none") },
  {
    code: "INVALID_REQUEST",
    spoil: (call) => (call["order_amount"] = 1.001),
    // An amount in another currency is not read.
    excludes: ["CURRENCY_MISMATCH"],
  },
  { code: "MERCHANT_NOT_IN_SCOPE", terms: { merchants: ["mch_a2"] } },
  { code: "LOCK_CANCELLED", step: "cancel" },
  { code: "COUPON_VOIDED", step: "void", excludes: ["COUPON_REDEEMED", "COUPON_EXPIRED", "COUPON_LOCKED"] },
  {
    code: "COUPON_REDEEMED",
    step: "redeem",
    excludes: ["COUPON_LOCKED", "COUPON_NOT_RELEASED", "COUPON_NOT_YET_VALID"],
  },
  { code: "COUPON_EXPIRED", step: "expire", excludes: ["COUPON_NOT_YET_VALID"] },
  { code: "COUPON_LOCKED", step: "lock", excludes: ["COUPON_NOT_RELEASED", "COUPON_NOT_YET_VALID"] },
  { code: "COUPON_NOT_RELEASED", step: "keep" },
  { code: "COUPON_NOT_YET_VALID", terms: { valid_from: "2098-01-01T00:00:00Z" } },
  { code: "CURRENCY_MISMATCH", spoil: (call) => (call["currency"] = "USD") },
  {
    code: "DISCOUNT_NOT_COMPUTABLE",
    terms: { skus: ["A1"] },
    spoil: (call) => delete call["redemption_context"],
    excludes: ["NO_ELIGIBLE_ITEMS"],
  },
  { code: "ORDER_BELOW_MINIMUM", terms: { min_order_amount: 300 } },
  {
    code: "NO_ELIGIBLE_ITEMS",
    terms: { skus: ["A1"] },
    spoil: (call) => (call["redemption_context"] = { items: [{ sku: "A2", amount: 200 }] }),
  },
];

const order = { order_amount: 200, redemption_context: { items: [{ sku: "A1", amount: 200 }] } };
const operations = ["lock", "redeem"] as const;
type Operation = (typeof operations)[number];

/** A coupon with these faults, and for each operation the call that deserves their refusals. */
async function prepare(chosen: Fault[]): Promise<{ coupon: Coupon; calls: Record<Operation, Terms> }> {
  const { maker, till, addTemplate, expire } = world.a;
  const terms: Terms = Object.assign({}, ...chosen.map((fault) => fault.terms ?? {}));
  const steps = new Set(chosen.map(({ step }) => step));
  const isReleased = !steps.has("keep");
  const batch = await world.makeBatch(maker, await addTemplate(terms), 1, { isReleased });
  const coupon = batch.coupons[0]!;
  const place = { merchant: terms["merchants"] === undefined ? "mch_a" : "mch_a2" };
  if (steps.has("lock") || steps.has("redeem")) await till.ok.lock(coupon, { ...order, order_amount: 1_000, ...place });
  if (steps.has("expire")) await expire(coupon);
  if (steps.has("redeem")) await till.ok.confirm(coupon, place);
  if (steps.has("void"))
    await world.admin.rows("select admin.void_coupon('ten_a', $1, 'to arrange a test')", [coupon.id]);
  const calls: Record<Operation, Terms> = { lock: { ...order }, redeem: { ...order } };
  for (const call of Object.values(calls)) {
    const lockRequestId = newRequestId();
    call["request_id"] = lockRequestId;
    if (steps.has("cancel")) await till.cancel({ ...coupon, lockRequestId });
    for (const { spoil } of chosen) spoil?.(call);
  }
  return { coupon, calls };
}

const areCompatible = (one: Fault, other: Fault) =>
  !one.excludes?.includes(other.code) && !other.excludes?.includes(one.code);

/** Divides the faults after this one into groups that a coupon can have beside it. */
function groupLater(first: Fault, later: Fault[]): Fault[][] {
  const groups: Fault[][] = [[]];
  for (const fault of later.filter((one) => areCompatible(first, one))) {
    const group = groups.find((others) => others.every((one) => areCompatible(one, fault)));
    if (group === undefined) groups.push([fault]);
    else group.push(fault);
  }
  return groups;
}

t.test("lock and redeem: of several refusals the first in the table is given, and nothing changes", async (t) => {
  const cases = faults.flatMap((first, index) =>
    [[], ...groupLater(first, faults.slice(index + 1))].map((later) => [first, ...later]),
  );
  const prepared = await Promise.all(cases.map(prepare));
  const before = await readState(world.owner);
  for (const [index, { coupon, calls }] of prepared.entries()) {
    const codes = cases[index]!.map(({ code }) => code);
    for (const operation of operations) {
      const { json } = await world.a.till[operation](coupon, calls[operation]);
      t.equal(json.code, codes[0], `${operation}: ${codes.join(", ")}`);
    }
    // The mark is about a lock with this request_id, not about a query.
    if (codes[0] === "LOCK_CANCELLED" && codes.length > 1) {
      const { json } = await world.a.till.query(coupon, calls.lock);
      t.equal(json.quote.code, codes[1], `query: ${codes.join(", ")}`);
    }
  }
  t.strictSame(await readState(world.owner), before, "nothing changes");
});

t.test("confirm, void and query: the merchant, the coupon, the merchant scope, then the state", async (t) => {
  const { till, makeCoupons } = world.a;
  const [voided, cancelled] = (await makeCoupons(2, "ISSUED", "tpl_scoped")) as [Coupon, Coupon];
  const [open, live] = (await makeCoupons(2)) as [Coupon, Coupon];
  const unknown = makeCode(world.keys, "1", batchKey(world.keys, "1", Buffer.alloc(32, 9)), 1);
  const elsewhere = { merchant: "mch_a2" };
  await till.ok.void(voided, elsewhere);
  for (const coupon of [cancelled, open]) {
    await till.ok.lock(coupon, elsewhere);
    await till.ok.cancel(coupon);
  }
  await till.ok.lock(live, elsewhere);
  const refusalOf = async (operation: "confirm" | "void" | "query", coupon: Coupon, merchant: string) => {
    const { json } = await till[operation](coupon, { merchant });
    return json.details?.resource ?? json.code;
  };
  for (const operation of ["confirm", "void", "query"] as const) {
    t.equal(await refusalOf(operation, { ...voided, code: unknown }, "mch_none"), "merchant", operation);
    t.equal(await refusalOf(operation, voided, "mch_none"), "merchant", operation);
    t.equal(await refusalOf(operation, { ...voided, code: unknown }, "mch_a"), "coupon", operation);
    t.equal(await refusalOf(operation, voided, "mch_a"), "MERCHANT_NOT_IN_SCOPE", operation);
  }
  t.equal(await refusalOf("confirm", cancelled, "mch_a"), "MERCHANT_NOT_IN_SCOPE");
  t.equal(await refusalOf("confirm", open, "mch_a"), "LOCK_NOT_FOUND", "of another merchant");
  t.equal(await refusalOf("confirm", live, "mch_a"), "LOCK_NOT_FOUND", "of another merchant, and live");
  t.equal(await refusalOf("confirm", open, "mch_a2"), "LOCK_CANCELLED");
});

t.test("create_batch: a reused key, the template, the distributor, then the template's end", async (t) => {
  const { maker, addTemplate } = world.a;
  const over = await addTemplate({ valid_to: "2021-01-01T00:00:00Z" });
  const create = async (template: string, distributor: string, request_id = newRequestId()) => {
    const { json } = await maker.createBatch(template, 1, { distributor, request_id });
    return json.details?.resource ?? json.code;
  };
  const used = newRequestId();
  t.equal(await create("tpl_fixed", "pty_a", used), undefined);
  t.equal(await create("tpl_none", "pty_none"), "template");
  t.equal(await create(over, "pty_none"), "distributor");
  t.equal(await create(over, "pty_a"), "TEMPLATE_EXPIRED");
  // Without the record of the request, the batch itself tells that its key is used.
  await world.owner.rows("delete from core.request where request_id = $1", [used]);
  for (const [template, distributor] of [
    [over, "pty_a"],
    ["tpl_none", "pty_a"],
    ["tpl_fixed", "pty_none"],
  ] as const)
    t.equal(await create(template, distributor, used), "IDEMPOTENCY_KEY_REUSED");
});
