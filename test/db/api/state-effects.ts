// What a successful operation answers and writes, for the state matrix.
import type { Test } from "tap";
import type { Arranged, VariantSetup } from "../../support/arrange.ts";
import type { Reply } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import type { CouponHistory } from "../../support/inspect.ts";
import type { Operation, State } from "./states.ts";

export type Success = {
  setup: VariantSetup;
  state: State;
  operation: Operation;
  coupon: Arranged;
  status: string;
  answer: Reply;
  history: CouponHistory;
};

/** Checks the body of a successful answer, field by field. */
export function checkAnswer(
  t: Test,
  { setup, state, operation, coupon, status, answer: { json }, history }: Success,
): void {
  const own = { redemption: coupon.redemption };
  switch (operation) {
    case "lock":
      fits(t, json, { ok: true, redemption: /^red_/, discount_amount: 5, lock_expires_at: /Z$/ });
      return void t.strictSame(Object.keys(json), ["ok", "redemption", "discount_amount", "lock_expires_at"]);
    case "redeem":
      fits(t, json, { ok: true, redemption: /^red_/, discount_amount: 5 });
      return void t.strictSame(Object.keys(json), ["ok", "redemption", "discount_amount"]);
    case "confirm":
      return void t.strictSame(json, { ok: true, ...own, status: "REDEEMED" });
    case "cancel":
      return void t.strictSame(json, { ok: true, ...own, status: "CANCELLED" });
    case "reverse":
      t.match(json.reversal, /^rvs_/);
      return void t.strictSame(json, { ok: true, ...own, reversal: json.reversal, status: "REVERSED" });
    case "void":
      return void t.strictSame(json, { ok: true, coupon_id: coupon.couponId, status: "VOIDED" });
    case "query": {
      // Variant A shows the redemption, unless its lock was cancelled or has expired.
      const isShown = /^(LOCKED|REDEEMED|REVERSED)/.test(state);
      const fields =
        setup.variant === "B"
          ? ["template_id", "batch_id", "created_at"]
          : ["batch_id", "created_at", "valid_from", "valid_to", ...(isShown ? ["redemption"] : [])];
      t.strictSame(Object.keys(json), ["ok", "coupon"]);
      t.strictSame(Object.keys(json.coupon), ["coupon_id", "status", ...fields]);
      fits(t, json.coupon, { coupon_id: coupon.couponId, status });
      if (setup.variant === "A" && isShown)
        fits(t, json.coupon.redemption, {
          merchant_id: setup.merchant,
          status: history.redemptions.at(-1),
          discount_amount: 5,
          currency: "EUR",
        });
    }
  }
}

/** The history of the coupon after a refusal, and the only tables that change. */
export function effectOfRefusal({ setup, state, operation, answer, history }: Omit<Success, "coupon" | "status">): {
  history: CouponHistory;
  tables: string[];
} {
  // A lock or redeem marks an expired lock LAPSED, whatever it is answered. Here the coupon has expired too.
  const isExpired = state === "EXPIRED, its lock lapsed" && history.status === "LOCKED";
  if (isExpired && ["lock", "redeem"].includes(operation)) {
    const event = { type: "coupon.expired", party: setup.distributor, redemption: null };
    const redemptions = history.redemptions.with(-1, "LAPSED");
    return {
      history: { ...history, status: "EXPIRED", redemptions, events: [...history.events, event] },
      tables: ["coupon", "event", "redemption"],
    };
  }
  // A cancel may arrive before its lock. It is recorded, so that the lock is refused later.
  const isEarly = operation === "cancel" && answer.json.code === "LOCK_NOT_FOUND";
  return { history, tables: isEarly ? ["lock_cancellation"] : [] };
}

/** The history of the coupon after a success, and the only tables that change. */
export function effectOf({ setup, operation, coupon, status, answer, history }: Omit<Success, "state">): {
  history: CouponHistory;
  tables: string[];
} {
  // An operation that takes a coupon with an expired lock also marks that lock LAPSED.
  const lapses = history.redemptions.at(-1) === "LOCKED" && ["lock", "redeem", "void"].includes(operation);
  const redemptions = lapses ? history.redemptions.with(-1, "LAPSED") : history.redemptions;
  const redemption = (answer.json.redemption as string | undefined) ?? coupon.redemption;
  const event = (type: string, of: string | null) => ({ type, party: setup.distributor, redemption: of });
  const expired = status === "EXPIRED" ? [event("coupon.expired", null)] : [];
  switch (operation) {
    case "lock": {
      // A coupon whose lock has expired already has status LOCKED.
      const tables = status === history.status ? ["redemption"] : ["coupon", "redemption"];
      return { history: { ...history, status, redemptions: [...redemptions, "LOCKED"] }, tables };
    }
    case "redeem":
    case "confirm": {
      const now = operation === "redeem" ? [...redemptions, "REDEEMED"] : redemptions.with(-1, "REDEEMED");
      const events = [...history.events, event("coupon.redeemed", redemption)];
      return {
        history: { status, redemptions: now, amounts: [...history.amounts, 500], events },
        tables: ["coupon", "ledger_entry", "redemption"],
      };
    }
    case "cancel":
      return {
        history: {
          ...history,
          status,
          redemptions: redemptions.with(-1, "CANCELLED"),
          events: [...history.events, ...expired],
        },
        tables: ["coupon", ...expired.map(() => "event"), "redemption"],
      };
    case "reverse": {
      const events = [...history.events, event("coupon.reversed", redemption), ...expired];
      const tables = [...expired.map(() => "event"), "ledger_entry", "redemption", "reversal"];
      return {
        history: { status, redemptions: redemptions.with(-1, "REVERSED"), amounts: [...history.amounts, -500], events },
        tables: status === history.status ? tables : ["coupon", ...tables],
      };
    }
    case "void":
      return {
        history: { ...history, status, redemptions, events: [...history.events, event("coupon.voided", null)] },
        tables: ["coupon", "event", ...(lapses ? ["redemption"] : []), "voiding"],
      };
    case "query":
      return { history, tables: [] };
  }
}
