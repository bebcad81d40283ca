-- The worker calls this when it cannot mint or recall a batch because of what is stored.
create or replace function jobs.note_stuck_batch(p_tenant_id int, p_batch_id int, p_reason text)
returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  select rules.note_stuck_work(
    case when b.recalled_at is null then 'mint' else 'recall' end, b.tenant_id, b.maker_id,
    b.external_id, p_reason)
  from core.batch b
  where b.tenant_id = p_tenant_id and b.batch_id = p_batch_id;
end;
