// What happens to the coupons of one side of a tenant: every state, with what the callers and the administrator do to
// them. What the merchant's delegate may do, it does here once.
import { nameSeen } from "../support/route.ts";
import { moment, shift, type Row, type Window } from "./books.ts";
import {
  changed,
  enter,
  enterAudit,
  grant,
  happen,
  makeBatch,
  patch,
  send,
  sendOk,
  type By,
  type Order,
  type Side,
} from "./teller.ts";
import { partyOf, type Coupon } from "./tenants.ts";

// By what becomes of them. The last ones are for the tests.
const names = `locked confirmed reversed cancelled lapsed voided struck expired extended standing forgotten over later
  toConfirm toCancel toReverse cancelledEarly issued toLock toRedeem toVoid spare`.split(/\s+/);
const past = "2021-01-01T00:00:00Z";

const isStored = (status: string) => ({ status, stored_status: status });
const isFree = { live_redemption: null, lock_expires_at: null };

export async function tellLife(side: Side): Promise<void> {
  const { owner } = side;
  const { coupons, batches, template, store, terminal } = owner;
  batches.released = await makeBatch(side, template, names);
  batches.unreleased = await makeBatch(side, template, ["unreleased", "held"], false);
  batches.scoped = await makeBatch(side, `tpl_s${owner.side}`, ["scoped"]);
  await recall(side, (batches.recalled = await makeBatch(side, template, ["leaked", "stored"])));
  const [shop, delegate] = [
    { ...side, key: owner.shop },
    { ...side, key: owner.delegate },
  ];
  const orderMinor = 2_000 * owner.side;
  const lock = (by: By, name: string, order: Partial<Order> = {}) =>
    grant(by, "lock", coupons[name]!, { orderMinor, ...order });
  const redeem = (by: By, name: string, order: Partial<Order> = {}) =>
    grant(by, "redeem", coupons[name]!, { orderMinor, ...order });

  await lock(shop, "locked");
  await cancel(shop, coupons.locked!);
  await lock(shop, "locked", { orderMinor: orderMinor + 16, store, terminal, order_id: "order-1" });
  await lock(delegate, "confirmed", { store });
  await confirm(delegate, coupons.confirmed!);
  await redeem(delegate, "reversed");
  await reverse(delegate, coupons.reversed!, "damaged");
  if (owner.side === 2) await redeem(shop, "reversed", { orderMinor: 80, order_id: "again" });
  await lock(delegate, "cancelled");
  await cancel(delegate, coupons.cancelled!);
  await voidCoupon(delegate, coupons.voided!, "torn");
  await strike(side, coupons.struck!);
  await lock(shop, "lapsed");
  await endLock(side, coupons.lapsed!, 1_000);
  await extend(side, coupons.expired!, past);
  await extend(side, coupons.extended!, "2100-01-01T00:00:00Z");
  await expire(side);

  await redeem(atKiosk(side), "standing", { orderMinor: orderMinor + 8, merchant: "mch_k", order_id: "order-3" });
  await redeem(shop, "toReverse", { orderMinor: 9_000, store, terminal });
  for (const name of ["toConfirm", "toCancel"]) await lock(shop, name);
  await send(shop, "cancel", { coupon: coupons.cancelledEarly!.code, lock_request_id: owner.lateLock });
}

/** The next day, when the distributors have webhooks. */
export async function tellNextDay(side: Side): Promise<void> {
  const { coupons, ...owner } = side.owner;
  const shop = { ...side, key: owner.shop };
  await reverse(atKiosk(side), coupons.standing!, owner.side === 1 ? "too late" : null);
  await grant(shop, "redeem", coupons.later!, { orderMinor: 2_400 });
  await voidCoupon(shop, coupons.held!, null);
  // The job does not run again, so only readers know that these two have ended.
  await grant(shop, "lock", coupons.forgotten!, { orderMinor: 2_400 });
  await endLock(side, coupons.forgotten!, owner.side === 1 ? 1_500 : 1_300);
  Object.assign(coupons.forgotten!.last, { status: "LAPSED" });
  Object.assign(coupons.forgotten!.row, { status: "ISSUED" });
  await extend(side, coupons.over!, past);
  Object.assign(coupons.over!.row, { status: "EXPIRED" });
}

// The kiosk belongs to another party.
const atKiosk = (side: Side): By => ({ ...side, key: side.owner.variant === "A" ? side.owner.shop : "ak_b1_p" });

async function confirm(by: By, coupon: Coupon): Promise<void> {
  const { code, requestId, last } = coupon;
  const body = { coupon: code, merchant: last.merchant, lock_request_id: requestId };
  const { at } = await sendOk(by, "confirm", body);
  Object.assign(last, isStored("REDEEMED"), { redeemed_at: at });
  Object.assign(coupon.row, isStored("REDEEMED"));
  enter(by, coupon, "REDEMPTION", at);
}

