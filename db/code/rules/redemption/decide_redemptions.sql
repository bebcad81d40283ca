-- Decides the locks and redeems of a group before anything is written: whether each is allowed, and
-- the discount. First locks the coupons' rows, then reads what all calls need in one statement.
--
-- A decision is a refusal or the terms of a grant. A decision with neither hands the call back:
-- another session holds a row that it needs, or an earlier call of this group names the same
-- coupon.
create or replace function rules.decide_redemptions(p_calls core.call[]) returns core.decision[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_held       uuid[] := rules.hold_coupons(p_calls);
  v_now        timestamptz := clock_timestamp();
  v_case       record;
  v_amounts    record;
  v_discount   record;
  v_refusal    core.answer;
  v_terms      core.grant_terms;
  v_decisions  core.decision[];
begin
  for v_case in select c.* from rules.read_redemption_cases(p_calls) c loop
    v_refusal := null;
    v_terms := null;
    <<decide>>
    declare
      v_lock  core.redemption;
    begin
      -- the caller's merchant, the tenant's coupon, the merchant's store and terminal
      if v_case.merchant_id is null then
        v_refusal := rules.refuse_not_found(v_case.call, 'merchant');
      elsif (v_case.coupon).coupon_id is null then
        v_refusal := rules.refuse_not_found(v_case.call, 'coupon');
      elsif not (v_case.coupon).lookup_hash = any (v_held) then
        exit decide;
      elsif (v_case.call).variant = 'B' then
        v_refusal := rules.check_place(v_case.call, v_case.merchant_id);
      end if;
      exit decide when v_refusal.code is not null;

      -- a grant ends an expired lock, so that lock's row is held too
      if (v_case.coupon).status = 'LOCKED' then
        select r.* into v_lock
        from core.redemption r
        where r.coupon_id = (v_case.coupon).coupon_id and r.tenant_id = (v_case.coupon).tenant_id
          and r.status = 'LOCKED';
        exit decide when v_lock.lock_expires_at <= v_now
          and (rules.hold_redemption(v_case.call, v_lock.redemption_id)).is_busy;
      end if;

      -- the amounts, the coupon's state, the discount
      v_amounts := rules.read_amounts(v_case.call, (v_case.template).currency, v_case.decimals);
      v_refusal := v_amounts.refusal;
      exit decide when v_refusal.code is not null;
      v_refusal := rules.check_redeemable(
        v_case.call, v_case.coupon, v_case.batch_status, (v_case.template).currency,
        (v_case.template).is_for_all_merchants or rules.is_in_scope(
          (v_case.call).tenant_id, (v_case.template).template_id, v_case.merchant_id),
        v_case.is_cancelled, v_lock.lock_expires_at, v_now);
      exit decide when v_refusal.code is not null;
      v_discount := rules.compute_discount(v_case.template, v_amounts.order_minor,
        (v_case.call).args -> 'items', v_case.decimals, (v_case.call).amount_unit);
      if v_discount.code is not null then
        v_refusal := rules.refuse_discount(v_case.call, v_discount.code, v_discount.missing);
        exit decide;
      end if;
      v_terms := (
        rules.make_id(), (v_case.coupon).coupon_id, v_case.merchant_id, v_case.distributor_id,
        v_lock.redemption_id, (v_case.template).currency, v_case.decimals,
        v_discount.discount_minor, v_amounts.order_minor, v_now,
        v_now + make_interval(secs => (v_case.template).lock_ttl_seconds));
    end;
    -- a later call of this group for the same coupon is handed back: this one is not written yet
    v_held := array_remove(v_held, (v_case.coupon).lookup_hash);
    v_decisions := v_decisions || (v_case.call, v_refusal, v_terms)::core.decision;
  end loop;
  return v_decisions;
end
$$;
comment on function rules.decide_redemptions(core.call[]) is
  'Decides the locks and redeems of a group: refusals and the terms of grants.';
