-- Locks and redemptions of coupons, reversals, and voidings.
--
-- In the tables that grow with each redemption, columns aligned to eight bytes come first, to avoid
-- padding. Their check constraints are short, and long ones call a function: PostgreSQL reads the
-- expression of each constraint again for every statement that writes.

create function core.status_agrees_with_times(
  p_status text, p_started_at timestamptz, p_lock_expires_at timestamptz, p_redeemed_at timestamptz,
  p_ended_at timestamptz)
returns boolean
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
begin
  return case
    when p_lock_expires_at - p_started_at > interval '7 days'
         or p_redeemed_at >= p_lock_expires_at then false
    when p_redeemed_at is not null
      then p_status = case when p_ended_at is null then 'REDEEMED' else 'REVERSED' end
    when p_lock_expires_at is null then false
    when p_ended_at is null then p_status = 'LOCKED'
    else p_status in ('CANCELLED', 'LAPSED')
  end;
end
$$;
comment on function core.status_agrees_with_times(
  text, timestamptz, timestamptz, timestamptz, timestamptz) is
  'Check: the status of a redemption agrees with its times. A lock lasts at most 7 days and is '
  'redeemed before it expires.';

-- Only upper limits: each comparison costs every redemption.
create domain core.place as text
  constraint store_or_terminal_is_at_most_64_characters check (length(value) <= 64);
comment on domain core.place is 'A store or terminal, as the till named it.';

create domain core.order_id as text
  constraint order_id_is_at_most_128_characters check (length(value) <= 128);
comment on domain core.order_id is 'A merchant''s number of an order.';

create table core.redemption (
  tenant_id        int          not null,
  merchant_id      int          not null,
  discount_minor   core.minor_units not null,
  order_minor      core.minor_units,
  started_at       core.finite_time not null,
  lock_expires_at  core.finite_time,
  redeemed_at      core.finite_time,
  ended_at         core.finite_time,
  redemption_id    uuid         not null,
  coupon_id        uuid         not null,
  caller_id        int          not null,
  lock_request_id  core.client_key not null,
  status           text         not null,
  currency         text         not null,
  store            core.place,
  terminal         core.place,
  order_id         core.order_id,
  primary key (redemption_id, tenant_id),
  constraint status_agrees_with_times
    check (core.status_agrees_with_times(
      status, started_at, lock_expires_at, redeemed_at, ended_at)),
  constraint discount_is_within_order check (discount_minor <= order_minor)
) with (fillfactor = 90);
comment on table core.redemption is 'One row per granted lock or redeem, with its outcome.';
comment on column core.redemption.lock_expires_at is 'Null: redeemed without a lock.';
comment on column core.redemption.ended_at is 'When it was reversed, cancelled or marked LAPSED.';
comment on column core.redemption.redemption_id is
  'UUIDv7. Outside the database: red_ and 26 characters.';
comment on column core.redemption.caller_id is
  'The caller of the lock: the party in Variant B, 0 in A. Only the same caller may confirm or '
  'cancel.';
comment on column core.redemption.lock_request_id is 'The request_id of the lock or redeem call.';
comment on column core.redemption.status is
  'The status as last written. A LOCKED row counts as LAPSED from lock_expires_at on.';

-- The most important constraint of the service: a coupon has at most one live lock or redemption,
-- even after writes with psql. Rows that have ended differ in ended_at, so this index also finds
-- all redemptions of a coupon.
create unique index coupon_has_one_live_redemption
on core.redemption (coupon_id, tenant_id, ended_at) nulls not distinct;
-- For reports by merchant and by order. Without the tenant, which the merchant implies: this index
-- grows with each redemption, so each byte counts.
create index redemption_of_merchant on core.redemption (merchant_id, order_id);
create index lock_is_live on core.redemption (lock_expires_at) where status = 'LOCKED';

create table core.reversal (
  tenant_id      int          not null,
  reversal_id    uuid         not null,
  redemption_id  uuid         not null,
  caller_id      int          not null,
  reason         text,
  reversed_at    core.finite_time not null,
  primary key (reversal_id, tenant_id),
  constraint redemption_is_reversed_once unique (redemption_id, tenant_id),
  foreign key (tenant_id, redemption_id) references core.redemption (tenant_id, redemption_id),
  constraint reversal_reason_is_at_most_500_characters check (length(reason) <= 500)
);
comment on table core.reversal is 'Reversals. A reversal always covers the whole redemption.';
comment on column core.reversal.reversal_id is
  'UUIDv7. Outside the database: rvs_ and 26 characters.';

