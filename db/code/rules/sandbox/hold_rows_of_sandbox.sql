-- Locks what others would change while a sandbox is emptied, until the end of the transaction. So
-- what they have done is seen, and what they do later finds no rows.
--
-- Coupons come first, as in every operation, and once more after the batches, which a mint may have
-- filled meanwhile. The templates keep new batches out: their foreign key waits. The sequencer
-- stands still for the short rest.
create or replace function rules.hold_rows_of_sandbox(p_tenant_id int) returns void
language plpgsql volatile as $$
begin
  perform from core.template t where t.tenant_id = p_tenant_id for update;
  perform rules.hold_coupons_of_sandbox(p_tenant_id);
  perform from core.batch b where b.tenant_id = p_tenant_id for update;
  perform rules.hold_coupons_of_sandbox(p_tenant_id);
  perform from core.webhook w where w.tenant_id = p_tenant_id for no key update;
  perform from core.statement s where s.tenant_id = p_tenant_id for update;
  perform pg_advisory_xact_lock(hashtextextended('sequencer', 0));
end
$$;
