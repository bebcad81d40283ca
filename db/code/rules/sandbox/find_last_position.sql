-- The highest position that a feed or the list of a merchant of the tenant has used.
create or replace function rules.find_last_position(p_tenant_id int) returns bigint
language sql stable
begin atomic
  select greatest(t.feed_base, (
           select max(f.last_position) from core.feed f where f.tenant_id = p_tenant_id), (
           select max(p.first_position + cardinality(p.event_seqs) - 1)
           from core.merchant m
           join core.merchant_page p on p.merchant_id = m.merchant_id
           where m.tenant_id = p_tenant_id and p.tenant_id = p_tenant_id))
  from core.tenant t
  where t.tenant_id = p_tenant_id;
end;