create table core.voiding (
  tenant_id    int          not null,
  coupon_id    uuid         not null,
  merchant_id  int,
  caller_id    int          not null,
  reason       text,
  voided_at    core.finite_time not null,
  primary key (coupon_id, tenant_id),
  foreign key (tenant_id, coupon_id) references core.coupon (tenant_id, coupon_id),
  constraint voiding_reason_is_at_most_1000_characters check (length(reason) <= 1000)
);
comment on table core.voiding is
  'Who voided a coupon, and why. Without a merchant: an administrator.';

create index voiding_by_time on core.voiding (voided_at);

create function core.check_redemption_terms() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if (new.tenant_id, new.redemption_id, new.coupon_id, new.merchant_id, new.caller_id,
      new.lock_request_id, new.currency, new.discount_minor, new.order_minor, new.store,
      new.terminal, new.order_id, new.started_at)
     is distinct from
     (old.tenant_id, old.redemption_id, old.coupon_id, old.merchant_id, old.caller_id,
      old.lock_request_id, old.currency, old.discount_minor, old.order_minor, old.store,
      old.terminal, old.order_id, old.started_at)
     or (old.redeemed_at is not null and new.redeemed_at is distinct from old.redeemed_at)
     or (old.ended_at is not null and new.ended_at is distinct from old.ended_at)
  then
    raise exception 'redemption %: its granted terms are fixed', old.redemption_id
      using errcode = 'check_violation', constraint = 'redemption_terms_are_fixed';
  end if;
  return new;
end
$$;
comment on function core.check_redemption_terms() is
  'Trigger: the terms of a redemption are fixed; redeemed_at and ended_at are fixed once set.';

create trigger redemption_terms_are_fixed
before update of tenant_id, redemption_id, coupon_id, merchant_id, caller_id, lock_request_id,
  currency, discount_minor, order_minor, store, terminal, order_id, started_at, redeemed_at,
  ended_at
on core.redemption
for each row execute function core.check_redemption_terms();

-- Without a condition, because nearly every update changes the status, and each statement would
-- read the condition again.
create function core.check_redemption_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if new.status <> old.status and not (case old.status
    when 'LOCKED' then new.status in ('REDEEMED', 'CANCELLED', 'LAPSED')
    when 'REDEEMED' then new.status = 'REVERSED'
    else false
  end) then
    raise exception 'redemption %: it cannot change from % to %',
      old.redemption_id, old.status, new.status
      using errcode = 'check_violation', constraint = 'redemption_transition_is_legal';
  end if;
  return new;
end
$$;
comment on function core.check_redemption_change() is
  'Trigger: a redemption''s status changes only in legal ways.';

create trigger redemption_transition_is_legal
before update of status on core.redemption
for each row execute function core.check_redemption_change();

-- core.check_coupons checks the opposite: a VOIDED coupon has a voiding. A voided coupon never
-- changes again. The merchant has no foreign key, because its row lock would wait for a session
-- that holds the merchant's row. Merchants are never deleted.
create function core.check_voiding() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (
    select
    from core.coupon c
    where c.tenant_id = new.tenant_id and c.coupon_id = new.coupon_id and c.status = 'VOIDED')
  then
    raise exception 'coupon % has a voiding but is not VOIDED', new.coupon_id
      using errcode = 'check_violation', constraint = 'voiding_agrees_with_its_coupon';
  elsif new.merchant_id is not null and not exists (
    select
    from core.merchant m
    where m.tenant_id = new.tenant_id and m.merchant_id = new.merchant_id)
  then
    raise exception 'the merchant in the voiding of coupon % does not exist', new.coupon_id
      using errcode = 'foreign_key_violation', constraint = 'voiding_is_at_a_merchant';
  end if;
  return null;
end
$$;
comment on function core.check_voiding() is
  'Deferred trigger: a coupon with a voiding is VOIDED, and the merchant of the voiding exists.';

create constraint trigger voiding_agrees_with_its_coupon
after insert on core.voiding
deferrable initially deferred
for each row execute function core.check_voiding();

create trigger redemption_is_kept before delete or truncate on core.redemption
for each statement execute function core.refuse_change();
create trigger reversal_is_kept before update or delete or truncate on core.reversal
for each statement execute function core.refuse_change();
create trigger voiding_is_kept before update or delete or truncate on core.voiding
for each statement execute function core.refuse_change();
