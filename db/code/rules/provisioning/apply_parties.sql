-- Creates and updates parties and their webhooks. If the file names no time zone, a party keeps the
-- one it has, and a new party gets UTC. Without public_key, a party keeps its key; null takes it
-- away.
create or replace function rules.apply_parties(
  p_tenant core.tenant, p_parties jsonb, out changed int, out kept jsonb)
language plpgsql volatile as $$
declare
  v_party  jsonb;
  v_hook   jsonb;
  v_step   record;
  v_id     int;
  v_rows   int;
begin
  changed := 0;
  kept := '[]';
  for v_party in select p.value from jsonb_array_elements(p_parties) p
  loop
    insert into core.party as p (tenant_id, external_id, name, time_zone, public_key)
    values (p_tenant.tenant_id, v_party ->> 'id', v_party ->> 'name',
            coalesce(v_party ->> 'time_zone', 'UTC'), v_party ->> 'public_key')
    on conflict (tenant_id, external_id) do update
    set name = excluded.name, time_zone = coalesce(v_party ->> 'time_zone', p.time_zone),
        public_key = case when v_party ? 'public_key' then excluded.public_key
                     else p.public_key end
    where (p.name, p.time_zone, p.public_key)
          is distinct from (
            excluded.name, coalesce(v_party ->> 'time_zone', p.time_zone),
            case when v_party ? 'public_key' then excluded.public_key else p.public_key end);
    get diagnostics v_rows = row_count;
    changed := changed + v_rows;
    v_id := rules.find_party(p_tenant.tenant_id, v_party ->> 'id');

    v_hook := v_party -> 'webhook';
    continue when v_hook is null;
    v_step := rules.apply_webhook(p_tenant.tenant_id, v_id, v_hook);
    changed := changed + v_step.changed;
    if v_step.is_new and (v_hook ->> 'is_generated')::boolean then
      kept := kept || jsonb_build_array(
        jsonb_build_object('tenant', p_tenant.external_id, 'party', v_party ->> 'id'));
    end if;
  end loop;
end
$$;
