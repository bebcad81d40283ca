-- A lock or redeem that is granted, with what its rows need.
create type core.grant as (
  call             core.call,
  redemption_id    uuid,
  merchant_id      int,
  coupon_id        uuid,
  distributor_id   int,
  currency         text,
  decimals         int,
  discount_minor   bigint,
  order_minor      bigint,
  granted_at       timestamptz,
  lock_expires_at  timestamptz
);
comment on type core.grant is
  'A lock or redeem that is granted. lock_expires_at: null for a redeem.';

create type core.ordered as (wrong_item text, matching int, unpriced int, total numeric);
comment on type core.ordered is 'What rules.read_items finds in the items of an order.';
