-- The next coupons of a batch to clear, at most p_limit, in the order of their numbers. If none is
-- left by those: any others, as after a number that was missing.
create or replace function rules.find_uncleared(p_batch core.batch, p_limit int) returns uuid[]
language plpgsql stable as $$
declare
  v_cleared  int := rules.count_cleared(p_batch);
  v_coupons  uuid[];
begin
  v_coupons := array(
    select c.coupon_id
    from core.coupon c
    where c.batch_id = p_batch.batch_id
      and c.tenant_id = p_batch.tenant_id
      and c.number > v_cleared
    order by c.number
    limit p_limit);
  if v_coupons = '{}' then
    v_coupons := array(
      select c.coupon_id
      from core.coupon c
      where c.batch_id = p_batch.batch_id and c.tenant_id = p_batch.tenant_id
      limit p_limit);
  end if;
  return v_coupons;
end
$$;
