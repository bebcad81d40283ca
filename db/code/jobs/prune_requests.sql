-- Deletes rows of core.request older than p_days from the blocks p_from to p_to - 1 of the table,
-- at most p_limit. Returns how many, or null if the table ends before p_from. Keeps retries of a
-- batch create whose request_id is not in core.batch: nothing else prevents a second mint. Those of
-- a tenant that has left for another cell go too.
-- jobs.prune_attempts explains the blocks and now().
create or replace function jobs.prune_requests(p_days int, p_limit int, p_from bigint, p_to bigint)
returns int
language sql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off
begin atomic
  select rules.check_retention(p_days);
  with removed as (
    delete from core.request r
    where r.ctid = any (array(
      select o.ctid
      from core.request o
      where o.ctid >= rules.find_start_of_block(p_from)
        and o.ctid < rules.find_start_of_block(p_to)
        and o.recorded_at < now() - make_interval(days => p_days)
        and (o.operation <> 'create_batch' or o.http_status <> 200 or exists (
          select from core.batch b
          where b.tenant_id = o.tenant_id
            and b.caller_id = o.caller_id
            and b.request_id = o.request_id)
          or core.is_departed(o.tenant_id))
      limit p_limit
      for update skip locked))
    returning 1)
  select case when rules.has_block('core.request', p_from) then count(*)::int end from removed;
end;
