-- The newest p_limit batches before p_before that a party of Variant B makes, and as many that were
-- released to it as distributor. With p_template_id only the latter: its maker is another party.
-- For rules.list_visible_batches, which says why rows are compared.
create or replace function rules.list_party_batches(
  p_tenant_id int, p_party_id int, p_status text, p_template_id int, p_before bigint, p_limit int)
returns setof core.batch
language plpgsql stable as $$
begin
  return query
  (select b.*
   from core.batch b
   where (b.maker_id, b.tenant_id, b.batch_id) < (p_party_id, p_tenant_id, p_before)
     and (b.maker_id, b.tenant_id, b.batch_id) >= (p_party_id, p_tenant_id, 0)
     and (p_status is null or b.status = p_status)
     and p_template_id is null
   order by b.maker_id desc, b.tenant_id desc, b.batch_id desc
   limit p_limit)
  union all
  (select b.*
   from core.batch b
   where (b.distributor_id, b.tenant_id, b.batch_id) < (p_party_id, p_tenant_id, p_before)
     and (b.distributor_id, b.tenant_id, b.batch_id) >= (p_party_id, p_tenant_id, 0)
     and b.status = 'ALLOCATED'
     and b.maker_id <> p_party_id
     and (p_template_id is null or b.template_id = p_template_id)
   order by b.distributor_id desc, b.tenant_id desc, b.batch_id desc
   limit p_limit);
end
$$;
