-- The batch of a coupon.
create or replace function rules.find_batch_of_coupon(p_tenant_id int, p_coupon_id uuid)
returns core.batch
language plpgsql stable as $$
declare
  v_found  core.batch;
begin
  select b.* into v_found
  from core.coupon c
  join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
  where c.tenant_id = p_tenant_id and c.coupon_id = p_coupon_id;
  return v_found;
end
$$;
