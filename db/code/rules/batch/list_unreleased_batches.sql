-- The newest p_limit PENDING or COMPLETED batches before p_before: those of a template, of a maker
-- (p_party_id), or of the tenant. A distributor sees none of them. For rules.list_visible_batches,
-- which says why rows are compared.
create or replace function rules.list_unreleased_batches(
  p_tenant_id int, p_party_id int, p_status text, p_template core.template, p_before bigint,
  p_limit int)
returns setof core.batch
language plpgsql stable as $$
begin
  if p_template.maker_id <> p_party_id then
    return;
  elsif p_template.template_id is not null then
    return query
    select b.*
    from core.batch b
    where (b.template_id, b.tenant_id, b.status, b.batch_id)
            < (p_template.template_id, p_tenant_id, p_status, p_before)
      and (b.template_id, b.tenant_id, b.status, b.batch_id)
            >= (p_template.template_id, p_tenant_id, p_status, 0)
      and b.status <> 'ALLOCATED'
    order by b.template_id desc, b.tenant_id desc, b.status desc, b.batch_id desc
    limit p_limit;
  elsif p_party_id is not null then
    return query
    select b.*
    from core.batch b
    where (b.maker_id, b.tenant_id, b.status, b.batch_id)
            < (p_party_id, p_tenant_id, p_status, p_before)
      and (b.maker_id, b.tenant_id, b.status, b.batch_id)
            >= (p_party_id, p_tenant_id, p_status, 0)
      and b.status <> 'ALLOCATED'
    order by b.maker_id desc, b.tenant_id desc, b.status desc, b.batch_id desc
    limit p_limit;
  else
    return query
    select b.*
    from core.batch b
    where (b.tenant_id, b.status, b.batch_id) < (p_tenant_id, p_status, p_before)
      and (b.tenant_id, b.status, b.batch_id) >= (p_tenant_id, p_status, 0)
      and b.status <> 'ALLOCATED'
    order by b.tenant_id desc, b.status desc, b.batch_id desc
    limit p_limit;
  end if;
end
$$;