async function cancel(by: By, { code, requestId, row, last }: Coupon): Promise<void> {
  const { at } = await sendOk(by, "cancel", { coupon: code, lock_request_id: requestId });
  Object.assign(last, isStored("CANCELLED"), { ended_at: at });
  Object.assign(row, isStored("ISSUED"), isFree);
}

async function reverse(by: By, coupon: Coupon, reason: string | null): Promise<void> {
  const { row, last } = coupon;
  const body = { redemption: last.redemption, ...(reason !== null && { reason }) };
  const { json, at } = await sendOk(by, "reverse", body);
  Object.assign(last, isStored("REVERSED"), { ended_at: at, reversal: json.reversal, reversal_reason: reason });
  Object.assign(row, isFree, by.owner.side === 2 && isStored("ISSUED"));
  enter(by, coupon, "REVERSAL", at);
}

export async function voidCoupon(by: By, coupon: Coupon, reason: string | null): Promise<void> {
  const { merchant } = by.owner;
  const body = { coupon: coupon.code, merchant, ...(reason !== null && { reason }) };
  const { at } = await sendOk(by, "void", body);
  noteVoid(by, coupon, { merchant, caller: partyOf(by.key), reason }, at);
}

async function strike(side: Side, coupon: Coupon): Promise<void> {
  const { tenant } = side.owner;
  const what = {
    tenant,
    action: "void_coupon",
    target: coupon.id,
    reason: "stolen",
    details: changed("status", "ISSUED", "VOIDED"),
  };
  const call = "select admin.void_coupon($1, $2, 'stolen')";
  const at = await patch(side.teller, what, () => side.teller.world.admin.rows(call, [tenant, coupon.id]));
  noteVoid(side, coupon, { reason: "stolen" }, at);
}

function noteVoid(side: Side, { id, row }: Coupon, terms: Row, voided_at: Window): void {
  side.teller.books.note("voiding", { tenant: side.owner.tenant, coupon: id, ...terms, voided_at });
  Object.assign(row, isStored("VOIDED"));
  happen(side, "coupon.voided", voided_at, { coupon: id });
}

/** Recalls a batch of two coupons. The worker voids them. */
async function recall(side: Side, batch: string): Promise<void> {
  const { teller, owner } = side;
  const { tenant, maker, makerParty, variant, coupons } = owner;
  const row = teller.books.of("batch").find((one) => one.batch === batch)!;
  const reason = "printed for all to see";
  const { at, requestId } = await sendOk({ ...side, key: maker }, "recall_batch", { batch, reason });
  const was = `"batch": {"new": "recalled", "old": "usable"}`;
  const details = `{${was}, "access_key": "${maker}", "request_id": "${requestId}"}`;
  const client = nameSeen(teller.world.url === "" ? "coupon test gate" : "coupon serve");
  enterAudit(teller, { tenant, action: "recall_batch", target: batch, reason, details, client }, at);
  Object.assign(row, { suspended_at: at, recalled_at: at });
  const { at: voidedAt } = await teller.during(teller.world.steps.recall);
  Object.assign(row, { recall_voided_count: "2", recall_finished_at: voidedAt });
  const caller = variant === "A" ? null : makerParty;
  for (const name of ["leaked", "stored"]) noteVoid(side, coupons[name]!, { caller, reason }, voidedAt);
}

async function extend({ teller, owner }: Side, { id, row }: Coupon, to: string): Promise<void> {
  const { tenant } = owner;
  const before = '"valid_to_before": "2099-01-01T00:00:00+00:00"';
  const details = `{"status": "ISSUED", "valid_to": "${to.replace("Z", "+00:00")}", ${before}}`;
  const what = { tenant, action: "extend_coupon", target: id, reason: "asked for", details };
  const call = "select admin.extend_coupon($1, $2, $3, 'asked for')";
  await patch(teller, what, () => teller.world.admin.rows(call, [tenant, id, to]));
  row.valid_to = moment(to);
}

// The job marks what has ended.
async function expire(side: Side): Promise<void> {
  const { lapsed, expired } = side.owner.coupons as Record<string, Coupon>;
  const { at } = await side.teller.during(side.teller.world.steps.expire);
  Object.assign(lapsed!.last, isStored("LAPSED"), { ended_at: at });
  Object.assign(lapsed!.row, isStored("ISSUED"), isFree);
  Object.assign(expired!.row, isStored("EXPIRED"));
  happen(side, "coupon.expired", at, { coupon: expired!.id, occurred_at: moment(past) });
}

// As if the lock had been taken earlier, so that it is over.
async function endLock({ teller }: Side, { row, last }: Coupon, seconds: number): Promise<void> {
  await teller.psql.rows(
    `update core.redemption
     set started_at = started_at - make_interval(secs => $2),
         lock_expires_at = started_at - make_interval(secs => $2) + interval '15 minutes'
     where rules.format_id('red', redemption_id) = $1`,
    [last.redemption, seconds],
  );
  const started_at = shift(last.started_at, -seconds);
  const lock_expires_at = shift(started_at, 900);
  Object.assign(last, { started_at, lock_expires_at });
  Object.assign(row, { lock_expires_at });
}
