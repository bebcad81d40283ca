// Coupons in every state, brought there by the service itself: calls, provisioning and patches, no row by hand.
import type { Operation, State, Variant } from "../db/api/states.ts";
import type { Client } from "./client.ts";
import { newRequestId, type Running } from "./service.ts";

// A coupon, with the lock that confirm and cancel will name and the redemption that reverse will name.
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

// Who plays in a variant. In B the tills are those of two parties; in A both are the tenant. `changes` change what
// was provisioned for it before.
export async function setUpVariant(
  service: Running,
  variant: Variant,
  changes: Partial<Record<Kind, object>> = {},
): Promise<VariantSetup> {
  const [tenant, maker, distributor] =
    variant === "A" ? ["ten_a", "pty_a", "pty_a"] : ["ten_b", "pty_maker", "pty_dist"];
  const template = (kind: Kind, more: object) => ({
    id: `tpl_${kind}${variant.toLowerCase()}`,
    name: kind,
    maker,
    distributor,
    currency: "EUR",
    discount: { type: "fixed", amount: 5 },
    valid_from: "2020-01-01T00:00:00Z",
    valid_to: "2099-01-01T00:00:00Z",
    ...more,
    ...changes[kind],
  });
  const made = {
    usual: template("usual", {}),
    reissued: template("reissued", { after_reversal: "reissued" }),
    short: template("short", { lock_ttl_seconds: 1 }),
    later: template("later", { valid_from: "2098-01-01T00:00:00Z" }),
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

// As many coupons in each of the states as asked for. Whatever needs time to pass has begun when this returns;
// see untilLocksExpire.
export async function arrange(
  service: Running,
  setup: VariantSetup,
  wanted: readonly State[],
  count: number,
): Promise<Map<State, Arranged[]>> {
  const { till, otherTill, merchant, variant, tenant } = setup;
  const order = { merchant, order_amount: 20 };

  async function must(by: Client, path: string, body: Record<string, unknown>): Promise<any> {
    const answer = await by.post(path, { request_id: newRequestId(), ...body });
    if (answer.status !== 200) throw new Error(`${path}: ${answer.text}`);
    return answer.json;
  }
  const expire = async (coupon: Arranged) => {
    await service.admin.rows("select admin.extend_coupon($1, $2, $3, 'to arrange a test')", [
      tenant,
      coupon.couponId,
      past,
    ]);
    return coupon;
  };
  const lock = async (coupon: Arranged, by = till) => {
    const lockRequestId = newRequestId();
    const { redemption } = await must(by, "/v1/coupons/lock", {
      ...order,
      request_id: lockRequestId,
      coupon: coupon.code,
    });
    return { ...coupon, lockRequestId, redemption };
  };
  const confirm = async (coupon: Arranged) => {
    await must(till, "/v1/coupons/confirm", { merchant, coupon: coupon.code, lock_request_id: coupon.lockRequestId });
    return coupon;
  };
  const cancel = async (coupon: Arranged) => {
    await must(till, "/v1/coupons/cancel", { coupon: coupon.code, lock_request_id: coupon.lockRequestId });
    return coupon;
  };
  // A redeem is lock and confirm in one, so its request_id is that of a lock too.
  const redeem = async (coupon: Arranged) => {
    const lockRequestId = newRequestId();
    const { redemption } = await must(till, "/v1/coupons/redeem", {
      ...order,
      request_id: lockRequestId,
      coupon: coupon.code,
    });
    return { ...coupon, lockRequestId, redemption };
  };
  const reverse = async (coupon: Arranged) => {
    await must(till, "/v1/redemptions/reverse", { redemption: coupon.redemption });
    return coupon;
  };
  const lockElsewhere = async (coupon: Arranged) => {
    const locked = await lock(coupon, otherTill);
    // In B the caller even knows the lock's id; in A, where both tills are one caller, knowing it is owning it.
    return variant === "B" ? locked : { ...locked, lockRequestId: newRequestId() };
  };
  const voidIt = async (coupon: Arranged) => {
    await must(till, "/v1/coupons/void", { merchant, coupon: coupon.code });
    return coupon;
  };

  type Way = { kind: Kind | "unreleased"; go: (coupon: Arranged) => Promise<Arranged> };
  const ways: Record<State, Way> = {
    "not released": { kind: "unreleased", go: async (coupon) => coupon },
    "not yet valid": { kind: "later", go: async (coupon) => coupon },
    ISSUED: { kind: "usual", go: async (coupon) => coupon },
    "ISSUED, its lock cancelled": { kind: "usual", go: async (coupon) => cancel(await lock(coupon)) },
    "ISSUED, its lock lapsed": { kind: "short", go: lock },
    "LOCKED by this lock": { kind: "usual", go: lock },
    "LOCKED by another": { kind: "usual", go: lockElsewhere },
    "LOCKED by this lock, past valid_to": { kind: "usual", go: async (coupon) => expire(await lock(coupon)) },
    REDEEMED: { kind: "usual", go: async (coupon) => confirm(await lock(coupon)) },
    "REDEEMED, reissuable": { kind: "reissued", go: redeem },
    "REDEEMED, reissuable, past valid_to": {
      kind: "reissued",
      go: async (coupon) => confirm(await expire(await lock(coupon))),
    },
    "REVERSED, consumed": { kind: "usual", go: async (coupon) => reverse(await redeem(coupon)) },
    "REVERSED, reissued": { kind: "reissued", go: async (coupon) => reverse(await confirm(await lock(coupon))) },
    EXPIRED: { kind: "usual", go: expire },
    "EXPIRED, its lock cancelled": { kind: "usual", go: async (coupon) => cancel(await expire(await lock(coupon))) },
    "EXPIRED, its lock lapsed": { kind: "short", go: async (coupon) => expire(await lock(coupon)) },
    VOIDED: { kind: "usual", go: voidIt },
  };

  const arranged = new Map<State, Arranged[]>();
  for (const [kind, group] of Map.groupBy(wanted, (state) => ways[state].kind)) {
    const isReleased = kind !== "unreleased";
    const { codes, couponIds } = await service.makeBatch(
      setup.maker,
      setup.templates[isReleased ? kind : "usual"],
      group.length * count,
      { isReleased },
    );
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

// What is sent, and where, to do this with the coupon.
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

// Returns when each lock of a template with lock_ttl_seconds 1 is past its end.
export async function untilLocksExpire(service: Running): Promise<void> {
  await service.owner.rows(
    `select pg_sleep_until(max(r.lock_expires_at))
     from core.redemption r
     where r.status = 'LOCKED' and r.lock_expires_at < r.started_at + interval '2 seconds'`,
  );
}
