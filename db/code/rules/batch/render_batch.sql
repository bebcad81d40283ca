-- A batch as the answer to a call.
create or replace function rules.render_batch(p_tenant_id int, p_batch_id int) returns core.answer
language sql stable
return rules.succeed(
  format('{"ok":true,"batch":%s}', rules.describe_batch(p_tenant_id, p_batch_id)));
