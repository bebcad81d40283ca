-- The coupons of a batch: what is fixed, which transitions are legal, and which ones end later than their batch.

create domain core.coupon_status as text
  constraint coupon_status_is_known check (value in ('ISSUED', 'LOCKED', 'REDEEMED', 'EXPIRED', 'VOIDED'));
comment on domain core.coupon_status is 'As last written; what counts at a moment is the effective status (report.coupon).';

create table core.coupon (
  tenant_id     int          not null,
  batch_id      int          not null,
  number        int          not null,
  code_attempt  smallint     not null default 0,
  coupon_id     uuid         not null,
  lookup_hash   uuid         not null,
  valid_from    core.finite_time not null,
  valid_to      core.finite_time not null,
  created_at    timestamptz  not null,
  status        core.coupon_status not null default 'ISSUED',
  primary key (tenant_id, coupon_id),
  constraint code_is_unique_in_tenant unique (tenant_id, lookup_hash),
  constraint number_is_unique_in_batch unique (tenant_id, batch_id, number),
  constraint coupon_validity_is_forward check (valid_from < valid_to)
) with (fillfactor = 85);
comment on table core.coupon is 'One row a coupon. The code itself is nowhere in the database.';
comment on column core.coupon.coupon_id is 'UUIDv7; outside: cpn_ and 26 characters.';
comment on column core.coupon.number is '1..total_count of its batch, without gaps.';
comment on column core.coupon.code_attempt is 'How often the code was drawn again because another coupon of the tenant had it: nearly always 0.';
comment on column core.coupon.lookup_hash is '128 bits of a keyed hash of the code, in the fixed-width type; the key is not in the database.';
comment on column core.coupon.status is 'As last written. A lock past its end or a passed valid_to counts at once: report.coupon shows the effective status.';

-- Identity is looked at by a trigger of its own, which fires for statements that name one of these columns: a redemption names none.
create function core.check_coupon_identity() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if (new.tenant_id, new.batch_id, new.number, new.code_attempt, new.coupon_id, new.lookup_hash, new.created_at)
     is distinct from
     (old.tenant_id, old.batch_id, old.number, old.code_attempt, old.coupon_id, old.lookup_hash, old.created_at)
  then
    raise exception 'coupon %: its identity is fixed', old.coupon_id
      using errcode = 'check_violation', constraint = 'coupon_identity_is_fixed';
  end if;
  return new;
end
$$;
comment on function core.check_coupon_identity() is 'Trigger: identity of a coupon is fixed.';

create trigger coupon_identity_is_fixed
before update of tenant_id, batch_id, number, code_attempt, coupon_id, lookup_hash, created_at on core.coupon
for each row execute function core.check_coupon_identity();

-- The legal ways of a coupon, also for direct SQL. Agreement with its redemptions is checked by the statement
-- (core.check_coupons).
create function core.check_coupon_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if new.status <> old.status
     and old.status || ' to ' || new.status <> all ('{
       ISSUED to LOCKED, ISSUED to REDEEMED, ISSUED to VOIDED, ISSUED to EXPIRED,
       LOCKED to REDEEMED, LOCKED to ISSUED, LOCKED to EXPIRED, LOCKED to VOIDED,
       REDEEMED to ISSUED, REDEEMED to EXPIRED, EXPIRED to ISSUED}')
     or old.status = 'EXPIRED' and new.status = 'ISSUED' and new.valid_to <= clock_timestamp()
  then
    raise exception 'coupon %: from % to % is no legal transition', old.coupon_id, old.status, new.status
      using errcode = 'check_violation', constraint = 'coupon_transition_is_legal';
  end if;
  return new;
end
$$;
comment on function core.check_coupon_change() is 'Trigger: transitions of a coupon are legal.';

create trigger coupon_transition_is_legal
before update of status on core.coupon
for each row execute function core.check_coupon_change();

-- One look at the whole chunk, and at its batch, so that minting pays once a statement and not once a row.
create function core.check_minted_numbers() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if exists (select from new_coupon n where n.status <> 'ISSUED') then
    raise exception 'a coupon is minted as ISSUED'
      using errcode = 'check_violation', constraint = 'coupon_is_minted_issued';
  end if;
  if exists (
    select
    from (
      select c.tenant_id, c.batch_id, min(c.number) as first_number, max(c.number) as last_number
      from new_coupon c
      group by c.tenant_id, c.batch_id) n
    left join core.batch b on b.tenant_id = n.tenant_id and b.batch_id = n.batch_id
    where n.first_number < 1 or n.last_number > b.total_count or b.status is distinct from 'PENDING')
  then
    raise exception 'coupons are minted into a pending batch, from 1 up to its total_count'
      using errcode = 'check_violation', constraint = 'number_is_within_batch';
  end if;
  return null;
end
$$;
comment on function core.check_minted_numbers() is 'Trigger: a coupon is of a batch, which gets none beyond its total, and none once it is completed.';

create trigger number_is_within_batch
after insert on core.coupon
referencing new table as new_coupon
for each statement execute function core.check_minted_numbers();

create trigger coupon_is_kept before delete or truncate on core.coupon
for each statement execute function core.refuse_change();

create table core.coupon_extension (
  tenant_id  int          not null,
  coupon_id  uuid         not null,
  valid_to   timestamptz  not null,
  primary key (tenant_id, coupon_id),
  foreign key (tenant_id, coupon_id) references core.coupon
);
comment on table core.coupon_extension is 'Coupons whose valid_to was patched: the expiry job looks for them one by one. Kept by a trigger.';
create index coupon_extension_by_end on core.coupon_extension (valid_to);

create function core.record_extension() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into core.coupon_extension (tenant_id, coupon_id, valid_to)
  values (new.tenant_id, new.coupon_id, new.valid_to)
  on conflict (tenant_id, coupon_id) do update set valid_to = excluded.valid_to;
  return null;
end
$$;
comment on function core.record_extension() is 'Trigger: a patched valid_to is noted for the expiry job.';

create trigger extension_is_noted
after update of valid_to on core.coupon
for each row when (new.valid_to <> old.valid_to) execute function core.record_extension();
