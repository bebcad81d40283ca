-- POST /v1/coupons/confirm completes the redemptions of the callers' own locks, all of a group
-- together. It does not check again whether the template covers the lock's merchant: a lock can be
-- confirmed until it expires.
create or replace function api.confirm(p_calls core.call[], p_ordinals int[])
returns core.answer[]
language plpgsql volatile as $$
declare
  v_case     record;
  v_now      timestamptz;
  v_grants   core.grant[] := '{}';
  v_ordinal  int;
  v_is       record;
  v_answer   core.answer;
  v_answers  core.answer[];
begin
  -- The usual case: a live lock, named by its request_id. What another session holds, or has just
  -- changed, drops out here (though its coupon may stay held), and is read again below.
  for v_case in
    select c as call, b.distributor_id, r as lock
    from unnest(p_calls) c
    join core.merchant m
      on m.tenant_id = c.tenant_id
         and m.external_id = c.args ->> 'merchant'
         and rules.may_act_for(c, m.merchant_id, m.party_id)
    join core.coupon k
      on k.tenant_id = c.tenant_id and k.lookup_hash = (c.args ->> 'coupon')::uuid
    join core.batch b on b.tenant_id = k.tenant_id and b.batch_id = k.batch_id
    join core.redemption r
      on r.tenant_id = k.tenant_id
         and r.coupon_id = k.coupon_id
         and r.ended_at is null
         and r.status = 'LOCKED'
         and r.merchant_id = m.merchant_id
         and r.caller_id = c.caller_id
         and r.lock_request_id = c.args ->> 'lock_request_id'
    where c.ordinal = any (p_ordinals)
    for no key update of k, r skip locked
  loop
    v_now := clock_timestamp();
    if (v_case.lock).lock_expires_at > v_now
      and (v_case.lock).coupon_id <> all (array(select g.coupon_id from unnest(v_grants) g))
    then
      v_grants := v_grants
        || rules.make_confirm(v_case.call, v_case.lock, v_case.distributor_id, v_now);
    end if;
  end loop;
  if cardinality(v_grants) < cardinality(p_ordinals) then
    foreach v_ordinal in array p_ordinals loop
      continue when v_ordinal = any (array(select (g.call).ordinal from unnest(v_grants) g));
      v_is := rules.decide_confirm(p_calls[v_ordinal], v_grants);
      if (v_is.granted).redemption_id is not null then
        v_grants := v_grants || v_is.granted;
      else
        v_answer := v_is.answer;
        v_answer.ordinal := v_ordinal;
        v_answers := v_answers || v_answer;
      end if;
    end loop;
  end if;
  if cardinality(v_grants) > 0 then
    v_answers := v_answers || rules.write_confirms(v_grants);
  end if;
  return v_answers;
end
$$;
