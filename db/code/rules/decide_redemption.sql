-- All that lock and redeem decide before they write: who may, in which state, for how much. Gives a
-- refusal or the terms. Locks the coupon's row first.
create or replace function rules.decide_redemption(
  p_call core.call, out refusal core.answer, out terms core.grant_terms)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_merchant_id  int := rules.find_merchant(p_call, p_call.args ->> 'merchant');
  v_held         record;
  v_coupon       core.coupon;
  v_batch        core.batch;
  v_template     core.template;
  v_lock         core.redemption;
  v_amounts      record;
  v_discount     record;
begin
  -- who and what: the caller's merchant, the tenant's coupon, the merchant's store and terminal
  if v_merchant_id is null then
    refusal := rules.refuse_unknown(p_call, 'merchant');
    return;
  end if;
  v_held := rules.hold_coupon(p_call, (p_call.args ->> 'coupon')::uuid);
  if v_held.is_busy then
    refusal := (0, null);
    return;
  end if;
  if v_held.coupon_id is null then
    refusal := rules.refuse_unknown(p_call, 'coupon');
    return;
  end if;
  refusal := rules.check_place(p_call, v_merchant_id);
  if refusal.http_status is not null then
    return;
  end if;

  -- the coupon as it is now that its row is ours; the clock comes after
  select c.* into v_coupon
  from core.coupon c where c.tenant_id = p_call.tenant_id and c.coupon_id = v_held.coupon_id;
  select b.* into v_batch
  from core.batch b where b.tenant_id = p_call.tenant_id and b.batch_id = v_coupon.batch_id;
  select t.* into v_template
  from core.template t where t.tenant_id = p_call.tenant_id and t.template_id = v_batch.template_id;
  if v_coupon.status = 'LOCKED' then
    select r.* into v_lock
    from core.redemption r
    where r.tenant_id = p_call.tenant_id and r.coupon_id = v_coupon.coupon_id and r.status = 'LOCKED';
  end if;

  -- the amounts, then everything that may speak against it
  v_amounts := rules.read_amounts(p_call, v_template);
  terms := (
    v_coupon.coupon_id, v_merchant_id, v_batch.distributor_id, v_lock.redemption_id,
    v_template.currency, v_amounts.decimals, null, v_amounts.order_minor, clock_timestamp(), null);
  terms.lock_expires_at := terms.granted_at + make_interval(secs => v_template.lock_ttl_seconds);
  refusal := v_amounts.refusal;
  if refusal.http_status is null then
    refusal := rules.check_redeemable(
      p_call, v_coupon, v_batch, v_merchant_id, v_lock.lock_expires_at, terms.granted_at);
  end if;
  if refusal.http_status is null then
    v_discount := rules.compute_discount(
      v_template, terms.order_minor, p_call.args -> 'items', terms.decimals, p_call.amount_unit);
    terms.discount_minor := v_discount.discount_minor;
    refusal := case
      when p_call.args ->> 'currency' <> v_template.currency then rules.refuse(p_call, 'CURRENCY_MISMATCH')
      when v_discount.code = 'DISCOUNT_NOT_COMPUTABLE'
        then rules.refuse(p_call, v_discount.code, format('{"missing":"%s"}', v_discount.missing)::json)
      when v_discount.code is not null then rules.refuse(p_call, v_discount.code)
    end;
  end if;
end
$$;
comment on function rules.decide_redemption(core.call) is 'What lock and redeem decide: a refusal, or the terms of the grant.';
