-- Resumes a suspended batch. The caller holds the batch's row.
create or replace function rules.resume_batch(
  p_batch core.batch, p_reason text, p_details jsonb default '{}')
returns void
language plpgsql volatile as $$
begin
  update core.batch b
  set suspended_at = null
  where b.tenant_id = p_batch.tenant_id and b.batch_id = p_batch.batch_id;
  perform rules.write_audit(
    p_batch.tenant_id, 'resume_batch', p_batch.external_id, p_reason,
    p_details || '{"batch":{"old":"suspended","new":"usable"}}');
end
$$;
