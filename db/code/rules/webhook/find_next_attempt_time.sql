-- When the next delivery of a subscriber is or was due; null if none waits. Many may wait for a
-- later attempt, so this reads only the earliest of those that go first and of those behind. The
-- order makes the planner use the index, even if it knows nothing about the table.
create or replace function rules.find_next_attempt_time(p_tenant_id int, p_party_id int)
returns timestamptz
language plpgsql stable as $$
begin
  return (
    select min(f.next_attempt_at)
    from (values (false), (true)) k (is_behind)
    cross join lateral (
      select d.next_attempt_at
      from core.delivery d
      where d.tenant_id = p_tenant_id
        and d.party_id = p_party_id
        and d.is_behind = k.is_behind
        and d.parked_at is null
      order by d.next_attempt_at
      limit 1) f);
end
$$;
