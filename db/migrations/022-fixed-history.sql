-- What psql could change unseen: the body that a batch create is compared with, when things
-- happened to a batch, the end of a lock, and how long a used coupon was valid.

create or replace function core.check_batch_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if (new.tenant_id, new.batch_id, new.external_id, new.template_id, new.maker_id,
      new.distributor_id, new.total_count, new.valid_from, new.valid_to, new.key_version,
      new.caller_id, new.request_id, new.idempotency_key, new.body_hash,
      new.created_at)
     is distinct from
     (old.tenant_id, old.batch_id, old.external_id, old.template_id, old.maker_id,
      old.distributor_id, old.total_count, old.valid_from, old.valid_to, old.key_version,
      old.caller_id, old.request_id, old.idempotency_key, old.body_hash,
      old.created_at)
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
  if new.completed_at is distinct from coalesce(old.completed_at, new.completed_at)
     or new.allocated_at is distinct from coalesce(old.allocated_at, new.allocated_at)
     or new.codes_destroyed_at
        is distinct from coalesce(old.codes_destroyed_at, new.codes_destroyed_at)
  then
    raise exception 'batch %: the times of what happened to it are fixed', old.external_id
      using errcode = 'check_violation', constraint = 'batch_times_are_fixed';
  end if;
  return new;
end
$$;
comment on function core.check_batch_change() is
  'Trigger: a batch is fixed at submission, its times are fixed once set, and its status only '
  'moves forward.';

create or replace function core.check_redemption_terms() returns trigger
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
     or (old.status <> 'LOCKED' and new.lock_expires_at is distinct from old.lock_expires_at)
  then
    raise exception 'redemption %: its granted terms are fixed', old.redemption_id
      using errcode = 'check_violation', constraint = 'redemption_terms_are_fixed';
  end if;
  return new;
end
$$;
comment on function core.check_redemption_terms() is
  'Trigger: the terms of a redemption are fixed; redeemed_at and ended_at are fixed once set, and '
  'the end of a lock once it is no longer live.';

create or replace trigger redemption_terms_are_fixed
before update of tenant_id, redemption_id, coupon_id, merchant_id, caller_id, lock_request_id,
  currency, discount_minor, order_minor, store, terminal, order_id, started_at,
  lock_expires_at, redeemed_at, ended_at
on core.redemption
for each row execute function core.check_redemption_terms();

-- No function moves the end of a live lock, but a DBA may have to.
create function core.audit_lock_end() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into core.audit (tenant_id, action, target, details)
  values (new.tenant_id, 'move_lock_end', new.redemption_id::text, jsonb_build_object(
    'lock_expires_at_before', old.lock_expires_at, 'lock_expires_at', new.lock_expires_at));
  return null;
end
$$;
comment on function core.audit_lock_end() is
  'Trigger: a lock whose end is moved by psql gets a row in core.audit, with its redemption_id.';

create trigger lock_end_is_audited
after update of lock_expires_at on core.redemption
for each row when (new.lock_expires_at is distinct from old.lock_expires_at)
execute function core.audit_lock_end();

-- A used coupon may be reissued, so its validity can still matter.
create function core.audit_validity() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into core.audit (tenant_id, action, target, details)
  values (new.tenant_id, 'move_validity', new.coupon_id::text, jsonb_build_object(
    'status', old.status, 'valid_from_before', old.valid_from, 'valid_from', new.valid_from,
    'valid_to_before', old.valid_to, 'valid_to', new.valid_to));
  return null;
end
$$;
comment on function core.audit_validity() is
  'Trigger: a REDEEMED or VOIDED coupon whose validity is moved by psql gets a row in core.audit, '
  'with its coupon_id.';

create trigger validity_of_a_used_coupon_is_audited
after update of valid_from, valid_to on core.coupon
for each row when (
  old.status in ('REDEEMED', 'VOIDED')
  and (new.valid_from <> old.valid_from or new.valid_to <> old.valid_to))
execute function core.audit_validity();

create table core.prune_walk (
  table_name  text         primary key,
  next_block  bigint       not null,
  noted_at    timestamptz  not null,
  constraint table_name_is_at_most_63_characters check (length(table_name) <= 63),
  constraint next_block_is_not_negative check (next_block >= 0)
);
comment on table core.prune_walk is
  'How far the nightly deletion of old rows has read a table, while it runs or after it was '
  'interrupted. A walk that has reached the end has no row.';
comment on column core.prune_walk.table_name is 'A table of the schema core.';
comment on column core.prune_walk.next_block is 'The block with which it goes on.';
