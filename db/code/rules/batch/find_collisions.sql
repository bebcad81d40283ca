-- Returns the numbers of a chunk whose code another coupon of the tenant, or an earlier number of
-- the chunk, already has.
create or replace function rules.find_collisions(
  p_tenant_id int, p_first_number int, p_lookup_hashes uuid[])
returns int[]
language sql stable
return (
  select array_agg((p_first_number + h.ordinality - 1)::int)
  from (
    select u.lookup_hash, u.ordinality,
           row_number() over (partition by u.lookup_hash order by u.ordinality) as occurrence
    from unnest(p_lookup_hashes) with ordinality u (lookup_hash, ordinality)) h
  where h.occurrence > 1
     or exists (
       select
       from core.coupon c
       where c.tenant_id = p_tenant_id and c.lookup_hash = h.lookup_hash));
