-- Messages about coupons and redemptions name them by their external IDs, see 026-external-ids.

create or replace function core.check_coupons() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  v_wrong  record;
  v_live   text;
begin
  select n.tenant_id, n.coupon_id, n.status into v_wrong
  from new_coupon n
  where not coalesce(
    n.status = (
      select r.status
      from core.redemption r
      where r.coupon_id = n.coupon_id and r.tenant_id = n.tenant_id and r.ended_at is null),
    n.status in ('ISSUED', 'EXPIRED')
    or core.may_be_without_live_redemption(n.tenant_id, n.coupon_id, n.status));
  if not found then
    return null;
  end if;
  select r.status into v_live
  from core.redemption r
  where r.coupon_id = v_wrong.coupon_id and r.tenant_id = v_wrong.tenant_id and r.ended_at is null;
  raise exception 'coupon % is %, but its live redemption is %',
    core.format_id('cpn', v_wrong.coupon_id), v_wrong.status, coalesce(v_live, 'missing')
    using errcode = 'check_violation', constraint = 'coupon_agrees_with_its_redemptions',
          hint = 'Write the redemption or the voiding first.';
end
$$;

create or replace function core.check_redemption_state() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
declare
  v_is  record;
begin
  -- The usual case: the redemption is still live.
  if tg_table_name = 'redemption' then
    select r.status, r.discount_minor, c.status as coupon_status, entry.amount_minor as entered
      into v_is
    from core.redemption r
    join core.coupon c on c.tenant_id = r.tenant_id and c.coupon_id = r.coupon_id
    left join core.ledger_entry entry
      on entry.tenant_id = r.tenant_id and entry.entry_id = r.redemption_id
         and entry.currency = r.currency
    where r.redemption_id = new.redemption_id and r.tenant_id = new.tenant_id;
    if v_is.status = v_is.coupon_status and (
      (v_is.status = 'REDEEMED' and v_is.entered = v_is.discount_minor)
      or (v_is.status = 'LOCKED' and v_is.entered is null))
    then
      return null;
    end if;
  end if;

  select r.status, r.discount_minor, r.coupon_id, c.status as coupon_status, live.status as live,
         entry.amount_minor as entered, v.reversal_id, v.reversed_at = r.ended_at as ended_then,
         back.amount_minor as returned
    into v_is
  from core.redemption r
  join core.coupon c on c.tenant_id = r.tenant_id and c.coupon_id = r.coupon_id
  left join core.redemption live
    on live.coupon_id = r.coupon_id and live.tenant_id = r.tenant_id
       and live.status in ('LOCKED', 'REDEEMED')
  left join core.ledger_entry entry
    on entry.tenant_id = r.tenant_id and entry.entry_id = r.redemption_id
       and entry.currency = r.currency
  left join core.reversal v on v.tenant_id = r.tenant_id and v.redemption_id = r.redemption_id
  left join core.ledger_entry back
    on back.tenant_id = v.tenant_id and back.entry_id = v.reversal_id and back.currency = r.currency
  where r.redemption_id = new.redemption_id and r.tenant_id = new.tenant_id;

  if not (case
       when v_is.live is not null then v_is.coupon_status = v_is.live
       when v_is.coupon_status in ('ISSUED', 'EXPIRED') then true
       else core.may_be_without_live_redemption(new.tenant_id, v_is.coupon_id, v_is.coupon_status)
     end)
  then
    raise exception 'coupon % is %, but its live redemption is %',
      core.format_id('cpn', v_is.coupon_id), v_is.coupon_status, coalesce(v_is.live, 'missing')
      using errcode = 'check_violation', constraint = 'coupon_agrees_with_its_redemptions';
  end if;
  if (case v_is.status
       when 'REDEEMED' then v_is.entered = v_is.discount_minor and v_is.reversal_id is null
       when 'REVERSED'
         then v_is.entered = v_is.discount_minor and v_is.returned = -v_is.discount_minor
              and v_is.ended_then
       else v_is.entered is null and v_is.reversal_id is null
     end) is not true
  then
    raise exception 'redemption % is % with a discount of %, but its ledger entries are % and %',
      core.format_id('red', new.redemption_id), v_is.status, v_is.discount_minor,
      coalesce(v_is.entered, 0), coalesce(v_is.returned, 0)
      using errcode = 'check_violation', constraint = 'redemption_agrees_with_the_ledger';
  end if;
  return null;
end
$$;

create or replace function core.check_redemptions() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  c_hint     constant text :=
    'Write the coupon''s status and the ledger entry in the same statement.';
  v_is_held  boolean := false;
  v_wrong    record;
  v_coupon   text;
  v_entered  bigint;
begin
  -- In the usual case, this transaction has written the coupon's row and so holds it. Otherwise
  -- lock the row now, before another session changes it, and check again.
  loop
    select n.tenant_id, n.redemption_id, n.coupon_id, n.merchant_id, n.status into v_wrong
    from new_redemption n
    where n.merchant_id is distinct from (
        select m.merchant_id
        from core.merchant m
        where m.tenant_id = n.tenant_id and m.merchant_id = n.merchant_id)
       or n.coupon_id is distinct from (
        select c.coupon_id
        from core.coupon c
        where c.tenant_id = n.tenant_id
          and c.coupon_id = n.coupon_id
          and (v_is_held or c.xmin = pg_current_xact_id()::xid)
          and (n.ended_at is not null or c.status = n.status))
       or (n.ended_at is null and (
        select e.amount_minor
        from core.ledger_entry e
        where e.tenant_id = n.tenant_id and e.entry_id = n.redemption_id)
        is distinct from case n.status when 'REDEEMED' then n.discount_minor end);
    if not found then
      return null;
    end if;
    exit when v_is_held;
    perform
    from new_redemption n
    join core.coupon c on c.tenant_id = n.tenant_id and c.coupon_id = n.coupon_id
    for no key update of c;
    v_is_held := true;
  end loop;

  select c.status into v_coupon
  from core.coupon c
  where c.tenant_id = v_wrong.tenant_id and c.coupon_id = v_wrong.coupon_id;
  if not found or not exists (
    select
    from core.merchant m
    where m.tenant_id = v_wrong.tenant_id and m.merchant_id = v_wrong.merchant_id)
  then
    raise exception 'the coupon or the merchant of redemption % does not exist',
      core.format_id('red', v_wrong.redemption_id)
      using errcode = 'foreign_key_violation',
            constraint = 'redemption_is_of_a_coupon_at_a_merchant';
  elsif v_coupon <> v_wrong.status then
    raise exception 'redemption % is %, but its coupon is %',
      core.format_id('red', v_wrong.redemption_id), v_wrong.status, v_coupon
      using errcode = 'check_violation', constraint = 'coupon_agrees_with_its_redemptions',
            hint = c_hint;
  end if;
  select e.amount_minor into v_entered
  from core.ledger_entry e
  where e.tenant_id = v_wrong.tenant_id and e.entry_id = v_wrong.redemption_id;
  raise exception 'redemption % is %, but its ledger entry is %',
    core.format_id('red', v_wrong.redemption_id), v_wrong.status, coalesce(v_entered, 0)
    using errcode = 'check_violation', constraint = 'redemption_agrees_with_the_ledger',
          hint = c_hint;
end
$$;
