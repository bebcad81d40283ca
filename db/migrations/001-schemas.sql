-- The schemas, the domains of columns in busy tables, the currencies, and the trigger that makes
-- rows immutable. Everything is created as coupon_owner, which cannot log in.

create schema if not exists core;
create schema rules;
create schema api;
create schema gate;
create schema jobs;
create schema admin;
create schema report;
comment on schema core is 'Tables, constraints and triggers. Changed by migrations only.';
comment on schema rules is 'Private building blocks of the operations.';
comment on schema api is
  'One function per operation of the HTTP interface. Called by gate.perform only.';
comment on schema gate is 'Everything that coupon_api may call.';
comment on schema jobs is 'Everything that coupon_worker may call.';
comment on schema admin is
  'Everything that coupon_admin may call: provisioning, patches, export of codes.';
comment on schema report is 'Views for people and reporting tools.';

-- Objects of the owner grant nothing to public.
alter default privileges revoke execute on functions from public;
alter default privileges revoke usage on types from public;

create table core.code_version (
  is_current  boolean      primary key default true,
  sha256      text         not null,
  loaded_at   timestamptz  not null default now(),
  constraint code_version_is_current_or_before unique (sha256)
);
comment on table core.code_version is
  'The loaded version of db/code, as a sha256 of its files, and the previous version.';
comment on column core.code_version.is_current is
  'False: the previous version. Its programs still find every function that they call.';

-- Columns of busy tables are checked by domains, because that is cheaper: a session caches the
-- checks of a type, but reads the checks of a table again for each statement that writes.
create domain core.client_key as text
  constraint client_key_is_1_to_128_characters check (length(value) between 1 and 128);
comment on domain core.client_key is
  'A key that a client chose for a request: request_id or idempotency-key.';

create domain core.finite_time as timestamptz
  constraint time_is_finite check (isfinite(value));
comment on domain core.finite_time is 'A moment, never infinity.';

create domain core.minor_units as bigint
  constraint amount_is_not_negative check (value >= 0);
comment on domain core.minor_units is
  'An amount of money in minor units of its currency, never negative.';

create table core.currency (
  currency  text      primary key,
  decimals  smallint  not null,
  constraint currency_is_iso_4217 check (currency ~ '^[A-Z]{3}$'),
  constraint decimals_are_0_to_4 check (decimals between 0 and 4)
);
comment on table core.currency is
  'ISO 4217 currencies and the number of decimals of their amounts.';

insert into core.currency (currency, decimals)
select unnest(string_to_array(
  'AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD '
  'CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL '
  'GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR '
  'LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD '
  'PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC '
  'SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD XCG YER ZAR ZMW '
  'ZWG', ' ')), 2
union all
select unnest(string_to_array(
  'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF', ' ')), 0
union all
select unnest(string_to_array('BHD IQD JOD KWD LYD OMR TND', ' ')), 3
union all
select unnest(string_to_array('CLF UYW', ' ')), 4;

-- Rows of these tables are kept, because other rows refer to them, some without a foreign key.
create function core.refuse_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  raise exception '%.% keeps its rows: % refused', tg_table_schema, tg_table_name, lower(tg_op)
    using errcode = 'integrity_constraint_violation';
end
$$;
comment on function core.refuse_change() is
  'Trigger: rows of this table are never deleted, and in some tables never changed.';
create trigger currency_is_immutable before update or delete or truncate on core.currency
for each statement execute function core.refuse_change();
