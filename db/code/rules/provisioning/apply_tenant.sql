-- Creates and updates one tenant of a provisioning document. Locks the tenant's row, so two
-- provisionings of one tenant run one after the other. It uses FOR NO KEY UPDATE instead of FOR
-- UPDATE: an insert into a table that references core.tenant, such as core.feed or core.audit,
-- locks this row FOR KEY SHARE, and the sequencer must not wait for a provisioning.
create or replace function rules.apply_tenant(
  p_tenant jsonb, p_path text, p_reason text,
  out problems jsonb, out changed int, out kept jsonb, out changes jsonb, out removals jsonb)
language plpgsql volatile as $$
declare
  v_tenant   core.tenant;
  v_step     record;
  v_before   jsonb := '{}';
  v_targets  text[] := array(
    select o.value ->> case o.list when 'credentials' then 'access_key' else 'id' end
    from unnest('{parties,merchants,templates,credentials}'::text[]) l (list)
    cross join lateral (
      select l.list, x.value from jsonb_array_elements(p_tenant -> l.list) x) o);
begin
  problems := '[]';
  changes := '[]';
  removals := '[]';
  kept := '{"credentials": [], "webhooks": []}';
  insert into core.tenant (external_id, name, variant, amount_unit, is_sandbox)
  values (
    p_tenant ->> 'id', p_tenant ->> 'name', p_tenant ->> 'variant', p_tenant ->> 'amount_unit',
    coalesce((p_tenant ->> 'sandbox')::boolean, false))
  on conflict (external_id) do nothing;
  get diagnostics changed = row_count;
  select t.* into v_tenant
  from core.tenant t
  where t.external_id = p_tenant ->> 'id'
  for no key update;
  problems := rules.find_fixed_problems(v_tenant, p_tenant, p_path)
    || rules.find_zone_problems(p_tenant -> 'parties', p_path || '.parties');
  if problems <> '[]' then
    return;
  end if;
  if changed = 0 then
    v_before := rules.describe_provisioned(v_tenant, v_targets);
  end if;
  if v_tenant.name <> p_tenant ->> 'name' then
    update core.tenant t set name = p_tenant ->> 'name' where t.tenant_id = v_tenant.tenant_id;
    changed := 1;
  end if;

  v_step := rules.apply_parties(v_tenant, p_tenant -> 'parties');
  changed := changed + v_step.changed;
  kept := jsonb_set(kept, '{webhooks}', v_step.kept);
  v_step := rules.apply_merchants(
    v_tenant.tenant_id, p_tenant -> 'merchants', p_path || '.merchants');
  problems := problems || v_step.problems;
  changed := changed + v_step.changed;
  v_step := rules.apply_templates(v_tenant, p_tenant -> 'templates', p_path || '.templates');
  problems := problems || v_step.problems;
  changed := changed + v_step.changed;
  v_step := rules.apply_credentials(
    v_tenant.tenant_id, p_tenant -> 'credentials', p_path || '.credentials');
  problems := problems || v_step.problems;
  changed := changed + v_step.changed;
  kept := jsonb_set(kept, '{credentials}', v_step.kept);
  if changed > 0 and problems = '[]' then
    v_step := rules.write_changes(v_tenant, v_targets, v_before, p_reason);
    changes := v_step.changes;
    removals := v_step.removals;
  end if;
end
$$;
