-- Tenants and their parties, merchants with stores and delegates, credentials, and webhooks.
-- Provisioned rows have a small generated key and the external_id from the provisioning file.

create table core.tenant (
  tenant_id    int          primary key generated always as identity,
  external_id  text         not null unique,
  name         text         not null,
  variant      text         not null,
  amount_unit  text         not null,
  created_at   timestamptz  not null default now(),
  constraint tenant_name_is_1_to_200_characters check (length(name) between 1 and 200),
  constraint tenant_external_id_is_well_formed check (external_id ~ '^ten_[a-z0-9]{1,40}$'),
  constraint variant_is_known check (variant in ('A', 'B')),
  constraint amount_unit_is_known check (amount_unit in ('major', 'minor'))
);
comment on table core.tenant is
  'The unit of isolation: no data crosses tenants, and tenant_id is part of every key.';
comment on column core.tenant.variant is
  'A: a credential acts for the tenant. B: a credential acts for one party.';
comment on column core.tenant.amount_unit is
  'The unit of amounts in requests, answers and provisioning files. Stored amounts are always '
  'minor units.';

create table core.party (
  tenant_id    int          not null references core.tenant,
  party_id     int          generated always as identity,
  external_id  text         not null,
  name         text         not null,
  time_zone    text         not null,
  created_at   timestamptz  not null default now(),
  primary key (tenant_id, party_id),
  unique (external_id, tenant_id),
  constraint party_name_is_1_to_200_characters check (length(name) between 1 and 200),
  constraint party_external_id_is_well_formed check (external_id ~ '^pty_[a-z0-9]{1,40}$'),
  constraint time_zone_is_known check (now() at time zone time_zone is not null),
  -- PostgreSQL takes CET for an offset without summer time, as if it were no name of a zone
  constraint time_zone_is_no_abbreviation check (time_zone = 'UTC' or time_zone !~ '^[[:alpha:]]+$')
);
comment on table core.party is
  'A company inside a tenant: maker, distributor or merchant operator, or several of these.';
comment on column core.party.time_zone is
  'IANA name. The business days of a distributor are local days in this zone.';

create sequence core.worker_number as int;
comment on sequence core.worker_number is
  'Numbers of worker sessions. A number is used once: a session that is lost never gets it back.';

create table core.webhook (
  tenant_id      int          not null,
  party_id       int          not null,
  url            text         not null,
  sealed_secret  bytea        not null,
  secret_hash    bytea        not null,
  rotated_at     timestamptz,
  disabled_at    timestamptz,
  created_at     timestamptz  not null default now(),
  holder         uuid,
  worker         int,
  lease_until    timestamptz,
  paused_until   timestamptz,
  primary key (tenant_id, party_id),
  foreign key (tenant_id, party_id) references core.party,
  constraint url_is_http check (url ~ '^https?://'),
  constraint url_is_at_most_2048_characters check (length(url) <= 2048),
  constraint lease_names_its_worker check ((holder is null) = (worker is null)),
  constraint lease_has_an_end check (holder is null or lease_until is not null)
);
comment on table core.webhook is
  'Where a party receives its events. At most one webhook per party.';
comment on column core.webhook.sealed_secret is
  'Encrypted with AES-256-GCM under the master key. Only the worker opens it.';
comment on column core.webhook.secret_hash is
  'Keyed hash of the secret. Shows whether a provisioning file changes the secret.';
comment on column core.webhook.holder is
  'The job that holds the lease: a random id, new for each slice.';
comment on column core.webhook.worker is
  'The number of the worker session behind the holder.';
comment on column core.webhook.lease_until is
  'Until then, and while its worker session lasts, only the holder delivers to this subscriber. '
  'After that, any worker may continue.';
comment on column core.webhook.paused_until is
  'No delivery before this time: the subscriber sent Retry-After.';

create table core.merchant (
  tenant_id    int          not null references core.tenant,
  merchant_id  int          generated always as identity,
  external_id  text         not null,
  name         text         not null,
  party_id     int          not null,
  created_at   timestamptz  not null default now(),
  primary key (tenant_id, merchant_id),
  unique (external_id, tenant_id),
  constraint merchant_id_is_unique unique (merchant_id),
  foreign key (tenant_id, party_id) references core.party,
  constraint merchant_name_is_1_to_200_characters check (length(name) between 1 and 200),
  constraint merchant_external_id_is_well_formed check (external_id ~ '^mch_[a-z0-9]{1,40}$')
);
comment on table core.merchant is
  'A place that redeems coupons. It belongs to one party, and delegates may act for it.';

create table core.merchant_delegate (
  tenant_id    int  not null,
  merchant_id  int  not null,
  party_id     int  not null,
  primary key (tenant_id, merchant_id, party_id),
  foreign key (tenant_id, merchant_id) references core.merchant,
  foreign key (tenant_id, party_id) references core.party
);
comment on table core.merchant_delegate is
  'Parties that may act for a merchant besides its own party (Variant B).';

