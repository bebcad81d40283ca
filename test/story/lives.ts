// What happens to coupons: every state, in both variants, with what the callers and the administrator do to them.
import type { Coupon, Redemption, Tenant } from "./books.ts";
import { moment, shift } from "./books.ts";
import { audit, enter, grant, happen, makeBatch, send, sendOk, type Teller } from "./teller.ts";
import { keys } from "./tenants.ts";

/** The coupons that later chapters go on with. */
export type Left = { unused: Coupon[]; standing: Redemption };

const past = "2021-01-01T00:00:00Z";

export async function tellFixed(teller: Teller, tenant: Tenant): Promise<Left> {
  const { coupons } = await makeBatch(teller, tenant, "tpl_fixed", 16);
  await makeBatch(teller, tenant, "tpl_fixed", 2, false);
  const [locked, confirmed, reversed, cancelled, lapsed, ...others] = coupons as [
    Coupon,
    Coupon,
    Coupon,
    Coupon,
    Coupon,
    ...Coupon[],
  ];
  await cancel(teller, await grant(teller, "lock", locked, { orderMinor: 2_000 }));
  await grant(teller, "lock", locked, { orderMinor: 2_001, store: "S1", terminal: "T3", order_id: "order-1" });
  await confirm(teller, await grant(teller, "lock", confirmed, { orderMinor: 2_002, order_id: "order-2" }));
  await reverse(teller, await grant(teller, "redeem", reversed, { orderMinor: 2_003, store: "S2" }), "damaged");
  await cancel(teller, await grant(teller, "lock", cancelled, { orderMinor: 2_004 }));
  const lost = await grant(teller, "lock", lapsed, { orderMinor: 2_005 });
  await passEnd(teller, lost, 1_000);
  const [voided, struck, expired, extended, ...rest] = others as [Coupon, Coupon, Coupon, Coupon, ...Coupon[]];
  await voidCoupon(teller, voided, "torn");
  await strike(teller, struck);
  await extend(teller, expired, past);
  await extend(teller, extended, "2100-01-01T00:00:00Z");
  await expire(teller, lost, expired);

  const [standingCoupon, ...unused] = rest as [Coupon, ...Coupon[]];
  const order = { orderMinor: 2_007, merchant: "mch_bakery", store: "S1", terminal: "T5", order_id: "order-3" };
  const standing = await grant(teller, "redeem", standingCoupon, order);
  await refuse(teller, tenant, standingCoupon);
  return { unused, standing };
}

/** The job does not run again, so only readers know that these two have ended. */
export async function tellForgotten(teller: Teller, { unused, standing }: Left): Promise<void> {
  const [unwritten, over] = [unused.pop()!, unused.pop()!];
  const forgotten = await grant(teller, "lock", unwritten, { orderMinor: 2_006 });
  await passEnd(teller, forgotten, standing.coupon.batch.tenant.variant === "A" ? 1_500 : 1_300);
  Object.assign(forgotten, { status: "LAPSED" });
  Object.assign(unwritten, { status: "ISSUED" });
  await extend(teller, over, past);
  Object.assign(over, { status: "EXPIRED" });
}

/** A template of another currency, distributor and rule. Returns the redemption that stands. */
export async function tellSecond(teller: Teller, tenant: Tenant): Promise<Left> {
  const { service, during } = teller;
  const { batch, coupons } = await makeBatch(teller, tenant, "tpl_second", 5);
  const [small, capped, again, ...unused] = coupons as [Coupon, Coupon, Coupon, ...Coupon[]];
  const standing = await grant(teller, "redeem", small, { orderMinor: 4_000, order_id: "order-4" });
  await confirm(teller, await grant(teller, "lock", capped, { orderMinor: 9_000, merchant: "mch_bakery" }));
  await reverse(teller, await grant(teller, "redeem", again, { orderMinor: 80 }), null);
  await grant(teller, "redeem", again, { orderMinor: 88, merchant: "mch_bakery" });
  const destroy = () => service.admin.rows("select admin.destroy_codes($1, 'printed')", [batch.id]);
  const { at } = await during(destroy);
  batch.destroyedAt = at;
  audit(teller, tenant, "destroy_codes", batch.id, at, { reason: "printed" });
  return { unused, standing };
}

async function confirm(teller: Teller, redemption: Redemption): Promise<void> {
  const { coupon, merchant, lockRequestId } = redemption;
  const body = { coupon: coupon.code, merchant, lock_request_id: lockRequestId };
  const { at } = await sendOk(teller, coupon.batch.tenant, callerOf(redemption), "confirm", body);
  Object.assign(redemption, { status: "REDEEMED", stored: "REDEEMED", redeemedAt: at });
  Object.assign(coupon, { status: "REDEEMED", stored: "REDEEMED" });
  enter(teller, redemption, "REDEMPTION", at);
}

async function cancel(teller: Teller, redemption: Redemption): Promise<void> {
  const { coupon, lockRequestId } = redemption;
  const body = { coupon: coupon.code, lock_request_id: lockRequestId };
  const { at } = await sendOk(teller, coupon.batch.tenant, callerOf(redemption), "cancel", body);
  Object.assign(redemption, { status: "CANCELLED", stored: "CANCELLED", endedAt: at });
  Object.assign(coupon, { status: "ISSUED", stored: "ISSUED", live: null });
}

