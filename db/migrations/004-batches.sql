-- Templates set what a coupon is worth. Batches are made from templates.

create table core.template (
  tenant_id           int          not null references core.tenant,
  template_id         int          generated always as identity,
  external_id         text         not null,
  name                text         not null,
  maker_id            int          not null,
  distributor_id      int,
  currency            text         not null references core.currency,
  discount_type       text         not null,
  discount_minor      bigint,
  discount_percent    numeric(7,4),
  max_discount_minor  bigint,
  min_order_minor     core.minor_units,
  skus                text[],
  is_for_all_merchants boolean     not null,
  valid_from          core.finite_time not null,
  valid_to            core.finite_time not null,
  lock_ttl_seconds    int          not null default 900,
  after_reversal      text         not null default 'consumed',
  created_at          timestamptz  not null default now(),
  primary key (tenant_id, template_id),
  unique (external_id, tenant_id),
  foreign key (tenant_id, maker_id) references core.party,
  foreign key (tenant_id, distributor_id) references core.party,
  constraint template_name_is_1_to_200_characters check (length(name) between 1 and 200),
  constraint template_external_id_is_well_formed check (external_id ~ '^tpl_[a-z0-9]{1,40}$'),
  constraint discount_is_fixed_or_percent check (
    case discount_type
      when 'fixed'
        then discount_minor is not null and discount_percent is null and max_discount_minor is null
      when 'percent' then discount_minor is null and discount_percent is not null
      else false
    end),
  constraint fixed_discount_is_positive check (discount_minor > 0),
  constraint percent_is_within_0_and_100 check (discount_percent > 0 and discount_percent <= 100),
  constraint max_discount_is_positive check (max_discount_minor > 0),
  constraint skus_are_not_empty check (cardinality(skus) > 0),
  constraint template_validity_is_forward check (valid_from < valid_to),
  constraint lock_ttl_is_1_second_to_7_days check (lock_ttl_seconds between 1 and 604800),
  constraint after_reversal_is_known check (after_reversal in ('consumed', 'reissued'))
);
comment on table core.template is
  'The terms of batches. Terms about money are fixed once the template has a batch.';
comment on column core.template.skus is
  'Null: the whole order counts. Otherwise only items with these SKUs count.';
comment on column core.template.is_for_all_merchants is
  'True: every merchant of the tenant. False: the merchants in core.template_merchant.';
comment on column core.template.after_reversal is
  'consumed: a reversed coupon stays REDEEMED. reissued: it can be redeemed again.';

create table core.template_merchant (
  tenant_id    int  not null,
  template_id  int  not null,
  merchant_id  int  not null,
  primary key (tenant_id, template_id, merchant_id),
  foreign key (tenant_id, template_id) references core.template,
  foreign key (tenant_id, merchant_id) references core.merchant
);
comment on table core.template_merchant is
  'The merchants of a template that is not for all merchants.';

create table core.master_key (
  version        text         primary key,
  fingerprint    bytea        not null,
  registered_at  timestamptz  not null default clock_timestamp(),
  constraint key_version_is_one_character check (version ~ '^[0-9A-HJKMNP-TV-Z]$'),
  constraint fingerprint_has_16_bytes check (length(fingerprint) = 16)
);
comment on table core.master_key is
  'The versions of the master key that programs use with this database. A program with another '
  'key refuses to start.';
comment on column core.master_key.version is 'The first character of each code.';
comment on column core.master_key.fingerprint is
  'Keyed with the master key itself. Shows whether a program has the same key, and does not help '
  'to find it.';
create trigger master_key_is_immutable before update or truncate on core.master_key
for each statement execute function core.refuse_change();

create table core.batch (
  tenant_id         int          not null,
  batch_id          int          generated always as identity,
  external_id       text         not null unique,
  template_id       int          not null,
  maker_id          int          not null,
  distributor_id    int          not null,
  status            text         not null default 'PENDING',
  total_count       int          not null,
  minted_count      int          not null default 0,
  valid_from        core.finite_time not null,
  valid_to          core.finite_time not null,
  key_version       text         not null references core.master_key,
  salt              bytea,
  caller_id         int          not null,
  request_id        core.client_key not null,
  idempotency_key   core.client_key,
  body_hash         bytea        not null,
  mint_holder       uuid,
  mint_worker       int,
  mint_lease_until  timestamptz,
  created_at        timestamptz  not null,
  completed_at      timestamptz,
  allocated_at      timestamptz,
  codes_destroyed_at timestamptz,
  expired_through   int          not null default 0,
  primary key (tenant_id, batch_id),
  constraint batch_id_is_unique unique (batch_id),
  constraint batch_create_runs_once unique (tenant_id, caller_id, request_id),
  constraint batch_create_runs_once_a_key unique (tenant_id, caller_id, idempotency_key),
  foreign key (tenant_id, template_id) references core.template,
  foreign key (tenant_id, maker_id) references core.party,
  foreign key (tenant_id, distributor_id) references core.party,
  constraint batch_external_id_is_well_formed check (external_id ~ '^bat_[a-z0-9]{1,40}$'),
  constraint batch_status_is_known check (status in ('PENDING', 'COMPLETED', 'ALLOCATED')),
  constraint total_count_is_1_to_10_million check (total_count between 1 and 10000000),
  constraint minted_count_is_within_total check (minted_count between 0 and total_count),
  constraint batch_is_pending_until_all_are_minted check (
    status = 'PENDING' or minted_count = total_count),
  constraint completed_at_agrees_with_status check ((status = 'PENDING') = (completed_at is null)),
  constraint allocated_at_agrees_with_status check (
    (status = 'ALLOCATED') = (allocated_at is not null)),
  constraint salt_is_kept_until_codes_are_destroyed check (
    (salt is null) = (codes_destroyed_at is not null)),
  constraint batch_validity_is_forward check (valid_from < valid_to),
  constraint mint_lease_names_its_worker check ((mint_holder is null) = (mint_worker is null)),
  constraint mint_lease_has_an_end check ((mint_holder is null) = (mint_lease_until is null)),
  constraint expired_through_is_within_total check (expired_through between 0 and total_count),
  constraint only_released_coupons_expire check (expired_through = 0 or status = 'ALLOCATED')
);
comment on table core.batch is
  'Coupons that are minted together and released to their distributor as a whole.';
