-- The worker calls this when it cannot deliver to a webhook or finish a statement because of what
-- is stored, for example a secret that does not open. p_subject: the date of the statement; null:
-- the party itself.
create or replace function jobs.note_stuck_work(
  p_work text, p_tenant_id int, p_party_id int, p_subject text, p_reason text)
returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  select rules.note_stuck_work(p_work, p_tenant_id, p_party_id, p_subject, p_reason);
end;
