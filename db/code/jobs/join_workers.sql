-- Makes the calling session a worker session: draws a number and locks it as long as the session
-- lasts. `work` keeps one such session, and leases batches and subscribers under its number. The
-- session also hears of new batches (api.create_batch), so that they do not wait for the next round
-- of the ticker.
create or replace function jobs.join_workers() returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_worker int := nextval('core.worker_number');
begin
  perform pg_advisory_lock(rules.compute_worker_lock(v_worker));
  listen coupon_batch;
  return v_worker;
end
$$;
