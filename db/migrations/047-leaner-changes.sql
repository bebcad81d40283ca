-- What a confirm, cancel or reversal is checked against, with fewer lookups and comparisons. What
-- can be committed stays the same.

-- Each of them sets a time of its redemption. So the trigger that compares the status compares the
-- times too, and the terms are compared only if a statement names one of them, as no function does.

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
  then
    raise exception 'redemption %: its granted terms are fixed',
      core.format_id('red', old.redemption_id)
      using errcode = 'check_violation', constraint = 'redemption_terms_are_fixed';
  end if;
  return new;
end
$$;
comment on function core.check_redemption_terms() is
  'Trigger: the terms of a redemption are fixed.';

create or replace trigger redemption_terms_are_fixed
before update of tenant_id, redemption_id, coupon_id, merchant_id, caller_id, lock_request_id,
  currency, discount_minor, order_minor, store, terminal, order_id, started_at
on core.redemption
for each row execute function core.check_redemption_terms();

create or replace function core.check_redemption_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if new.status <> old.status and not (case old.status
    when 'LOCKED' then new.status in ('REDEEMED', 'CANCELLED', 'LAPSED')
    when 'REDEEMED' then new.status = 'REVERSED'
    else false
  end) then
    raise exception 'redemption %: it cannot change from % to %',
      core.format_id('red', old.redemption_id), old.status, new.status
      using errcode = 'check_violation', constraint = 'redemption_transition_is_legal';
  end if;
  if new.redeemed_at is distinct from old.redeemed_at and old.redeemed_at is not null
     or new.ended_at is distinct from old.ended_at and old.ended_at is not null
     or new.lock_expires_at is distinct from old.lock_expires_at and old.status <> 'LOCKED'
  then
    raise exception 'redemption %: its granted terms are fixed',
      core.format_id('red', old.redemption_id)
      using errcode = 'check_violation', constraint = 'redemption_terms_are_fixed';
  end if;
  return new;
end
$$;
comment on function core.check_redemption_change() is
  'Trigger: a redemption''s status changes only in legal ways; redeemed_at and ended_at are fixed '
  'once set, and the end of a lock once it is no longer live.';

create or replace trigger redemption_transition_is_legal
before update of status, lock_expires_at, redeemed_at, ended_at on core.redemption
for each row execute function core.check_redemption_change();

-- As before, but what only an ended redemption has is read only for it.
create or replace function core.check_redemption_state() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
declare
  v_is   record;
  v_has  record;
begin
  select r.status, r.discount_minor, r.coupon_id, r.ended_at, c.status as coupon_status,
         entry.amount_minor as entered
    into v_is
  from core.redemption r
  join core.coupon c on c.tenant_id = r.tenant_id and c.coupon_id = r.coupon_id
  left join core.ledger_entry entry
    on entry.tenant_id = r.tenant_id and entry.entry_id = r.redemption_id
       and entry.currency = r.currency
  where r.redemption_id = new.redemption_id and r.tenant_id = new.tenant_id;
  -- the usual case: the redemption is still live
  if v_is.status = v_is.coupon_status and (
    (v_is.status = 'REDEEMED' and v_is.entered = v_is.discount_minor)
    or (v_is.status = 'LOCKED' and v_is.entered is null))
  then
    return null;
  end if;

  select live.status as live, v.reversal_id, v.reversed_at, back.amount_minor as returned
    into v_has
  from (values (new.tenant_id)) t (tenant_id)
  left join core.redemption live
    on live.coupon_id = v_is.coupon_id and live.tenant_id = t.tenant_id and live.ended_at is null
  left join core.reversal v
    on v.tenant_id = t.tenant_id and v.redemption_id = new.redemption_id
  left join core.ledger_entry back
    on back.tenant_id = t.tenant_id and back.entry_id = v.reversal_id
       and back.currency = new.currency;
  if not (case
       when v_has.live is not null then v_is.coupon_status = v_has.live
       when v_is.coupon_status in ('ISSUED', 'EXPIRED') then true
       else core.may_be_without_live_redemption(new.tenant_id, v_is.coupon_id, v_is.coupon_status)
     end)
  then
    raise exception 'coupon % is %, but its live redemption is %',
      core.format_id('cpn', v_is.coupon_id), v_is.coupon_status, coalesce(v_has.live, 'missing')
      using errcode = 'check_violation', constraint = 'coupon_agrees_with_its_redemptions';
  end if;
  if (case v_is.status
       when 'REDEEMED' then v_is.entered = v_is.discount_minor and v_has.reversal_id is null
       when 'REVERSED'
         then v_is.entered = v_is.discount_minor and v_has.returned = -v_is.discount_minor
              and v_has.reversed_at = v_is.ended_at
       else v_is.entered is null and v_has.reversal_id is null
     end) is not true
  then
    raise exception 'redemption % is % with a discount of %, but its ledger entries are % and %',
      core.format_id('red', new.redemption_id), v_is.status, v_is.discount_minor,
      coalesce(v_is.entered, 0), coalesce(v_has.returned, 0)
      using errcode = 'check_violation', constraint = 'redemption_agrees_with_the_ledger';
  end if;
  return null;
end
$$;

-- A redemption that becomes or begins as REVERSED is checked then, with its reversal, and reversals
-- are not deleted. So one that was REVERSED before has its reversal, and cannot get another. All
-- that is left is that the redemption of a new reversal is REVERSED.
create function core.check_reversal() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_status  text;
begin
  select r.status into v_status
  from core.redemption r
  where r.redemption_id = new.redemption_id and r.tenant_id = new.tenant_id;
  if v_status is distinct from 'REVERSED' then
    raise exception 'redemption % is %, but it has a reversal',
      core.format_id('red', new.redemption_id), v_status
      using errcode = 'check_violation', constraint = 'redemption_agrees_with_the_ledger';
  end if;
  return null;
end
$$;
comment on function core.check_reversal() is
  'Trigger: a redemption that has a reversal is REVERSED.';

drop trigger reversal_agrees_with_the_ledger on core.reversal;
create constraint trigger redemption_of_reversal_is_reversed
after insert on core.reversal
deferrable initially deferred
for each row execute function core.check_reversal();
