-- Makes the calling session a worker session: draws a number and locks it as long as the session
-- lasts. `work` keeps one such session, and claims batches and subscribers under its number.
create or replace function jobs.join_workers() returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_worker int := nextval('core.worker_number');
begin
  perform pg_advisory_lock(rules.compute_worker_lock(v_worker));
  return v_worker;
end
$$;
comment on function jobs.join_workers() is
  'Makes the calling session a worker session and returns its number.';
