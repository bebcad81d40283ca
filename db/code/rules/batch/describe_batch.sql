-- A batch as JSON, as answers and lists show it.
create or replace function rules.describe_batch(p_tenant_id int, p_batch_id int) returns text
language sql stable
return (
  select format(
    '{"external_id":"%s","status":"%s","total_count":%s,"minted_count":%s,'
    '"maker_party_id":"%s","distributor_party_id":"%s","template_id":"%s","created_at":"%s",'
    '"suspended_at":%s%s}',
    b.external_id, b.status, b.total_count, b.minted_count,
    m.external_id, d.external_id, t.external_id, rules.format_time(b.created_at),
    coalesce('"' || rules.format_time(b.suspended_at) || '"', 'null'),
    case when b.recalled_at is not null then format(
      ',"recall":{"requested_at":"%s","voided_count":%s,"finished_at":%s}',
      rules.format_time(b.recalled_at), b.recall_voided_count,
      coalesce('"' || rules.format_time(b.recall_finished_at) || '"', 'null'))
    end)
  from core.batch b
  join core.party m on m.tenant_id = b.tenant_id and m.party_id = b.maker_id
  join core.party d on d.tenant_id = b.tenant_id and d.party_id = b.distributor_id
  join core.template t on t.tenant_id = b.tenant_id and t.template_id = b.template_id
  -- equivalent mutant (operand b.tenant_id = p_tenant_id): a batch_id is unique across tenants
  where b.tenant_id = p_tenant_id and b.batch_id = p_batch_id);
