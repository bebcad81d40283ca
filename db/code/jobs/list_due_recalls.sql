-- Recalled batches that wait for a worker, those of the tenant with the fewest recalls in progress
-- first, and among these the one that was recalled first.
create or replace function jobs.list_due_recalls(p_limit int, out tenant_id int, out batch_id int)
returns setof record
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  select d.tenant_id, d.batch_id
  from (
    select p.*,
           count(*) filter (where not p.is_due) over (partition by p.tenant_id)
           + row_number() over (
             partition by p.tenant_id, p.is_due order by p.recalled_at, p.batch_id) as turn
    from (
      select b.tenant_id, b.batch_id, b.recalled_at,
             rules.is_batch_free(b.mint_lease_until, b.mint_worker) as is_due
      from core.batch b
      where b.recalled_at is not null
        and b.recall_finished_at is null
        and rules.is_served(b.tenant_id)) p) d
  where d.is_due
  order by d.turn, d.recalled_at, d.tenant_id, d.batch_id
  limit p_limit;
end;
