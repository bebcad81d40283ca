-- The newest p_limit batches before p_before that the caller may list, and maybe some older ones.
-- Each branch reads one index from its end: batches that are not released, those of a template, of
-- a tenant, or of a party. All batches of a template have the same maker.
--
-- Rows are compared and ordered by all columns of the index that a branch is for, and never sorted,
-- so only that index can be read. With a plain tenant_id = … order by batch_id, the planner expects
-- to find a page of the caller's batches soon among those of the tenant, and reads all of them for
-- a caller that has few.
create or replace function rules.list_visible_batches(
  p_call core.call, p_status text, p_template text, p_before bigint, p_limit int)
returns setof core.batch
language plpgsql stable set enable_sort = off set enable_incremental_sort = off as $$
declare
  v_tenant_id  int := p_call.tenant_id;
  v_party_id   int := case p_call.variant when 'B' then p_call.caller_id end;
  v_template   core.template;
begin
  if p_template is not null then
    select t.* into v_template
    from core.template t
    where t.tenant_id = v_tenant_id and t.external_id = p_template;
    if not found then
      return;
    end if;
  end if;

  if p_status in ('PENDING', 'COMPLETED') then
    return query
    select b.*
    from rules.list_unreleased_batches(
      v_tenant_id, v_party_id, p_status, v_template, p_before, p_limit) b;
  elsif p_template is not null and coalesce(v_template.maker_id = v_party_id, true) then
    return query
    select b.*
    from core.batch b
    where (b.template_id, b.tenant_id, b.batch_id)
            < (v_template.template_id, v_tenant_id, p_before)
      and (b.template_id, b.tenant_id, b.batch_id) >= (v_template.template_id, v_tenant_id, 0)
      and (p_status is null or b.status = p_status)
    order by b.template_id desc, b.tenant_id desc, b.batch_id desc
    limit p_limit;
  elsif v_party_id is null then
    return query
    select b.*
    from core.batch b
    where (b.tenant_id, b.batch_id) < (v_tenant_id, p_before)
      and (b.tenant_id, b.batch_id) >= (v_tenant_id, 0)
      and (p_status is null or b.status = p_status)
    order by b.tenant_id desc, b.batch_id desc
    limit p_limit;
  else
    return query
    select b.*
    from rules.list_party_batches(
      v_tenant_id, v_party_id, p_status, v_template.template_id, p_before, p_limit) b;
  end if;
end
$$;
