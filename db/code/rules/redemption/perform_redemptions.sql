-- Performs the locks (p_status LOCKED) or the redeems (REDEEMED) of a group: holds the coupons,
-- decides about each, records and answers. Only a call that may wait waits, for its coupon, and it
-- is alone. Any other that would have to wait is handed back: another session holds its coupon, or
-- an earlier call of the group names the same one.
create or replace function rules.perform_redemptions(
  p_calls core.call[], p_ordinals int[], p_status text)
returns core.answer[]
language plpgsql volatile as $$
declare
  v_case     record;
  v_coupon   core.coupon;
  v_now      timestamptz;
  v_is       record;
  v_held     uuid[] := '{}';
  v_grants   core.grant[] := '{}';
  v_refused  core.answer[] := '{}';
begin
  if not rules.share_redemptions(p_calls[p_ordinals[1]]) then
    return array(select rules.hand_back(o) from unnest(p_ordinals) o);
  end if;
  -- Whole rows, because each column of each join makes a statement slower to start. Only the coupon
  -- is as it is now; the others are as they were when the statement began.
  for v_case in
    select c as call, m.merchant_id, k as coupon, b as batch, t as template
    from unnest(p_calls) c
    join core.merchant m
      on m.tenant_id = c.tenant_id
         and m.external_id = c.args ->> 'merchant'
         and rules.may_act_for(c, m.merchant_id, m.party_id)
    join core.coupon k
      on k.tenant_id = c.tenant_id and k.lookup_hash = (c.args ->> 'coupon')::uuid
    join core.batch b on b.tenant_id = k.tenant_id and b.batch_id = k.batch_id
    join core.template t on t.tenant_id = b.tenant_id and t.template_id = b.template_id
    where c.ordinal = any (p_ordinals)
    for no key update of k skip locked
  loop
    v_coupon := v_case.coupon;
    continue when v_coupon.coupon_id = any (v_held);
    if v_coupon.status = 'LOCKED' then
      v_coupon := rules.end_expired_lock(v_case.call, v_coupon);
      continue when v_coupon.coupon_id is null;  -- rules.refuse_others hands it back
    end if;
    v_held := v_held || v_coupon.coupon_id;
    v_now := clock_timestamp();
    v_is := rules.decide_redemption(
      v_case.call, v_case.merchant_id, v_coupon, v_case.batch, v_case.template, v_now);
    if v_is.discount_minor is null then
      v_refused := v_refused || v_is.refusal;
    else
      v_grants := v_grants || (
        v_case.call, rules.make_redemption_id(v_now, (v_case.call).random), v_case.merchant_id,
        v_coupon.coupon_id, (v_case.batch).distributor_id, (v_case.template).currency,
        v_is.discount_minor, v_is.order_minor, rules.format_amount(
          v_is.discount_minor, (v_case.template).decimals, (v_case.call).amount_unit),
        v_now, case when p_status = 'LOCKED'
          then v_now + make_interval(secs => (v_case.template).lock_ttl_seconds)
        end)::core.grant;
    end if;
  end loop;
  -- after the loop, once for all: a cancel holds its coupon, so no more arrive
  if rules.has_cancellation((p_calls[1]).tenant_id, v_held) then
    v_refused := v_refused || rules.refuse_cancelled(v_grants);
    v_grants := array(
      select g from unnest(v_grants) g where (g.call).ordinal not in (
        select r.ordinal from unnest(v_refused) r));
  end if;
  if cardinality(v_grants) < cardinality(p_ordinals) then
    v_refused := rules.refuse_others(p_calls, p_ordinals, v_grants, v_refused);
  end if;
  return v_refused || rules.write_grants(v_grants, p_status);
end
$$;
