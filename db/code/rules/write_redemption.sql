-- Writes what was granted: the redemption, as LOCKED or at once REDEEMED, and the coupon's state.
create or replace function rules.write_redemption(
  p_call core.call, p_terms core.grant_terms, p_status text)
returns uuid
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_redemption_id  uuid := rules.new_id();
begin
  if p_terms.lapsed_id is not null then
    perform rules.lapse_lock(p_call.tenant_id, p_terms.lapsed_id, p_terms.granted_at);
  end if;
  insert into core.redemption
    (tenant_id, redemption_id, coupon_id, merchant_id, caller_id, lock_request_id, status, currency,
     discount_minor, order_minor, store, terminal, order_id, started_at, lock_expires_at, redeemed_at)
  values
    (p_call.tenant_id, v_redemption_id, p_terms.coupon_id, p_terms.merchant_id, p_call.caller_id,
     p_call.request_id, p_status, p_terms.currency, p_terms.discount_minor, p_terms.order_minor,
     p_call.args ->> 'store', p_call.args ->> 'terminal', p_call.args ->> 'order_id', p_terms.granted_at,
     case p_status when 'LOCKED' then p_terms.lock_expires_at end,
     case p_status when 'REDEEMED' then p_terms.granted_at end);
  update core.coupon c
  set status = p_status, status_at = p_terms.granted_at
  where c.tenant_id = p_call.tenant_id and c.coupon_id = p_terms.coupon_id;
  return v_redemption_id;
end
$$;
comment on function rules.write_redemption(core.call, core.grant_terms, text) is 'Writes a granted lock or redemption.';
