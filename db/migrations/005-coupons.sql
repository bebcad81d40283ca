-- Coupons: their fixed columns, their legal transitions, and their patched valid_to.
--
-- Here and in the tables below, an index on an ID begins with the ID, not with the tenant. Reports
-- then find a row by its ID alone, and a plan made without statistics cannot take an index for
-- another one that begins with the tenant too.

create domain core.coupon_status as text
  constraint coupon_status_is_known check (
    value in ('ISSUED', 'LOCKED', 'REDEEMED', 'EXPIRED', 'VOIDED'));
comment on domain core.coupon_status is
  'The status as last written. report.coupon shows the effective status at this moment.';

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
  primary key (coupon_id, tenant_id),
  constraint code_is_unique_in_tenant unique (lookup_hash, tenant_id),
  constraint number_is_unique_in_batch unique (batch_id, tenant_id, number),
  constraint coupon_validity_is_forward check (valid_from < valid_to)
) with (fillfactor = 85);
comment on table core.coupon is 'One row per coupon. The database does not hold its code.';
comment on column core.coupon.number is '1 to total_count of its batch, without gaps.';
comment on column core.coupon.code_attempt is
  'How often the code was derived again because another coupon of the tenant had it. Nearly '
  'always 0.';
comment on column core.coupon.coupon_id is 'UUIDv7. Outside the database: cpn_ and 26 characters.';
comment on column core.coupon.lookup_hash is
  '128 bits of a keyed hash of the code, stored in a type of fixed width. The key is not in the '
  'database.';
comment on column core.coupon.status is
  'The status as last written. An expired lock or a passed valid_to takes effect at once: '
  'report.coupon shows the effective status.';

-- A separate trigger protects the identity. It fires only for statements that set one of its
-- columns, so it costs a redemption nothing.
create function core.check_coupon_identity() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if (new.tenant_id, new.batch_id, new.number, new.code_attempt, new.coupon_id, new.lookup_hash,
      new.created_at)
     is distinct from
     (old.tenant_id, old.batch_id, old.number, old.code_attempt, old.coupon_id, old.lookup_hash,
      old.created_at)
  then
    raise exception 'coupon %: its identity is fixed', old.coupon_id
      using errcode = 'check_violation', constraint = 'coupon_identity_is_fixed';
  end if;
  return new;
end
$$;
comment on function core.check_coupon_identity() is 'Trigger: the identity of a coupon is fixed.';

create trigger coupon_identity_is_fixed
before update of tenant_id, batch_id, number, code_attempt, coupon_id, lookup_hash, created_at
on core.coupon
for each row execute function core.check_coupon_identity();

-- Legal transitions, also for direct SQL. core.check_coupons compares the status with the
-- redemptions. An ISSUED coupon may get each other status, so the usual change calls no function.
-- The condition is short, because each statement reads it again.
create function core.check_coupon_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if new.status <> old.status and not (case old.status
    when 'LOCKED' then new.status in ('REDEEMED', 'ISSUED', 'EXPIRED', 'VOIDED')
    when 'REDEEMED' then new.status in ('ISSUED', 'EXPIRED') and (
      select t.after_reversal
      from core.batch b
      join core.template t on t.tenant_id = b.tenant_id and t.template_id = b.template_id
      where b.tenant_id = old.tenant_id and b.batch_id = old.batch_id) = 'reissued'
    when 'EXPIRED' then new.status = 'ISSUED' and new.valid_to > clock_timestamp()
    else false
  end) then
    raise exception 'coupon %: it cannot change from % to %',
      old.coupon_id, old.status, new.status
      using errcode = 'check_violation', constraint = 'coupon_transition_is_legal';
  end if;
  -- The expiry job may have passed the coupon: psql frees it after its end, or the clock was ahead.
  -- Then it expires alone. A changed valid_to makes an extension by itself.
  if new.status = 'ISSUED' and new.valid_to = old.valid_to then
    insert into core.coupon_extension (tenant_id, coupon_id, valid_to)
    select old.tenant_id, old.coupon_id, old.valid_to
    from core.batch b
    where b.tenant_id = old.tenant_id
      and b.batch_id = old.batch_id
      and b.expired_through >= old.number
    on conflict (tenant_id, coupon_id) do nothing;
  end if;
  return new;
