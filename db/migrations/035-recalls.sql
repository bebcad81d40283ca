-- A maker stops its batch: a suspension refuses locks and redeems until it is resumed, and a recall
-- also voids what is unused. Nothing is added to a redemption: it reads the batch anyway.

alter table core.batch
  add column suspended_at timestamptz,
  add column recalled_at timestamptz,
  add column recall_caller_id int,
  add column recall_reason text,
  add column recalled_through int not null default 0,
  add column recall_voided_count int not null default 0,
  add column recall_finished_at timestamptz,
  add constraint recalled_batch_is_suspended check (
    recalled_at is null or suspended_at is not null),
  add constraint recall_names_its_caller check ((recalled_at is null) = (recall_caller_id is null)),
  add constraint only_a_recalled_batch_has_a_reason check (
    recalled_at is not null or recall_reason is null),
  add constraint recall_reason_is_at_most_1000_characters check (length(recall_reason) <= 1000),
  add constraint recall_reason_is_printable check (core.is_printable(recall_reason)),
  add constraint recall_passes_minted_coupons check (
    recalled_through between 0 and case when recalled_at is null then 0 else minted_count end),
  add constraint recall_voids_what_it_has_passed check (
    recall_voided_count between 0 and recalled_through),
  add constraint recall_finishes_with_the_last_coupon check (
    recall_finished_at is null or (recalled_at is not null and recalled_through = minted_count));
comment on column core.batch.suspended_at is
  'From then on its coupons cannot be locked or redeemed. Null: they can.';
comment on column core.batch.recalled_at is
  'From then on the worker voids its unused coupons. Null: not recalled.';
comment on column core.batch.recall_caller_id is
  'Who recalled it, for its voidings: the party in Variant B, 0 in A and for an administrator.';
comment on column core.batch.recall_reason is 'The reason of its voidings. Null: none was given.';
comment on column core.batch.recalled_through is
  'The recall has handled the coupons up to this number: unused ones are VOIDED, LOCKED ones are '
  'in core.recalled_lock.';
comment on column core.batch.recall_voided_count is
  'Coupons that the recall has voided: of those that were unused or LOCKED when it began.';
comment on column core.batch.recall_finished_at is
  'From then on none of its coupons is unused or LOCKED.';
comment on column core.batch.mint_holder is
  'The job that holds the lease, to mint the batch or to recall it: a random id, new for each '
  'slice. A chunk of another holder is refused.';
comment on column core.batch.mint_lease_until is
  'Until then, and while its worker session lasts, only the holder mints or recalls. After that, '
  'any worker may continue.';
create index batch_is_being_recalled on core.batch (mint_lease_until)
where recalled_at is not null and recall_finished_at is null;

create table core.recalled_lock (
  tenant_id  int   not null,
  batch_id   int   not null,
  coupon_id  uuid  not null,
  primary key (tenant_id, batch_id, coupon_id),
  foreign key (tenant_id, batch_id) references core.batch,
  foreign key (tenant_id, coupon_id) references core.coupon (tenant_id, coupon_id)
);
comment on table core.recalled_lock is
  'Coupons that were LOCKED when their batch was recalled: those that the recall has reached, and '
  'those that were voided before. The worker counts and removes each after its lock has ended, and '
  'then the recall is finished.';

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
     or (new.recalled_at is not null
         and (new.status, new.minted_count) is distinct from (old.status, old.minted_count))
     or new.recalled_through < old.recalled_through
     or new.recall_voided_count < old.recall_voided_count
  then
    raise exception 'batch %: it cannot change from % to %',
      old.external_id, old.status, new.status
      using errcode = 'check_violation', constraint = 'batch_transition_is_legal',
            hint = 'A recalled batch is neither minted nor released.';
  end if;
  if new.completed_at is distinct from coalesce(old.completed_at, new.completed_at)
     or new.allocated_at is distinct from coalesce(old.allocated_at, new.allocated_at)
     or new.codes_destroyed_at
        is distinct from coalesce(old.codes_destroyed_at, new.codes_destroyed_at)
     or new.recall_finished_at
        is distinct from coalesce(old.recall_finished_at, new.recall_finished_at)
     or (old.recalled_at is not null
         and (new.suspended_at, new.recalled_at, new.recall_caller_id, new.recall_reason)
             is distinct from
             (old.suspended_at, old.recalled_at, old.recall_caller_id, old.recall_reason))
  then
    raise exception 'batch %: the times of what happened to it are fixed', old.external_id
      using errcode = 'check_violation', constraint = 'batch_times_are_fixed';
  end if;
  return new;
