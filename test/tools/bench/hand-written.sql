-- The tables of hand-written.ts, filled with what the service has: the same coupons with the same
-- codes, the same merchants and the same terms. Keys and indexes are those that redeeming, the
-- pruning of nonces and answers, a merchant's list and a daily statement need.
create schema hand;

create table hand.credential (
  access_key     text primary key,
  credential_id  int  not null unique,
  tenant_id      int  not null,
  secret         text not null
);

create table hand.merchant (
  merchant_id  int  primary key,
  tenant_id    int  not null,
  external_id  text not null,
  unique (external_id, tenant_id)
);

create table hand.template (
  template_id           int     primary key,
  discount_type         text    not null check (discount_type in ('fixed', 'percent')),
  discount_minor        bigint  check (discount_minor > 0),
  discount_percent      numeric check (discount_percent > 0 and discount_percent <= 100),
  max_discount_minor    bigint,
  min_order_minor       bigint,
  currency              text    not null,
  decimals              int     not null,
  is_for_all_merchants  boolean not null
);

create table hand.template_merchant (
  template_id  int references hand.template,
  merchant_id  int references hand.merchant,
  primary key (template_id, merchant_id)
);

create table hand.batch (
  batch_id        int  primary key,
  tenant_id       int  not null,
  template_id     int  not null references hand.template,
  distributor_id  int  not null,
  status          text not null check (status in ('COMPLETED', 'ALLOCATED', 'SUSPENDED'))
);

create table hand.coupon (
  coupon_id    uuid        primary key,
  batch_id     int         not null references hand.batch,
  number       int         not null,
  lookup_hash  uuid        not null unique,
  valid_from   timestamptz not null,
  valid_to     timestamptz not null,
  status       text        not null default 'ISSUED'
                           check (status in ('ISSUED', 'LOCKED', 'REDEEMED', 'VOIDED')),
  unique (batch_id, number)
) with (fillfactor = 85);

create table hand.redemption (
  redemption_id   uuid        primary key,
  coupon_id       uuid        not null references hand.coupon,
  merchant_id     int         not null references hand.merchant,
  request_id      text        not null,
  order_minor     bigint      check (order_minor >= 0),
  discount_minor  bigint      not null check (discount_minor >= 0),
  currency        text        not null,
  store           text        check (length(store) <= 64),
  terminal        text        check (length(terminal) <= 64),
  order_id        text        check (length(order_id) <= 128),
  redeemed_at     timestamptz not null default now(),
  reversed_at     timestamptz
) with (fillfactor = 90);
create unique index coupon_is_redeemed_once on hand.redemption (coupon_id)
where reversed_at is null;
create index redemption_of_merchant on hand.redemption (merchant_id, redeemed_at);

create table hand.ledger_entry (
  entry_id        bigint      primary key generated always as identity,
  redemption_id   uuid        not null references hand.redemption,
  distributor_id  int         not null,
  amount_minor    bigint      not null,
  currency        text        not null,
  recorded_at     timestamptz not null default now()
);
create index ledger_entry_by_time on hand.ledger_entry (recorded_at);

create table hand.request (
  credential_id  int         not null,
  request_id     text        not null check (length(request_id) <= 128),
  body_hash      bytea       not null,
  status         int         not null,
  answer         text        not null,
  recorded_at    timestamptz not null default now(),
  primary key (request_id, credential_id)
);
create index request_by_age on hand.request using brin (recorded_at);

create unlogged table hand.nonce (
  credential_id  int         not null,
  nonce          text        not null,
  seen_at        timestamptz not null default now(),
  primary key (nonce, credential_id)
);
create index nonce_by_age on hand.nonce (seen_at);

insert into hand.merchant select m.merchant_id, m.tenant_id, m.external_id from core.merchant m;
insert into hand.template
select t.template_id, t.discount_type, t.discount_minor, t.discount_percent, t.max_discount_minor,
       t.min_order_minor, t.currency, y.decimals, t.is_for_all_merchants
from core.template t
join core.currency y on y.currency = t.currency;
insert into hand.template_merchant
select s.template_id, s.merchant_id from core.template_merchant s;
insert into hand.batch
select b.batch_id, b.tenant_id, b.template_id, b.distributor_id, b.status from core.batch b;
insert into hand.coupon
select c.coupon_id, c.batch_id, c.number, c.lookup_hash, c.valid_from, c.valid_to
from core.coupon c;
