-- Where in the list of a merchant changes that were recorded at p_at or later begin: the position
-- of the first page that reaches this time, or the position after the last one. The times ascend
-- with the pages, so a binary search finds it: each step looks at one page.
create or replace function rules.find_change_position(
  p_tenant_id int, p_merchant_id int, p_at timestamptz)
returns bigint
language plpgsql stable as $$
declare
  v_low   bigint := 1;
  v_end   bigint := coalesce((
    select p.first_position + cardinality(p.event_seqs)
    from core.merchant_page p
    where p.tenant_id = p_tenant_id and p.merchant_id = p_merchant_id
    order by p.first_position desc
    limit 1), 1);
  v_high  bigint := v_end;
  v_mid   bigint;
begin
  while v_low < v_high loop
    v_mid := (v_low + v_high) / 2;
    -- the last page that begins at v_mid or earlier
    if p_at > coalesce((
      select p.recorded_through
      from core.merchant_page p
      where p.tenant_id = p_tenant_id
        and p.merchant_id = p_merchant_id
        and p.first_position <= v_mid
      order by p.first_position desc
      limit 1), '-infinity')
    then
      v_low := v_mid + 1;
    else
      v_high := v_mid;
    end if;
  end loop;
  return v_low;
end
$$;
