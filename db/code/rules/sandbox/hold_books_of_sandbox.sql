-- Blocks the sequencer, and the jobs that make statements of a sandbox, until the end of the
-- transaction. A new statement needs the sequencer's lock, so no other one can come.
create or replace function rules.hold_books_of_sandbox(p_tenant_id int) returns void
language plpgsql volatile as $$
begin
  perform pg_advisory_xact_lock(rules.compute_sequencer_lock());
  perform from core.statement s where s.tenant_id = p_tenant_id for update;
end
$$;
