-- How many coupons of a batch are cleared: those from number 1 on. Bisects, because a scan from the
-- front of the index would pass all the entries of deleted coupons that are not yet vacuumed.
create or replace function rules.count_cleared(p_batch core.batch) returns int
language plpgsql stable as $$
declare
  v_cleared  int := 0;
  v_left     int := p_batch.minted_count + 1;
  v_number   int;
begin
  while v_left - v_cleared > 1 loop
    v_number := v_cleared + (v_left - v_cleared) / 2;
    if exists (
      select
      from core.coupon c
      where c.batch_id = p_batch.batch_id
        and c.tenant_id = p_batch.tenant_id
        and c.number = v_number)
    then
      v_left := v_number;
    else
      v_cleared := v_number;
    end if;
  end loop;
  return v_cleared;
end
$$;
