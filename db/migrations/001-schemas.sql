-- The schemas, the domains of busy columns, the currencies, and the trigger behind "never changed".
-- Everything is created as coupon_owner, which cannot log in.

create schema if not exists core;
create schema rules;
create schema api;
create schema gate;
create schema jobs;
create schema admin;
create schema report;
comment on schema core is 'Tables, constraints and triggers. Changed by migrations only.';
comment on schema rules is 'Private building blocks of the operations.';
comment on schema api is 'One function an operation of the HTTP interface. Called by gate.perform only.';
comment on schema gate is 'All that coupon_api may call.';
comment on schema jobs is 'All that coupon_worker may call.';
comment on schema admin is 'All that coupon_admin may call: provisioning, patches, hand-over of codes.';
comment on schema report is 'Views for people and reporting tools.';

-- Nothing that the owner makes is open to everybody.
alter default privileges revoke execute on functions from public;
alter default privileges revoke usage on types from public;

create table core.code_version (
  is_current  boolean      primary key default true,
  sha256      text         not null,
  loaded_at   timestamptz  not null default now(),
  constraint code_version_is_current_or_before unique (sha256)
);
comment on table core.code_version is 'Which db/code is loaded: sha256 over its files; and which was before.';
comment on column core.code_version.is_current is 'False: what was loaded before. Programs of that version still find all they call.';

-- What a column of a busy table may hold is said in its type where it can be: the checks of a type are kept ready
-- by a session, those of a table are read anew for each statement that writes.
create domain core.client_key as text
  constraint client_key_is_1_to_128_characters check (length(value) between 1 and 128);
comment on domain core.client_key is 'What a client chose to know a request by: request_id or idempotency-key.';

create domain core.finite_time as timestamptz
  constraint time_is_finite check (isfinite(value));
comment on domain core.finite_time is 'A moment, and not "infinity": everything ends.';

create domain core.minor_units as bigint
  constraint amount_is_not_negative check (value >= 0);
comment on domain core.minor_units is 'An amount of money in minor units of its currency, never negative.';

create table core.currency (
  currency  text      primary key,
  decimals  smallint  not null,
  constraint currency_is_iso_4217 check (currency ~ '^[A-Z]{3}$'),
  constraint decimals_are_0_to_4 check (decimals between 0 and 4)
);
comment on table core.currency is 'ISO 4217: how many decimals an amount of a currency has.';

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

-- Behind "never deleted": other rows, some without a foreign key, refer to these for ever.
create function core.refuse_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  raise exception '%.% keeps its rows: % refused', tg_table_schema, tg_table_name, lower(tg_op)
    using errcode = 'integrity_constraint_violation';
end
$$;
comment on function core.refuse_change() is 'Trigger: this table''s rows are not deleted, or not changed at all.';
create trigger currency_is_immutable before update or delete or truncate on core.currency
for each statement execute function core.refuse_change();