end
$$;
comment on function core.check_batch_change() is
  'Trigger: a batch is fixed at submission, its times are fixed once set, its status only moves '
  'forward, and a recall is for good.';

-- As in core.check_expiry. A coupon past its own valid_to counts as EXPIRED, so it is left alone.
create function core.check_recall() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
begin
  if exists (
    select
    from core.coupon c
    where c.tenant_id = new.tenant_id
      and c.batch_id = new.batch_id
      and c.number > old.recalled_through
      and c.number <= new.recalled_through
      and case c.status
        when 'ISSUED' then c.valid_to > clock_timestamp()
        when 'LOCKED' then not exists (
          select
          from core.recalled_lock r
          where r.tenant_id = c.tenant_id
            and r.batch_id = c.batch_id
            and r.coupon_id = c.coupon_id)
        else false
      end)
  then
    raise exception 'batch %: the recall cannot pass coupons that it has not handled',
      new.external_id
      using errcode = 'check_violation', constraint = 'recall_passes_no_usable_coupon',
            hint = 'Leave recalled_through to the worker.';
  end if;
  return null;
end
$$;
comment on function core.check_recall() is
  'Trigger: of the coupons that a recall has passed, none is unused, and it remembers LOCKED ones.';

create trigger recall_passes_no_usable_coupon
after update of recalled_through on core.batch
for each row execute function core.check_recall();

-- A coupon of a finished recall never becomes usable again. While the recall runs, it may: a cancel
-- that has read the batch before the recall may commit after it. It holds the coupon's row until
-- then, and the recall passes no coupon whose row another session holds.
create or replace function core.check_coupon_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if new.status <> old.status and not (case old.status
    when 'LOCKED' then new.status in ('REDEEMED', 'ISSUED', 'EXPIRED', 'VOIDED')
    when 'REDEEMED' then new.status in ('ISSUED', 'EXPIRED', 'VOIDED') and (
      select t.after_reversal = 'reissued'
             and (new.status <> 'VOIDED' or b.recalled_at is not null)
      from core.batch b
      join core.template t on t.tenant_id = b.tenant_id and t.template_id = b.template_id
      where b.tenant_id = old.tenant_id and b.batch_id = old.batch_id)
    when 'EXPIRED' then new.status = 'ISSUED' and new.valid_to > clock_timestamp()
    else false
  end) then
    raise exception 'coupon %: it cannot change from % to %',
      core.format_id('cpn', old.coupon_id), old.status, new.status
      using errcode = 'check_violation', constraint = 'coupon_transition_is_legal';
  end if;
  if new.status = 'ISSUED' then
    if exists (
      select
      from core.batch b
      where b.tenant_id = old.tenant_id
        and b.batch_id = old.batch_id
        and b.recall_finished_at is not null)
    then
      raise exception 'coupon %: its batch was recalled', core.format_id('cpn', old.coupon_id)
        using errcode = 'check_violation', constraint = 'recalled_coupon_is_not_issued_again';
    end if;
    -- The expiry job may have passed the coupon: psql frees it after its end, or the clock was
    -- ahead. Then it expires alone. A changed valid_to makes an extension by itself.
    if new.valid_to = old.valid_to then
      insert into core.coupon_extension (tenant_id, coupon_id, valid_to)
      select old.tenant_id, old.coupon_id, old.valid_to
      from core.batch b
      where b.tenant_id = old.tenant_id
        and b.batch_id = old.batch_id
        and b.expired_through >= old.number
      on conflict (tenant_id, coupon_id) do nothing;
    end if;
  end if;
  return new;
end
$$;
comment on function core.check_coupon_change() is
  'Trigger: a coupon''s status changes only in legal ways, no coupon misses its expiry, and none '
  'of a finished recall is issued again.';

alter table core.stuck_work drop constraint work_is_known;
alter table core.stuck_work add constraint work_is_known check (
  work in ('events', 'locks', 'expiry', 'mint', 'recall', 'statement', 'webhook'));
comment on table core.voiding is
  'Who voided a coupon, and why. Without a merchant: an administrator, or the recall of its batch.';
