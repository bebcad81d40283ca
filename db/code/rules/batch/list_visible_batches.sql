-- The newest p_limit batches before p_before that the caller may list, and maybe some older ones.
-- Each branch reads one index from its end, and runs only if it applies: batches of a template,
-- those that are not released, those of a tenant, of a maker, and those released to a distributor.
create or replace function rules.list_visible_batches(
  p_call core.call, p_status text, p_template text, p_before bigint, p_limit int)
returns setof core.batch
language plpgsql stable as $$
declare
  v_is_a         boolean := p_call.variant = 'A';
  v_template_id  int;
begin
  if p_template is not null then
    v_template_id := (
      select t.template_id
      from core.template t
      where t.tenant_id = p_call.tenant_id and t.external_id = p_template);
    return query
    select b.*
    from core.batch b
    where b.template_id = v_template_id
      and b.tenant_id = p_call.tenant_id
      and b.batch_id < p_before
      and (p_status is null or b.status = p_status)
      and (v_is_a or b.maker_id = p_call.caller_id
           or b.distributor_id = p_call.caller_id and b.status = 'ALLOCATED')
    order by b.batch_id desc
    limit p_limit;
  elsif p_status in ('PENDING', 'COMPLETED') then
    return query
    select b.*
    from core.batch b
    where b.tenant_id = p_call.tenant_id
      and b.status = p_status
      and b.status <> 'ALLOCATED'
      and b.batch_id < p_before
      and (v_is_a or b.maker_id = p_call.caller_id)
    order by b.batch_id desc
    limit p_limit;
  elsif v_is_a then
    return query
    select b.*
    from core.batch b
    where b.tenant_id = p_call.tenant_id
      and b.batch_id < p_before
      and (p_status is null or b.status = p_status)
    order by b.batch_id desc
    limit p_limit;
  else
    return query
    (select b.*
     from core.batch b
     where b.maker_id = p_call.caller_id
       and b.tenant_id = p_call.tenant_id
       and b.batch_id < p_before
       and (p_status is null or b.status = p_status)
     order by b.batch_id desc
     limit p_limit)
    union all
    (select b.*
     from core.batch b
     where b.distributor_id = p_call.caller_id
       and b.tenant_id = p_call.tenant_id
       and b.status = 'ALLOCATED'
       and b.maker_id <> p_call.caller_id
       and b.batch_id < p_before
     order by b.batch_id desc
     limit p_limit);
  end if;
end
$$;
