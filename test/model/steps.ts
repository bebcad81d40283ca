// A run consists of a few coupons and a list of steps. A step refers to what exists when its turn comes ("the second
// latest lock"), so a list still makes sense after the shrinker has removed steps.
import fc from "fast-check";
import { kindNames, kindOf, type Setup, type KindName } from "./kinds.ts";
import { listOf } from "./list.ts";

// Every number is a choice (see choices.ts), and 0 is the simplest one, which the shrinker prefers.
// minor: an amount in minor units. isFine: has one more decimal than the unit allows.
export type Amount = { minor: number; isFine: boolean };
export type Order = {
  amount: Amount | null;
  currency: number; // none, the coupon's, another
  items: { sku: number; amount: Amount | null }[] | null;
  store: number;
  terminal: number;
  orderId: number;
};
export type Step =
  // name: a new request_id, or one of a few that an earlier cancel may have named. key: none, equal to the request_id,
  // or one of a few.
  | { do: "lock" | "redeem"; by: number; coupon: number; at: number; name: number; key: number; order: Order }
  // lock: counts back from the latest lock or redeem. by, coupon, at: those of the lock, or others.
  | { do: "confirm"; lock: number; by: number; coupon: number; at: number; key: number }
  | { do: "cancel"; lock: number; by: number; coupon: number; key: number }
  // Cancels a lock before it comes.
  | { do: "cancel ahead"; name: number; by: number; coupon: number }
  | { do: "reverse"; lock: number; by: number; key: number }
  | { do: "void" | "query"; by: number; coupon: number; at: number }
  | { do: "allocate" | "get batch"; by: number; coupon: number }
  // call: counts back from the latest recorded call.
  | { do: "retry"; call: number; how: RetryKind }
  | { do: "get request"; call: number; by: number }
  | { do: "lapse" | "begin" | "release" | "withdraw"; coupon: number }
  | { do: "extend"; coupon: number; to: "usual" | "past" | "longer" }
  | { do: "work" };
export type RetryKind = (typeof retryKinds)[number];
export type Run = { coupons: KindName[]; isOverHttp: boolean; steps: Step[] };

const retryKinds = [
  "same",
  "respelled",
  "changed",
  "other operation",
  "other caller",
  "new name",
  "without key",
  "other key",
] as const;
const mostSteps = 100;

const mostly = (weight: number, most: number) =>
  fc.oneof({ weight, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(most) });
const amount = fc.record({
  minor: fc.oneof(
    { weight: 6, arbitrary: fc.nat(3_000) },
    { weight: 1, arbitrary: fc.constantFrom(0, 1, 3, 500, 1_000, 2_000, 99_999_999_999) },
  ),
  isFine: fc.oneof({ weight: 30, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.boolean() }),
});
const orNone = <T>(weight: number, arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 1, arbitrary: fc.constant(null) }, { weight, arbitrary });

function stepOf(setup: Setup): fc.Arbitrary<Step> {
  const others = setup.callers.length;
  const by = mostly(3, others - 1);
  const itsBy = mostly(8, others);
  // A coupon of the run, an unknown code, or a mistyped code.
  const coupon = fc.oneof({ weight: 30, arbitrary: fc.nat(2) }, { weight: 1, arbitrary: fc.nat(4) });
  const itsCoupon = mostly(12, 5);
  const at = mostly(5, 4);
  const lock = mostly(3, 4);
  const key = mostly(8, 3);
  const name = mostly(8, 2);
  const item = fc.record({ sku: fc.nat(3), amount: orNone(6, amount) });
  const items =
    setup.variant === "A"
      ? orNone(1, fc.array(item, { maxLength: 3 }))
      : fc.oneof({ weight: 30, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.constant([]) });
  const order = fc.record({
    amount: orNone(9, amount),
    currency: mostly(6, 2),
    items,
    store: mostly(4, 3),
    terminal: mostly(20, 2),
    orderId: mostly(3, 2),
  });
  const one = <const D extends Step["do"], F>(weight: number, name: D, fields: fc.Arbitrary<F>) => ({
    weight,
    arbitrary: fields.map((rest) => ({ do: name, ...rest }) as unknown as Step),
  });
  return fc.oneof(
    one(36, "lock", fc.record({ by, coupon, at, name, key, order })),
    one(16, "redeem", fc.record({ by, coupon, at, name, key, order })),
    one(28, "confirm", fc.record({ lock, by: itsBy, coupon: itsCoupon, at: mostly(8, 4), key })),
    one(12, "cancel", fc.record({ lock, by: itsBy, coupon: itsCoupon, key })),
    one(4, "cancel ahead", fc.record({ name: fc.integer({ min: 1, max: 2 }), by, coupon })),
    one(24, "reverse", fc.record({ lock, by: itsBy, key })),
    one(2, "void", fc.record({ by, coupon, at })),
    one(12, "query", fc.record({ by, coupon, at })),
    one(3, "allocate", fc.record({ by, coupon })),
    one(2, "get batch", fc.record({ by, coupon })),
    one(20, "retry", fc.record({ call: mostly(1, 8), how: fc.constantFrom(...retryKinds) })),
    one(6, "get request", fc.record({ call: mostly(1, 6), by: itsBy })),
    one(12, "lapse", fc.record({ coupon })),
    one(3, "begin", fc.record({ coupon })),
    one(4, "release", fc.record({ coupon })),
    one(1, "withdraw", fc.record({ coupon })),
    one(9, "extend", fc.record({ coupon, to: fc.constantFrom("usual" as const, "past" as const, "longer" as const) })),
    one(6, "work", fc.record({})),
  );
}

// Reissued coupons have the longest histories, so a run has more of them. A run has fifty steps on average. One run in
// five goes over HTTP, signed; the others go to the gate, through the same reading of the request.
export const runOf = (setup: Setup): fc.Arbitrary<Run> =>
  fc.record({
    coupons: fc.array(fc.constantFrom(...kindNames, ...kindNames.filter((name) => kindOf(name).isReissued)), {
      minLength: 1,
      maxLength: 3,
    }),
    isOverHttp: fc.nat(4).map((way) => way === 4),
    steps: listOf(stepOf(setup), mostSteps),
  });
