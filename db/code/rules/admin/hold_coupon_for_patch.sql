-- Locks a coupon for a patch, by the IDs that a DBA has.
create or replace function rules.hold_coupon_for_patch(p_tenant text, p_coupon text)
returns core.coupon
language plpgsql volatile as $$
declare
  v_coupon  core.coupon;
begin
  select c.* into v_coupon
  from core.tenant t
  join core.coupon c on c.tenant_id = t.tenant_id
  where t.external_id = p_tenant and c.coupon_id = rules.parse_id('cpn', p_coupon)
  for no key update of c;
  if not found then
    raise exception 'tenant % has no coupon %', p_tenant, p_coupon using errcode = 'CP404';
  end if;
  return v_coupon;
end
$$;
