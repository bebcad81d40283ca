-- A refusal that is recorded says what it was about, so that reports can count refusals by coupon,
-- merchant, store and template. Successes need no more: their answers name redemption, coupon or
-- batch. These columns are null in their rows and take no space there.

create type core.subject as (coupon_id uuid, merchant_id int, store text, template_id int);
comment on type core.subject is 'What a call names, as far as its tenant has it.';

-- `not valid`, because new columns need no validation. The check is short, because PostgreSQL plans
-- it for every statement: a function in it would be parsed each time. No foreign keys: a record of
-- a call keeps no row, and the gate finds the keys in the same transaction.
alter table core.request
  add column coupon_id uuid,
  add column merchant_id int,
  add column store text,
  add column template_id int,
  add constraint refused_store_is_at_most_64_characters check (length(store) <= 64) not valid;
comment on column core.request.coupon_id is 'Of a refusal: the coupon that the call named.';
comment on column core.request.merchant_id is
  'Of a refusal: the merchant that the call named, or that of the redemption it named.';
comment on column core.request.store is 'Of a refusal: the store, as the till named it.';
comment on column core.request.template_id is
  'Of a refusal to create or allocate a batch: its template.';