end
$$;
comment on function core.check_coupon_change() is
  'Trigger: a coupon''s status changes only in legal ways, and no coupon misses its expiry.';

create trigger coupon_transition_is_legal
before update of status on core.coupon
for each row when (old.status <> 'ISSUED') execute function core.check_coupon_change();

-- Checks the whole chunk and its batch at once, so the cost is per statement and not per row.
create function core.check_minted_numbers() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if exists (select from new_coupon n where n.status <> 'ISSUED') then
    raise exception 'a new coupon must be ISSUED'
      using errcode = 'check_violation', constraint = 'coupon_is_minted_issued';
  end if;
  if exists (
    select
    from (
      select c.tenant_id, c.batch_id, min(c.number) as first_number, max(c.number) as last_number
      from new_coupon c
      group by c.tenant_id, c.batch_id) n
    left join core.batch b on b.tenant_id = n.tenant_id and b.batch_id = n.batch_id
    where n.first_number < 1
       or n.last_number > b.total_count
       or b.status is distinct from 'PENDING')
  then
    raise exception 'new coupons need a PENDING batch, and numbers from 1 to its total_count'
      using errcode = 'check_violation', constraint = 'number_is_within_batch';
  end if;
  return null;
end
$$;
comment on function core.check_minted_numbers() is
  'Trigger: a coupon belongs to a pending batch, and its number is within the batch''s total.';

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
  foreign key (tenant_id, coupon_id) references core.coupon (tenant_id, coupon_id)
);
comment on table core.coupon_extension is
  'Coupons whose valid_to was patched. The expiry job checks them one by one. A trigger maintains '
  'this table.';
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
comment on function core.record_extension() is
  'Trigger: records a patched valid_to for the expiry job.';

create trigger extension_is_noted
after update of valid_to on core.coupon
for each row when (new.valid_to <> old.valid_to) execute function core.record_extension();

-- Reads the coupons that the step has just written, by number. A LOCKED or REDEEMED coupon may be
-- passed after the end of its batch: once it is free again, it is EXPIRED.
create function core.check_expiry() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
begin
  if new.expired_through > old.expired_through and (
    new.valid_to > clock_timestamp()
    or exists (
      select
      from core.coupon c
      where c.tenant_id = new.tenant_id
        and c.batch_id = new.batch_id
        and c.number > old.expired_through
        and c.number <= new.expired_through
        and c.status = 'ISSUED'
        and not exists (
          select
          from core.coupon_extension x
          where x.tenant_id = c.tenant_id and x.coupon_id = c.coupon_id)))
  then
    raise exception 'batch %: the expiry job cannot pass coupons that it has not handled',
      new.external_id
      using errcode = 'check_violation', constraint = 'expiry_passes_no_issued_coupon',
            hint = 'Leave expired_through to the worker.';
  end if;
  return null;
end
$$;
comment on function core.check_expiry() is
  'Trigger: the coupons that the expiry job has passed are not ISSUED, except extended ones.';

create trigger expiry_passes_no_issued_coupon
after update of expired_through on core.batch
for each row execute function core.check_expiry();

create function core.check_extension() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'DELETE' then
    if exists (
      select
      from core.coupon c
      where c.tenant_id = old.tenant_id
        and c.coupon_id = old.coupon_id
        and (c.status = 'ISSUED' or c.valid_to > clock_timestamp()))
    then
      raise exception 'coupon % must be in core.coupon_extension until it has expired',
        old.coupon_id
        using errcode = 'check_violation', constraint = 'extended_coupon_expires';
    end if;
  elsif not exists (
    select
    from core.coupon c
    where c.tenant_id = new.tenant_id
      and c.coupon_id = new.coupon_id
      and c.valid_to = new.valid_to)
  then
    raise exception 'the extension of coupon % has another valid_to than the coupon', new.coupon_id
      using errcode = 'check_violation', constraint = 'extended_coupon_expires',
            hint = 'Update the coupon: a trigger maintains its extension.';
  end if;
  return null;
end
$$;
comment on function core.check_extension() is
  'Trigger: an extension has the valid_to of its coupon and is kept until the coupon has expired.';

create trigger extended_coupon_expires
after insert or update or delete on core.coupon_extension
for each row execute function core.check_extension();

create trigger extension_is_kept before truncate on core.coupon_extension
for each statement execute function core.refuse_change();
