-- The answer to a lock or redeem whose merchant or coupon was not found: there is none that the
-- caller may use, or another session or call holds the coupon.
create or replace function rules.refuse_absent(p_call core.call) returns core.answer
language plpgsql stable as $$
begin
  if rules.find_merchant(p_call, p_call.args ->> 'merchant') is null then
    return rules.refuse_not_found(p_call, 'merchant');
  elsif not exists (
    select
    from core.coupon k
    where k.tenant_id = p_call.tenant_id and k.lookup_hash = (p_call.args ->> 'coupon')::uuid)
  then
    return rules.refuse_not_found(p_call, 'coupon');
  end if;
  return rules.hand_back();
end
$$;
