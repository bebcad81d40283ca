-- Locks what calls and jobs would change while a sandbox is emptied, until the end of the
-- transaction. So what they have done is seen, and what they do later finds no rows.
--
-- Coupons come before batches, as in every operation, and once more after them, because a mint may
-- have added some meanwhile. The templates keep new batches out: their foreign key waits.
create or replace function rules.hold_rows_of_sandbox(p_tenant_id int) returns void
language plpgsql volatile as $$
begin
  perform from core.template t where t.tenant_id = p_tenant_id for update;
  perform rules.hold_coupons_of_sandbox(p_tenant_id);
  perform from core.batch b where b.tenant_id = p_tenant_id for update;
  perform rules.hold_coupons_of_sandbox(p_tenant_id);
  perform from core.webhook w where w.tenant_id = p_tenant_id for no key update;
end
$$;