comment on column core.batch.key_version is
  'Version of the master key, and the first character of each code.';
comment on column core.batch.salt is
  'The batch key is derived from it and the master key. Null: destroyed, so the codes can never '
  'be derived again.';
comment on column core.batch.request_id is
  'Unique per caller, like idempotency_key: a repeated request never mints twice, even after its '
  'record is pruned.';
comment on column core.batch.body_hash is
  'Like core.request.body_hash: recognizes an equal retry after the request record is pruned.';
comment on column core.batch.mint_holder is
  'The job that holds the lease: a random id, new for each slice. A chunk of another holder is '
  'refused.';
comment on column core.batch.mint_worker is 'The number of the worker session behind the holder.';
comment on column core.batch.mint_lease_until is
  'Until then, and while its worker session lasts, only the holder mints. After that, any worker '
  'may continue.';
comment on column core.batch.expired_through is
  'The expiry job has handled the coupons up to this number.';
create index batch_is_pending on core.batch (mint_lease_until) where status = 'PENDING';

create function core.check_batch_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if (new.tenant_id, new.batch_id, new.external_id, new.template_id, new.maker_id,
      new.distributor_id, new.total_count, new.valid_from, new.valid_to, new.key_version,
      new.caller_id, new.request_id, new.idempotency_key, new.created_at)
     is distinct from
     (old.tenant_id, old.batch_id, old.external_id, old.template_id, old.maker_id,
      old.distributor_id, old.total_count, old.valid_from, old.valid_to, old.key_version,
      old.caller_id, old.request_id, old.idempotency_key, old.created_at)
     or (new.salt is not null and new.salt is distinct from old.salt)
  then
    raise exception 'batch %: everything that was submitted is fixed', old.external_id
      using errcode = 'check_violation', constraint = 'batch_is_fixed_at_submission';
  end if;
  if new.minted_count < old.minted_count
     or (old.status, new.status) in (('COMPLETED', 'PENDING'), ('ALLOCATED', 'PENDING'),
                                     ('ALLOCATED', 'COMPLETED'), ('PENDING', 'ALLOCATED'))
  then
    raise exception 'batch %: it cannot change from % to %',
      old.external_id, old.status, new.status
      using errcode = 'check_violation', constraint = 'batch_transition_is_legal';
  end if;
  return new;
end
$$;
comment on function core.check_batch_change() is
  'Trigger: a batch is fixed at submission, and its status only moves forward.';

create trigger batch_transition_is_legal
before update on core.batch
for each row execute function core.check_batch_change();

-- Coupons follow their template, so its terms about money are fixed with the first batch. `for
-- update` waits for another session that is submitting a batch: its foreign key holds a lock on the
-- template's row.
create function core.check_template_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if (new.tenant_id, new.maker_id, new.currency, new.discount_type, new.discount_minor,
      new.discount_percent, new.max_discount_minor, new.min_order_minor, new.skus,
      new.after_reversal)
     is distinct from
     (old.tenant_id, old.maker_id, old.currency, old.discount_type, old.discount_minor,
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
comment on function core.check_template_change() is
  'Trigger: a template with batches keeps its terms.';

create trigger template_with_batches_keeps_its_terms
before update on core.template
for each row execute function core.check_template_change();
create index batch_of_template on core.batch (template_id, tenant_id);

create trigger identity_is_fixed before update on core.template
for each row when (
  new.tenant_id <> old.tenant_id or new.template_id <> old.template_id
  or new.external_id <> old.external_id)
execute function core.keep_identity();

create trigger template_is_kept before delete on core.template
for each statement execute function core.refuse_change();
create trigger batch_is_kept before delete or truncate on core.batch
for each statement execute function core.refuse_change();
create index batch_is_expiring on core.batch (valid_to)
where status = 'ALLOCATED' and expired_through < total_count;
