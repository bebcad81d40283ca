// Coupons in every state. The service itself brings them there: by calls, provisioning and patches, never by writing
// rows.
import type { Operation, State, Variant } from "../db/api/states.ts";
import { postOk, type Client } from "./client.ts";
import { newRequestId, type Running } from "./service.ts";
import { template } from "./tenants.ts";

// A coupon, with the lock for confirm and cancel and the redemption for reverse.
export type Arranged = { code: string; couponId: string; lockRequestId: string; redemption: string };
export type VariantSetup = {
  variant: Variant;
  tenant: string;
  maker: Client;
  till: Client;
  otherTill: Client;
  merchant: string;
  distributor: string;
  templates: Record<Kind, string>;
};
type Kind = "usual" | "reissued" | "short" | "later";

const unknownRedemption = `red_${"0".repeat(26)}`;
const past = "2021-01-01T00:00:00Z";

// The callers and templates of a variant. In B the tills belong to two parties; in A both belong to the tenant.
// `changes` override terms of the templates, including those of an earlier call.
export async function setUpVariant(
  service: Running,
  variant: Variant,
  changes: Partial<Record<Kind, object>> = {},
): Promise<VariantSetup> {
  const [tenant, maker, distributor] =
    variant === "A" ? ["ten_a", "pty_a", "pty_a"] : ["ten_b", "pty_maker", "pty_dist"];
  const makeTemplate = (kind: Kind, more: object) =>
    template(`tpl_${kind}${variant.toLowerCase()}`, maker, { name: kind, distributor, ...more, ...changes[kind] });
  const made = {
    usual: makeTemplate("usual", {}),
    reissued: makeTemplate("reissued", { after_reversal: "reissued" }),
    short: makeTemplate("short", { lock_ttl_seconds: 1 }),
    later: makeTemplate("later", { valid_from: "2098-01-01T00:00:00Z" }),
  };
  await service.apply({ tenants: [{ id: tenant, name: variant, variant, templates: Object.values(made) }] });
  return {
    variant,
    tenant,
    distributor,
    maker: service.as(variant === "A" ? "ak_a" : "ak_maker"),
    till: service.as(variant === "A" ? "ak_a" : "ak_pos"),
    otherTill: service.as(variant === "A" ? "ak_a_second" : "ak_shop"),
    merchant: variant === "A" ? "mch_a" : "mch_b",
    templates: { usual: made.usual.id, reissued: made.reissued.id, short: made.short.id, later: made.later.id },
  };
}

// Returns `count` coupons in each state. A lock that must expire may still be live, see untilLocksExpire.
export async function arrange(
  service: Running,
  setup: VariantSetup,
  states: readonly State[],
  count: number,
): Promise<Map<State, Arranged[]>> {
  const ways = waysTo(createSteps(service, setup));
  const arranged = new Map<State, Arranged[]>();
  for (const [kind, group] of Map.groupBy(states, (state) => ways[state].kind)) {
    const isReleased = kind !== "unreleased";
    const template = setup.templates[isReleased ? kind : "usual"];
    const total = group.length * count;
    const { codes, couponIds } = await service.makeBatch(setup.maker, template, total, { isReleased });
    const fresh = codes.map((code, index) => ({
      code,
      couponId: couponIds[index]!,
      lockRequestId: newRequestId(),
      redemption: unknownRedemption,
    }));
    for (const state of group)
      arranged.set(state, await Promise.all(fresh.splice(0, count).map((coupon) => ways[state].go(coupon))));
  }
  return arranged;
}

type Step = (coupon: Arranged) => Promise<Arranged>;
type Steps = ReturnType<typeof createSteps>;

