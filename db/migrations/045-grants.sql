-- Locks and redeems that are granted. Their answers are columns of the gate, not text: `serve`
-- writes the JSON, and the record of the answer names the redemption, whose terms never change.

-- random: the last 10 bytes of a UUIDv7, from `serve`.
alter type core.call add attribute random bytea;

comment on type core.outcome is 'Unused: core.answer has its columns.';
alter type core.answer
  add attribute ordinal int,
  add attribute is_replay boolean,
  add attribute redemption_id uuid,
  add attribute coupon_id uuid,
  add attribute discount_amount numeric,
  add attribute currency text,
  add attribute lock_expires_at timestamptz;
comment on type core.answer is
  'The answer of an operation. ordinal: the place of its call in the group. code: the error code, '
  'null for a success. resource: what NOT_FOUND is about, or one that get_request shows. A lock or '
  'redeem that is granted has the columns of its redemption instead of a body. Without a status, '
  'the call is handed back: it would have to wait for a lock, and nothing was written.';

create type core.grant as (
  call             core.call,
  redemption_id    uuid,
  merchant_id      int,
  coupon_id        uuid,
  distributor_id   int,
  currency         text,
  discount_minor   bigint,
  order_minor      bigint,
  discount_amount  numeric,
  granted_at       timestamptz,
  lock_expires_at  timestamptz
);
comment on type core.grant is
  'A lock or redeem that is granted. lock_expires_at: null for a redeem.';

create type core.ordered as (wrong_item text, matching int, unpriced int, total numeric);
comment on type core.ordered is 'What rules.read_items finds in the items of an order.';

alter table core.request
  alter column response drop not null,
  add column redemption_id uuid,
  add column lock_expires_at timestamptz,
  add constraint record_has_one_answer
    check ((response is null) <> (redemption_id is null)) not valid;
comment on column core.request.response is 'Null: a lock or redeem that was granted.';
comment on column core.request.redemption_id is
  'Of a lock or redeem that was granted: the redemption that the answer describes.';
comment on column core.request.lock_expires_at is 'Of a lock that was granted: as in the answer.';

-- A redemption needs the decimals, and so does not look up the currency.
alter table core.currency
  add constraint currency_has_its_decimals unique (currency, decimals);
alter table core.template add column decimals smallint;
update core.template t
set decimals = c.decimals
from core.currency c
where c.currency = t.currency;
alter table core.template
  alter column decimals set not null,
  drop constraint template_currency_fkey,
  add constraint template_has_the_decimals_of_its_currency
    foreign key (currency, decimals) references core.currency (currency, decimals);
comment on column core.template.decimals is 'Of its currency.';

create or replace function core.check_template_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if (new.tenant_id, new.maker_id, new.currency, new.decimals, new.discount_type,
      new.discount_minor,
      new.discount_percent, new.max_discount_minor, new.min_order_minor, new.skus,
      new.after_reversal)
     is distinct from
     (old.tenant_id, old.maker_id, old.currency, old.decimals, old.discount_type,
      old.discount_minor,
      old.discount_percent, old.max_discount_minor, old.min_order_minor, old.skus,
      old.after_reversal)
  then
    perform
    from core.template t
    where t.tenant_id = old.tenant_id and t.template_id = old.template_id
    for update;
    if exists (
      select
      from core.batch b
      where b.tenant_id = old.tenant_id and b.template_id = old.template_id)
    then
      raise exception 'template %: its terms are fixed once it has a batch', old.external_id
        using errcode = 'check_violation', constraint = 'template_with_batches_keeps_its_terms',
              hint = 'Fixed: maker, currency, discount, minimum order, SKUs and after_reversal.';
    end if;
  end if;
  return new;
end
$$;

-- The argument is the whole row, because PostgreSQL reads the expression of a check again for every
-- statement, and this one is short.
alter table core.redemption drop constraint status_agrees_with_times;
drop function core.status_agrees_with_times(
  text, timestamptz, timestamptz, timestamptz, timestamptz);
create function core.status_agrees_with_times(p_redemption core.redemption) returns boolean
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
begin
  return case
    when p_redemption.lock_expires_at - p_redemption.started_at > interval '7 days'
         or p_redemption.redeemed_at >= p_redemption.lock_expires_at then false
    when p_redemption.redeemed_at is not null
      then p_redemption.status = case
        when p_redemption.ended_at is null then 'REDEEMED'
        else 'REVERSED'
      end
    when p_redemption.lock_expires_at is null then false
    when p_redemption.ended_at is null then p_redemption.status = 'LOCKED'
    else p_redemption.status in ('CANCELLED', 'LAPSED')
  end;
end
$$;
comment on function core.status_agrees_with_times(core.redemption) is
  'Check: the status of a redemption agrees with its times. A lock lasts at most 7 days and is '
  'redeemed before it expires.';
alter table core.redemption
  add constraint status_agrees_with_times
    check (core.status_agrees_with_times(redemption)) not valid;
