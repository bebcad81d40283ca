-- Records an administrative action in the audit table: who, what, on what and why. p_details says
-- what changed, old and new; of a secret only 'replaced'.
create or replace function rules.write_audit(
  p_tenant_id int, p_action text, p_target text, p_reason text, p_details jsonb)
returns void
language sql volatile
begin atomic
  insert into core.audit (tenant_id, action, target, reason, details)
  values (p_tenant_id, p_action, p_target, p_reason, p_details);
end;
