-- The recalls that are not finished, for the metrics of `work`. lag: the age of the oldest one that
-- has coupons left. Others only wait for locks.
create or replace function rules.measure_recalls(
  p_now timestamptz, out batches int, out coupons bigint, out lag float8)
language sql stable
begin atomic
  select count(*), coalesce(sum(b.minted_count - b.recalled_through), 0),
         coalesce(extract(epoch from p_now - min(b.recalled_at) filter (
           where b.recalled_through < b.minted_count)), 0)
  from core.batch b
  where b.recalled_at is not null and b.recall_finished_at is null
    and not core.is_departed(b.tenant_id);
end;
