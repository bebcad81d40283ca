-- The position of the first event that joined a feed at p_from or later. Times ascend with the
-- positions, so a binary search finds it. Positions may have a gap after a restore: each step looks
-- at the first event from its position on.
create or replace function rules.find_feed_position(
  p_tenant_id int, p_party_id int, p_from timestamptz)
returns bigint
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  v_low   bigint := (
    select f.position
    from core.feed_event f
    where f.tenant_id = p_tenant_id and f.party_id = p_party_id
    order by f.position
    limit 1);
  v_high  bigint := (
    select f.last_position + 1
    from core.feed f
    where f.tenant_id = p_tenant_id and f.party_id = p_party_id);
  v_mid   bigint;
begin
  while v_low < v_high loop
    v_mid := (v_low + v_high) / 2;
    if p_from > (
      select f.sequenced_at
      from core.feed_event f
      where f.tenant_id = p_tenant_id and f.party_id = p_party_id and f.position >= v_mid
      order by f.position
      limit 1)
    then
      v_low := v_mid + 1;
    else
      v_high := v_mid;
    end if;
  end loop;
  return v_low;
end
$$;
comment on function rules.find_feed_position(int, int, timestamptz) is
  'The position of the first event that joined a feed at a time or later; null: the feed is empty.';