// Each step changes the state of a coupon, and returns what later steps need to know.
function createSteps(service: Running, { till, otherTill, merchant, variant, tenant }: VariantSetup) {
  const post = (by: Client, path: string, body: object) => postOk(by, path, { request_id: newRequestId(), ...body });
  // The request_id of a redeem names a lock too, because redeem is lock and confirm in one.
  const grant = (operation: "lock" | "redeem", by: Client) => async (coupon: Arranged) => {
    const request_id = newRequestId();
    const body = { merchant, order_amount: 20, request_id, coupon: coupon.code };
    const { redemption } = await post(by, `/v1/coupons/${operation}`, body);
    return { ...coupon, lockRequestId: request_id, redemption };
  };
  const send =
    (path: string, bodyOf: (coupon: Arranged) => object): Step =>
    async (coupon) => {
      await post(till, path, bodyOf(coupon));
      return coupon;
    };
  const ofLock = ({ code, lockRequestId }: Arranged) => ({ coupon: code, lock_request_id: lockRequestId });
  return {
    keep: async (coupon: Arranged) => coupon,
    lock: grant("lock", till),
    redeem: grant("redeem", till),
    confirm: send("/v1/coupons/confirm", (coupon) => ({ ...ofLock(coupon), merchant })),
    cancel: send("/v1/coupons/cancel", ofLock),
    reverse: send("/v1/redemptions/reverse", ({ redemption }) => ({ redemption })),
    void: send("/v1/coupons/void", ({ code }) => ({ coupon: code, merchant })),
    async lockElsewhere(coupon: Arranged) {
      const locked = await grant("lock", otherTill)(coupon);
      // In Variant A both tills are one caller, so our caller must not name this lock. In B it may even know the ID.
      return variant === "B" ? locked : { ...locked, lockRequestId: newRequestId() };
    },
    async expire(coupon: Arranged) {
      const { couponId } = coupon;
      await service.admin.rows("select admin.extend_coupon($1, $2, $3, 'to arrange a test')", [tenant, couponId, past]);
      return coupon;
    },
  };
}

type Way = { kind: Kind | "unreleased"; go: Step };

function waysTo({ keep, lock, redeem, confirm, cancel, reverse, void: voidIt, lockElsewhere, expire }: Steps) {
  const way = (kind: Way["kind"], ...steps: Step[]): Way => ({
    kind,
    async go(coupon) {
      let current = coupon;
      for (const step of steps) current = await step(current);
      return current;
    },
  });
  const ways: Record<State, Way> = {
    "not released": way("unreleased", keep),
    "not yet valid": way("later", keep),
    ISSUED: way("usual", keep),
    "ISSUED, its lock cancelled": way("usual", lock, cancel),
    "ISSUED, its lock lapsed": way("short", lock),
    "LOCKED by this lock": way("usual", lock),
    "LOCKED by another": way("usual", lockElsewhere),
    "LOCKED by this lock, past valid_to": way("usual", lock, expire),
    REDEEMED: way("usual", lock, confirm),
    "REDEEMED, reissuable": way("reissued", redeem),
    "REDEEMED, reissuable, past valid_to": way("reissued", lock, expire, confirm),
    "REVERSED, consumed": way("usual", redeem, reverse),
    "REVERSED, reissued": way("reissued", lock, confirm, reverse),
    EXPIRED: way("usual", expire),
    "EXPIRED, its lock cancelled": way("usual", lock, expire, cancel),
    "EXPIRED, its lock lapsed": way("short", lock, expire),
    VOIDED: way("usual", voidIt),
  };
  return ways;
}

// Returns the path and the body of an operation on the coupon.
export function requestFor(
  operation: Operation,
  { code, lockRequestId, redemption }: Arranged,
  merchant: string,
): [string, Record<string, unknown>] {
  const request_id = newRequestId();
  const lock = { request_id, lock_request_id: lockRequestId, coupon: code };
  switch (operation) {
    case "lock":
    case "redeem":
      return [`/v1/coupons/${operation}`, { request_id, coupon: code, merchant, order_amount: 20 }];
    case "confirm":
      return ["/v1/coupons/confirm", { ...lock, merchant }];
    case "cancel":
      return ["/v1/coupons/cancel", lock];
    case "reverse":
      return ["/v1/redemptions/reverse", { request_id, redemption }];
    case "void":
      return ["/v1/coupons/void", { request_id, coupon: code, merchant }];
    case "query":
      return ["/v1/coupons/query", { coupon: code, merchant }];
  }
}

// Waits until every lock of a template with lock_ttl_seconds 1 is past its end.
export async function untilLocksExpire(service: Running): Promise<void> {
  await service.owner.rows(
    `select pg_sleep_until(max(r.lock_expires_at))
     from core.redemption r
     where r.status = 'LOCKED' and r.lock_expires_at < r.started_at + interval '2 seconds'`,
  );
}
