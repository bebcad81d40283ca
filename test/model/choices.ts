// Turns the numbers of a step into callers, coupons, merchants and names that exist when its turn comes.
import { newRequestId } from "../support/service.ts";
import type { Recorded } from "./call.ts";
import type { Coupon } from "./coupon.ts";
import { kindOf, merchantNames, type Caller } from "./kinds.ts";
import type { Model } from "./knowledge.ts";

// unknown: a well-formed code that no coupon has. mistyped: a code with a wrong tag.
export type BadCodes = { unknown: string; mistyped: string };
export type Choices = ReturnType<typeof createChoices>;

export function createChoices({ setup, coupons, records }: Model, badCodes: BadCodes) {
  // A caller takes part in every run, so each run has its own request IDs and keys.
  const run = newRequestId();
  let count = 0;
  const newName = () => `${run}-n${(count += 1)}`;
  const couponAt = (index: number): Coupon => coupons[index % coupons.length]!;
  const recordAt = (back: number, list: Recorded[] = records): Recorded | undefined =>
    list.at(-1 - (list.length === 0 ? 0 : back % list.length));
  return {
    setup,
    noName: `${run}-none`,
    otherKey: `${run}-k2`,
    newName,
    couponAt,
    // Counts back from the latest recorded call.
    recordAt,
    nameAt: (name: number) => (name === 0 ? newName() : `${run}-x${name}`),
    keyAt: (key: number, requestId: string) => (key === 0 ? null : key === 1 ? requestId : `${run}-k${key}`),
    callerAt: (by: number): Caller => setup.callers[by % setup.callers.length]!,
    codeAt: (index: number) =>
      index === 3 ? badCodes.unknown : index === 4 ? badCodes.mistyped : couponAt(index).code,
    // 0: a merchant where the caller may redeem the coupon, if there is one.
    merchantAt(at: number, by: Caller, coupon: number): string {
      if (at > 0) return merchantNames[at - 1]!;
      const scope = kindOf(couponAt(coupon).kind).merchants;
      return by.merchants.find((merchant) => scope?.includes(merchant) ?? true) ?? by.merchants[0] ?? "mch_1";
    },
    // Counts back from the latest successful lock or redeem.
    grantAt: (back: number) =>
      recordAt(
        back,
        records.filter(({ call, status }) => status === 200 && ["lock", "redeem"].includes(call.operation)),
      ),
  };
}
