-- Creates and updates templates. Once a template has a batch, its maker, currency, discount,
-- minimum order, SKUs and after_reversal are fixed. Its name, merchants, distributor, validity and
-- lock_ttl_seconds may change; the last three apply to later batches and locks.
create or replace function rules.apply_templates(
  p_tenant core.tenant, p_templates jsonb, p_path text, out problems jsonb, out changed int)
language plpgsql volatile as $$
declare
  v_item    record;
  v_wanted  core.template;
  v_stored  core.template;
  v_found   jsonb;
  v_rows    int;
begin
  problems := '[]';
  changed := 0;
  for v_item in
    select t.value as template, format('%s.%s', p_path, t.ordinality - 1) as path
    from jsonb_array_elements(p_templates) with ordinality t
  loop
    v_wanted := rules.read_template(p_tenant, v_item.template);
    v_stored := null;
    select t.* into v_stored
    from core.template t
    where t.tenant_id = p_tenant.tenant_id and t.external_id = v_wanted.external_id
    for update;
    v_found := rules.find_template_problems(
      p_tenant, v_item.template, v_wanted, v_stored, v_item.path);
    if v_found <> '[]' then
      problems := problems || v_found;
      continue;
    end if;
    changed := changed + rules.write_template(v_wanted);

    with wanted as (
      select t.template_id, m.merchant_id
      from core.template t
      join core.merchant m on m.tenant_id = t.tenant_id
      where t.tenant_id = p_tenant.tenant_id
        and t.external_id = v_wanted.external_id
        and v_item.template -> 'merchants' ? m.external_id),
    removed as (
      delete from core.template_merchant s
      using core.template t
      where t.tenant_id = p_tenant.tenant_id
        and t.external_id = v_wanted.external_id
        and s.tenant_id = t.tenant_id
        and s.template_id = t.template_id
        and s.merchant_id not in (select w.merchant_id from wanted w)
      returning 1),
    added as (
      insert into core.template_merchant (tenant_id, template_id, merchant_id)
      select p_tenant.tenant_id, w.template_id, w.merchant_id from wanted w
      on conflict do nothing
      returning 1)
    select (select count(*) from removed) + (select count(*) from added) into v_rows;
    changed := changed + v_rows;
  end loop;
end
$$;
