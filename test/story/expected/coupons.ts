// Batches, coupons, redemptions and voidings.
import { major, moment, uuidOf, type Row, type Expected } from "../books.ts";
import type { Story } from "../story.ts";

const valid = { valid_from: moment("2020-01-01T00:00:00Z"), valid_to: moment("2099-01-01T00:00:00Z") };

export function expectCoupons({ books }: Story): Expected {
  return {
    batch: books.batches.map((batch) => ({
      tenant: batch.tenant.id,
      batch: batch.id,
      status: batch.status,
      total_count: String(batch.total),
      minted_count: String(batch.minted),
      template: batch.template,
      maker: "pty_one",
      distributor: batch.distributor,
      ...valid,
      key_version: "1",
      mint_lease_until: batch.leasedUntil,
      created_at: batch.createdAt,
      completed_at: batch.completedAt,
      allocated_at: batch.allocatedAt,
      codes_destroyed_at: batch.destroyedAt,
    })),
    coupon: books.coupons.map(({ batch, id, number, status, stored, validTo, live }) => ({
      tenant: batch.tenant.id,
      coupon: id,
      status,
      stored_status: stored,
      batch: batch.id,
      number: String(number),
      template: batch.template,
      live_redemption: live?.id ?? null,
      lock_expires_at: live?.expiresAt ?? null,
      valid_from: valid.valid_from,
      valid_to: validTo,
      created_at: batch.mintedAt,
      tenant_id: String(batch.tenant.number),
      coupon_key: uuidOf(id),
    })),
    redemption: books.redemptions.map(showRedemption),
    voiding: books.voidings.map(({ coupon, merchant, caller, reason, at }) => ({
      tenant: coupon.batch.tenant.id,
      coupon: coupon.id,
      merchant,
      caller,
      reason,
      voided_at: at,
      tenant_id: String(coupon.batch.tenant.number),
      coupon_key: uuidOf(coupon.id),
    })),
  };
}

function showRedemption(redemption: Story["books"]["redemptions"][number]): Row {
  const { coupon, orderMinor } = redemption;
  const { tenant, currency } = coupon.batch;
  return {
    tenant: tenant.id,
    redemption: redemption.id,
    status: redemption.status,
    stored_status: redemption.stored,
    coupon: coupon.id,
    merchant: redemption.merchant,
    caller: redemption.caller,
    lock_request_id: redemption.lockRequestId,
    discount_amount: major(redemption.discountMinor, currency),
    order_amount: orderMinor === null ? null : major(orderMinor, currency),
    currency,
    store: redemption.store,
    terminal: redemption.terminal,
    order_id: redemption.orderId,
    started_at: redemption.startedAt,
    lock_expires_at: redemption.expiresAt,
    redeemed_at: redemption.redeemedAt,
    ended_at: redemption.endedAt,
    reversal: redemption.reversal,
    reversal_reason: redemption.reason,
    tenant_id: String(tenant.number),
    redemption_key: uuidOf(redemption.id),
    coupon_key: uuidOf(coupon.id),
  };
}