create table core.store (
  tenant_id    int   not null,
  store_id     int   generated always as identity,
  merchant_id  int   not null,
  external_id  text  not null,
  primary key (tenant_id, store_id),
  unique (tenant_id, merchant_id, external_id),
  foreign key (tenant_id, merchant_id) references core.merchant,
  constraint store_external_id_is_1_to_64_characters check (length(external_id) between 1 and 64)
);
comment on table core.store is 'Stores registered under a merchant. Only Variant B checks them.';

create table core.terminal (
  tenant_id    int   not null,
  store_id     int   not null,
  external_id  text  not null,
  primary key (tenant_id, store_id, external_id),
  foreign key (tenant_id, store_id) references core.store on delete cascade,
  constraint terminal_external_id_is_1_to_64_characters check (length(external_id) between 1 and 64)
);
comment on table core.terminal is 'Terminals registered under a store. Only Variant B checks them.';

create table core.credential (
  tenant_id      int          not null references core.tenant,
  credential_id  int          generated always as identity,
  access_key     text         not null unique,
  party_id       int,
  sealed_secret  bytea        not null,
  secret_hash    bytea        not null,
  created_at     timestamptz  not null default now(),
  revoked_at     timestamptz,
  primary key (tenant_id, credential_id),
  foreign key (tenant_id, party_id) references core.party,
  constraint access_key_is_well_formed check (access_key ~ '^ak_[A-Za-z0-9_-]{1,64}$')
);
comment on table core.credential is
  'Access keys. An access key is unique across tenants, because it identifies the caller.';
comment on column core.credential.party_id is
  'Variant B: the party that calls. Null in Variant A: the tenant itself calls.';
comment on column core.credential.sealed_secret is
  'Encrypted with AES-256-GCM under the master key. Only the HTTP layer opens it.';
comment on column core.credential.secret_hash is
  'Keyed hash of the secret. Shows whether a provisioning file changes the secret.';

-- A tenant with credentials never changes its variant, so checking the credential's row is enough.
create function core.check_credential_party() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'UPDATE'
     and ((new.tenant_id, new.credential_id, new.access_key, new.party_id)
          is distinct from (old.tenant_id, old.credential_id, old.access_key, old.party_id)
          or (old.revoked_at is not null and new.revoked_at is distinct from old.revoked_at))
  then
    raise exception 'credential %: its caller is fixed, and a revocation is final', old.access_key
      using errcode = 'check_violation', constraint = 'credential_stands_for_one_caller';
  end if;
  if (select t.variant from core.tenant t where t.tenant_id = new.tenant_id)
     is distinct from (case when new.party_id is null then 'A' else 'B' end)
  then
    raise exception 'credential %: it needs a party in Variant B and none in Variant A',
      new.access_key
      using errcode = 'check_violation', constraint = 'party_is_given_exactly_in_variant_b';
  end if;
  return new;
end
$$;
comment on function core.check_credential_party() is
  'Trigger: a credential has a party in Variant B only, its caller is fixed, and a revocation is '
  'final.';

create trigger party_is_given_exactly_in_variant_b
before insert or update on core.credential
for each row execute function core.check_credential_party();

-- `for update` waits for another session that is inserting a credential: its foreign key holds a
-- lock on the tenant's row.
create function core.keep_tenant_fixed() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if (new.variant, new.amount_unit) is distinct from (old.variant, old.amount_unit) then
    perform from core.tenant t where t.tenant_id = old.tenant_id for update;
    if exists (select from core.credential c where c.tenant_id = old.tenant_id) then
      raise exception 'tenant %: variant and amount_unit are fixed once it has credentials',
        old.external_id
        using errcode = 'check_violation', constraint = 'variant_and_unit_are_fixed_in_use';
    end if;
  end if;
  return new;
end
$$;
comment on function core.keep_tenant_fixed() is
  'Trigger: a tenant with credentials keeps its variant and amount unit.';

create trigger variant_and_unit_are_fixed_in_use
before update on core.tenant
for each row execute function core.keep_tenant_fixed();

-- Redemptions and ledger entries refer to rows by key, without a foreign key. Statements and events
-- refer to them by external_id. So neither may change.
create function core.keep_identity() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  raise exception '% %: key, tenant and external_id are fixed', tg_table_name, old.external_id
    using errcode = 'check_violation', constraint = 'identity_is_fixed';
end
$$;
comment on function core.keep_identity() is 'Trigger: keys and external ids never change.';

create trigger identity_is_fixed before update on core.tenant
for each row when (new.tenant_id <> old.tenant_id or new.external_id <> old.external_id)
execute function core.keep_identity();

create trigger identity_is_fixed before update on core.party
for each row when (
  new.tenant_id <> old.tenant_id or new.party_id <> old.party_id
  or new.external_id <> old.external_id)
execute function core.keep_identity();

create trigger identity_is_fixed before update on core.merchant
for each row when (
  new.tenant_id <> old.tenant_id or new.merchant_id <> old.merchant_id
  or new.external_id <> old.external_id)
execute function core.keep_identity();

create trigger tenant_is_kept before delete on core.tenant
for each statement execute function core.refuse_change();
create trigger party_is_kept before delete on core.party
for each statement execute function core.refuse_change();
create trigger merchant_is_kept before delete on core.merchant
for each statement execute function core.refuse_change();
create trigger credential_is_kept before delete or truncate on core.credential
for each statement execute function core.refuse_change();
