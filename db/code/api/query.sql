-- POST /v1/coupons/query shows the current state of a coupon and, with an order, what a lock would
-- answer now. It is a read: it locks no row and needs no request_id.
create or replace function api.query(p_call core.call) returns core.answer
language plpgsql stable as $$
declare
  v_merchant_id  int := rules.find_merchant(p_call, p_call.args ->> 'merchant');
  v_now          timestamptz := clock_timestamp();
  v_coupon       core.coupon;
  v_batch        core.batch;
  v_last         core.redemption;
  v_status       text;
  v_misplaced    core.answer;
  v_quoted       record;
  v_quote        text;
begin
  if v_merchant_id is null then
    return rules.refuse_not_found(p_call, 'merchant');
  end if;
  select c.* into v_coupon
  from core.coupon c
  where c.tenant_id = p_call.tenant_id and c.lookup_hash = (p_call.args ->> 'coupon')::uuid;
  if not found then
    return rules.refuse_not_found(p_call, 'coupon');
  end if;
  v_batch := rules.find_batch_of_coupon(p_call.tenant_id, v_coupon.coupon_id);
  if p_call.variant = 'B' then
    v_misplaced := rules.check_place(p_call, v_merchant_id);
    if v_misplaced.http_status is not null then
      return v_misplaced;
    end if;
  end if;

  -- the live redemption; if there is none, the last reversed one
  select r.* into v_last
  from core.redemption r
  where r.tenant_id = p_call.tenant_id
    and r.coupon_id = v_coupon.coupon_id
    and (r.status in ('REDEEMED', 'REVERSED')
         or (r.status = 'LOCKED' and r.lock_expires_at > v_now))
  order by r.ended_at is null desc, r.started_at desc
  limit 1;
  v_status := rules.derive_status(
    v_coupon.status, v_coupon.valid_to,
    case v_last.status when 'LOCKED' then v_last.lock_expires_at end,
    v_batch.status = 'ALLOCATED', p_call.variant, v_now);
  if p_call.args ?| '{order_amount,items}' then
    v_quoted := rules.compute_quote(
      p_call, v_merchant_id, v_coupon, v_batch,
      v_coupon.status = 'LOCKED' and v_status <> 'LOCKED', v_now);
    if (v_quoted.refusal).http_status is not null then
      return v_quoted.refusal;
    end if;
    v_quote := v_quoted.quote;
  end if;
  if not rules.is_in_scope(p_call.tenant_id, v_batch.template_id, v_merchant_id) then
    return rules.refuse(p_call, 'MERCHANT_NOT_IN_SCOPE');
  end if;
  return rules.succeed(format('{"ok":true,"coupon":%s%s}',
    rules.render_coupon(p_call, v_coupon, v_batch, v_last, v_status),
    ',"quote":' || v_quote));
end
$$;
