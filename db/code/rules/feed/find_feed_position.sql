-- The position of the first event that joined a feed at p_from or later, or the position after the
-- last one. Times ascend with the positions, so a binary search finds its page: each step looks at
-- the first page that begins at its position or later.
create or replace function rules.find_feed_position(
  p_tenant_id int, p_party_id int, p_from timestamptz)
returns bigint
language plpgsql stable as $$
declare
  v_low   bigint := (
    select f.first_position
    from core.feed_page f
    where f.tenant_id = p_tenant_id and f.party_id = p_party_id
    order by f.first_position
    limit 1);
  v_end   bigint := (
    select f.last_position + 1
    from core.feed f
    where f.tenant_id = p_tenant_id and f.party_id = p_party_id);
  v_high  bigint := v_end;
  v_mid   bigint;
begin
  while v_low < v_high loop
    v_mid := (v_low + v_high) / 2;
    if p_from > (
      select f.sequenced_at
      from core.feed_page f
      where f.tenant_id = p_tenant_id and f.party_id = p_party_id and f.first_position >= v_mid
      order by f.first_position
      limit 1)
    then
      v_low := v_mid + 1;
    else
      v_high := v_mid;
    end if;
  end loop;
  return coalesce((
    select f.first_position
    from core.feed_page f
    where f.tenant_id = p_tenant_id and f.party_id = p_party_id and f.first_position >= v_low
    order by f.first_position
    limit 1), v_end);
end
$$;