export async function reverse(teller: Teller, redemption: Redemption, reason: string | null): Promise<void> {
  const { coupon, id } = redemption;
  const body = { redemption: id, ...(reason !== null && { reason }) };
  const { json, at } = await sendOk(teller, coupon.batch.tenant, callerOf(redemption), "reverse", body);
  const change = { status: "REVERSED", stored: "REVERSED", endedAt: at, reversal: json.reversal, reason };
  Object.assign(redemption, change);
  const isReissued = coupon.batch.template === "tpl_second";
  Object.assign(coupon, { live: null, ...(isReissued && { status: "ISSUED", stored: "ISSUED" }) });
  enter(teller, redemption, "REVERSAL", at);
}

export async function voidCoupon(teller: Teller, coupon: Coupon, reason: string | null): Promise<void> {
  const { tenant } = coupon.batch;
  const body = { coupon: coupon.code, merchant: "mch_kiosk", ...(reason !== null && { reason }) };
  const { at } = await sendOk(teller, tenant, keys[tenant.variant].till, "void", body);
  noteVoid(teller, coupon, { merchant: "mch_kiosk", reason, at, caller: tenant.variant === "A" ? null : "pty_till" });
}

// The administrator voids it.
async function strike(teller: Teller, coupon: Coupon): Promise<void> {
  const { service, during } = teller;
  const { tenant } = coupon.batch;
  const act = () => service.admin.rows("select admin.void_coupon($1, $2, 'stolen')", [tenant.id, coupon.id]);
  const { at } = await during(act);
  noteVoid(teller, coupon, { merchant: null, caller: null, reason: "stolen", at });
  audit(teller, tenant, "void_coupon", coupon.id, at, { reason: "stolen" });
}

type VoidTerms = Omit<Teller["books"]["voidings"][number], "coupon">;

function noteVoid(teller: Teller, coupon: Coupon, terms: VoidTerms): void {
  const { tenant, distributor } = coupon.batch;
  teller.books.voidings.push({ coupon, ...terms });
  Object.assign(coupon, { status: "VOIDED", stored: "VOIDED" });
  happen(teller, { tenant, type: "coupon.voided", party: distributor, coupon }, terms.at);
}

async function extend(teller: Teller, coupon: Coupon, to: string): Promise<void> {
  const { service, during } = teller;
  const { tenant } = coupon.batch;
  const patch = "select admin.extend_coupon($1, $2, $3, 'asked for')";
  const { at } = await during(() => service.admin.rows(patch, [tenant.id, coupon.id, to]));
  const written = (text: string) => `"${text.replace("Z", "+00:00")}"`;
  const details =
    `{"status": "ISSUED", "valid_to": ${written(to)}, ` +
    `"valid_to_before": ${written(new Date(coupon.validTo.from * 1000).toISOString().replace(".000", ""))}}`;
  audit(teller, tenant, "extend_coupon", coupon.id, at, { reason: "asked for", details });
  coupon.validTo = moment(to);
}

// The job marks what has ended.
async function expire(teller: Teller, lost: Redemption, expired: Coupon): Promise<void> {
  const { at } = await teller.during(teller.expire);
  Object.assign(lost, { status: "LAPSED", stored: "LAPSED", endedAt: at });
  Object.assign(lost.coupon, { status: "ISSUED", stored: "ISSUED", live: null });
  Object.assign(expired, { status: "EXPIRED", stored: "EXPIRED" });
  const { tenant, distributor } = expired.batch;
  const event = { tenant, type: "coupon.expired", party: distributor, coupon: expired, occurredAt: moment(past) };
  happen(teller, event, at);
}

// As if the lock had been taken earlier, so that it is over.
async function passEnd({ psql }: Teller, redemption: Redemption, seconds: number): Promise<void> {
  await psql.rows(
    `update core.redemption
     set started_at = started_at - make_interval(secs => $2),
         lock_expires_at = lock_expires_at - make_interval(secs => $2)
     where rules.format_id('red', redemption_id) = $1`,
    [redemption.id, seconds],
  );
  redemption.startedAt = shift(redemption.startedAt, -seconds);
  redemption.expiresAt = shift(redemption.expiresAt!, -seconds);
}

// Refusals: two are recorded, one of them with a key, and so is its retry; the others leave nothing behind.
async function refuse(teller: Teller, tenant: Tenant, coupon: Coupon): Promise<void> {
  const { till } = keys[tenant.variant];
  const body = { coupon: coupon.code, merchant: "mch_kiosk" };
  await send(teller, tenant, till, "redeem", body, `key-of-${tenant.id}`);
  await send(teller, tenant, till, "redeem", body, `key-of-${tenant.id}`);
  await send(teller, tenant, till, "reverse", { redemption: `red_${"0".repeat(26)}` });
  await send(teller, tenant, till, "lock", { ...body, merchant: 7 });
  // Their budget is one unknown code a minute.
  const [guesser, guesses]: [string, number] = tenant.variant === "A" ? ["ak_lost", 3] : ["ak_gone", 1];
  const wrong = coupon.code.slice(0, 15) + (coupon.code.endsWith("7") ? "8" : "7");
  for (let count = 0; count < guesses; count += 1)
    await send(teller, tenant, guesser, "redeem", { ...body, coupon: wrong });
}

const callerOf = ({ caller }: Redemption): string =>
  caller === null ? "ak_minor" : caller === "pty_till" ? "ak_till" : "ak_shop";
