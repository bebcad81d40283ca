-- Deletes rows of core.request older than p_days, at most p_limit. Returns how many. Keeps retries
-- of a batch create whose request_id is not in core.batch: nothing else prevents a second mint.
-- jobs.prune_attempts explains now() and the missing sequential scan.
create or replace function jobs.prune_requests(p_days int, p_limit int) returns int
language sql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off
begin atomic
  select rules.check_retention(p_days);
  with removed as (
    delete from core.request r
    where r.ctid = any (array(
      select o.ctid
      from core.request o
      where o.recorded_at < now() - make_interval(days => p_days)
        and (o.operation <> 'create_batch' or o.http_status <> 200 or exists (
          select from core.batch b
          where b.tenant_id = o.tenant_id
            and b.caller_id = o.caller_id
            and b.request_id = o.request_id))
      limit p_limit
      for update skip locked))
    returning 1)
  select count(*)::int from removed;
end;
comment on function jobs.prune_requests(int, int) is
  'Deletes old rows of core.request; returns how many.';
