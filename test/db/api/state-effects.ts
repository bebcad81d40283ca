// What an operation answers and writes, for the state matrix.
import type { Coupon } from "../../support/caller.ts";
import type { CouponHistory } from "../../support/inspect.ts";
import type { Scene } from "../../support/scene.ts";
import { expectedOf, type Operation, type State } from "./states.ts";

type Given = {
  scene: Scene;
  state: State;
  operation: Operation;
  /** As the call named it. */
  coupon: Coupon;
  /** The answer, which has new IDs. */
  json: { redemption?: string; coupon?: object };
  /** Of the coupon, before the call. */
  history: CouponHistory;
};
/** json: all fields in order. history: of the coupon afterwards. tables: those that change, and no others. */
type Effect = { httpStatus: number; json: object; history: CouponHistory; tables: string[] };

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

// Of each refusal that has some.
const detailsOf = ({ redemption }: Coupon): Record<string, object> => ({
  NOT_FOUND: { resource: "redemption" },
  LOCK_EXPIRED: { lock_expires_at: time },
  LOCK_CONFIRMED: { redemption },
  COUPON_VOIDED: { voided_at: time },
  COUPON_REDEEMED: { redeemed_at: time },
  COUPON_EXPIRED: { valid_to: time },
  COUPON_LOCKED: { lock_expires_at: time },
  COUPON_NOT_YET_VALID: { valid_from: "2098-01-01T00:00:00.000Z" },
  REDEMPTION_REVERSED: { reversal: /^rvs_/, reversed_at: time },
});

export function effectOfRefusal({ scene, state, operation, coupon, history }: Given, code: string): Effect {
  const details = detailsOf(coupon)[code] ?? null;
  const refusal = {
    httpStatus: code === "NOT_FOUND" ? 404 : 409,
    json: { code, message: /./, request_id: /./, details },
    history,
    tables: [],
  };
  // A lock or redeem marks an expired lock LAPSED, whatever it is answered. Here the coupon has expired too.
  const isExpired = state === "EXPIRED, its lock lapsed" && history.status === "LOCKED";
  if (isExpired && (operation === "lock" || operation === "redeem")) {
    const event = { type: "coupon.expired", party: scene.distributorParty, redemption: null };
    const redemptions = history.redemptions.with(-1, "LAPSED");
    return {
      ...refusal,
      history: { ...history, status: "EXPIRED", redemptions, events: [...history.events, event] },
      tables: ["coupon", "event", "redemption"],
    };
  }
  // A cancel may arrive before its lock. It is recorded, so that the lock is refused later.
  const isEarly = operation === "cancel" && code === "LOCK_NOT_FOUND";
  return isEarly ? { ...refusal, tables: ["lock_cancellation"] } : refusal;
}

/** What the listed lock of the coupon would answer. */
function quoteOf({ state, scene }: Given): object {
  const { code = null } = expectedOf(state, "lock", scene.variant);
  const isGranted = code === null;
  const message = isGranted ? null : /./;
  return { redeemable: isGranted, discount_amount: isGranted ? 5 : null, currency: "EUR", code, message };
}

/** status: of the coupon afterwards. */
export function effectOf(given: Given, status: string): Effect {
  const { scene, operation, coupon, json, history } = given;
  const { redemption = coupon.redemption } = json;
  const { redemptions, amounts, events } = history;
  const event = (type: string, of: string | null = null) => ({ type, party: scene.distributorParty, redemption: of });
  // How a coupon that is freed ends, if it does not become ISSUED.
  const expired = status === "EXPIRED" ? [event("coupon.expired")] : [];
  const recalled = status === "VOIDED" && operation !== "void" ? [event("coupon.voided")] : [];
  const ended = [...expired, ...recalled];
  // An operation that takes a coupon with an expired lock also marks that lock LAPSED.
  const lapsed = redemptions.at(-1) === "LOCKED" ? redemptions.with(-1, "LAPSED") : redemptions;
  const effect = (fields: object, changes: Partial<CouponHistory>, tables: string[]): Effect => ({
    httpStatus: 200,
    json: { ok: true, ...fields },
    history: { ...history, status, ...changes },
    tables: [...tables, ...ended.map(() => "event"), ...recalled.map(() => "voiding")].sort(),
  });
  const redeemed = { amounts: [...amounts, 500], events: [...events, event("coupon.redeemed", redemption)] };
  const eventTables = ["coupon", "ledger_entry", "redemption"];
  const granted = { redemption: /^red_/, coupon_id: coupon.id, discount_amount: 5, currency: "EUR" };
  switch (operation) {
    case "lock":
      return effect({ ...granted, lock_expires_at: time }, { redemptions: [...lapsed, "LOCKED"] }, [
        "coupon",
        "redemption",
      ]);
    case "redeem": {
      return effect(granted, { ...redeemed, redemptions: [...lapsed, "REDEEMED"] }, eventTables);
    }
    case "confirm": {
      const fields = { redemption, status: "REDEEMED" };
      return effect(fields, { ...redeemed, redemptions: redemptions.with(-1, "REDEEMED") }, eventTables);
    }
    case "cancel": {
      const changes = { redemptions: redemptions.with(-1, "CANCELLED"), events: [...events, ...ended] };
      // The recall counts it later.
      const tables = ["coupon", "redemption", ...recalled.map(() => "recalled_lock")];
      return effect({ redemption, status: "CANCELLED" }, changes, tables);
    }
    case "reverse":
      return effect(
        { redemption, reversal: /^rvs_/, status: "REVERSED" },
        {
          redemptions: redemptions.with(-1, "REVERSED"),
          amounts: [...amounts, -500],
          events: [...events, event("coupon.reversed", redemption), ...ended],
        },
        ["ledger_entry", "redemption", "reversal", ...(status === history.status ? [] : ["coupon"])],
      );
    case "void":
      return effect(
        { coupon_id: coupon.id, status: "VOIDED" },
        { redemptions: lapsed, events: [...events, event("coupon.voided")] },
        ["coupon", "event", "voiding", ...(lapsed === redemptions ? [] : ["redemption"])],
      );
    case "query": {
      // test/owners compares the other fields.
      const shown = { ...json.coupon, coupon_id: coupon.id, status };
      return { httpStatus: 200, json: { ok: true, coupon: shown, quote: quoteOf(given) }, history, tables: [] };
    }
  }
}
