-- Decides the locks and redeems of a group before anything is written: who may, in which state, for how
-- much. First locks the coupons' rows, then reads what all calls need in one statement.
--
-- A decision is a refusal or the terms of a grant. With neither, the call is handed back: another
-- session holds a row that it needs, or an earlier call of this group takes the same coupon and has
-- not written yet.
create or replace function rules.decide_redemptions(p_calls core.call[]) returns core.decision[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_held       uuid[] := rules.hold_coupons(p_calls);
  v_now        timestamptz := clock_timestamp();
  v_case       record;
  v_is_held    boolean;
  v_lock       core.redemption;
  v_amounts    record;
  v_discount   record;
  v_refusal    core.answer;
  v_terms      core.grant_terms;
  v_decisions  core.decision[];
begin
  for v_case in
    select c as call, m.merchant_id, k as coupon, b.status as batch_status, b.distributor_id, t as template,
           y.decimals, x.lock_request_id is not null as is_cancelled
    from unnest(p_calls) c
    left join core.merchant m
      on m.tenant_id = c.tenant_id
         and m.external_id = c.args ->> 'merchant'
         and rules.may_act_for(c, m.merchant_id, m.party_id)
    left join core.coupon k on k.tenant_id = c.tenant_id and k.lookup_hash = (c.args ->> 'coupon')::uuid
    left join core.batch b on b.tenant_id = k.tenant_id and b.batch_id = k.batch_id
    left join core.template t on t.tenant_id = b.tenant_id and t.template_id = b.template_id
    left join core.currency y on y.currency = t.currency
    left join core.lock_cancellation x
      on x.tenant_id = k.tenant_id
         and x.coupon_id = k.coupon_id
         and x.caller_id = c.caller_id
         and x.lock_request_id = c.request_id
  loop
    v_lock := null;
    v_refusal := null;
    v_terms := null;
    v_is_held := (v_case.coupon).lookup_hash = any (v_held);
    v_held := array_remove(v_held, (v_case.coupon).lookup_hash);
    <<decide>>
    begin
      -- the caller's merchant, the tenant's coupon, the merchant's store and terminal
      if v_case.merchant_id is null then
        v_refusal := rules.refuse_not_found(v_case.call, 'merchant');
      elsif (v_case.coupon).coupon_id is null then
        v_refusal := rules.refuse_not_found(v_case.call, 'coupon');
      elsif not v_is_held then
        exit decide;
      elsif (v_case.call).variant = 'B' then
        v_refusal := rules.check_place(v_case.call, v_case.merchant_id);
      end if;
      exit decide when v_refusal.code is not null;

      -- an expired lock is about to end, so its row is locked too
      if (v_case.coupon).status = 'LOCKED' then
        select r.* into v_lock
        from core.redemption r
        where r.coupon_id = (v_case.coupon).coupon_id
          and r.tenant_id = (v_case.coupon).tenant_id
          and r.status = 'LOCKED';
        exit decide when v_lock.lock_expires_at <= v_now
          and (rules.hold_redemption(v_case.call, v_lock.redemption_id)).is_busy;
      end if;

      v_amounts := rules.read_amounts(v_case.call, (v_case.template).currency, v_case.decimals);
      v_refusal := v_amounts.refusal;
      exit decide when v_refusal.code is not null;
      v_refusal := rules.check_redeemable(
        v_case.call, v_case.coupon, v_case.batch_status,
        (v_case.template).is_for_all_merchants or rules.is_in_scope(
          (v_case.call).tenant_id, (v_case.template).template_id, v_case.merchant_id),
        v_case.is_cancelled, v_lock.lock_expires_at, v_now);
      exit decide when v_refusal.code is not null;
      v_discount := rules.compute_discount(
        v_case.template, v_amounts.order_minor, (v_case.call).args -> 'items', v_case.decimals,
        (v_case.call).amount_unit);
      if (v_case.call).args ->> 'currency' <> (v_case.template).currency then
        v_refusal := rules.refuse(v_case.call, 'CURRENCY_MISMATCH');
      elsif v_discount.code is not null then
        v_refusal := rules.refuse(
          v_case.call, v_discount.code,
          case when v_discount.missing is not null then format('{"missing":"%s"}', v_discount.missing)::json end);
      else
        v_terms := (
          rules.make_id(), (v_case.coupon).coupon_id, v_case.merchant_id, v_case.distributor_id, v_lock.redemption_id,
          (v_case.template).currency, v_case.decimals, v_discount.discount_minor, v_amounts.order_minor, v_now,
          v_now + make_interval(secs => (v_case.template).lock_ttl_seconds));
      end if;
    end;
    v_decisions := v_decisions || (v_case.call, v_refusal, v_terms)::core.decision;
  end loop;
  return v_decisions;
end
$$;
comment on function rules.decide_redemptions(core.call[]) is
  'Decides the locks and redeems of a group: refusals and the terms of grants.';
