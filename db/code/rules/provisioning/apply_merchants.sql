-- Creates and updates merchants with their delegates and stores. A merchant that moves to another
-- party keeps its key.
create or replace function rules.apply_merchants(
  p_tenant_id int, p_merchants jsonb, p_path text, out problems jsonb, out changed int)
language plpgsql volatile as $$
declare
  v_item      record;
  v_merchant  jsonb;
  v_party_id  int;
  v_id        int;
  v_rows      int;
begin
  problems := '[]';
  changed := 0;
  for v_item in
    select m.value as merchant, format('%s.%s', p_path, m.ordinality - 1) as path
    from jsonb_array_elements(p_merchants) with ordinality m
  loop
    v_merchant := v_item.merchant;
    v_party_id := rules.find_party(p_tenant_id, v_merchant ->> 'party');
    if v_party_id is null then
      problems := problems
        || rules.describe_problem(v_item.path || '.party', 'no such party in this tenant');
      continue;
    end if;
    insert into core.merchant as m (tenant_id, external_id, name, party_id)
    values (p_tenant_id, v_merchant ->> 'id', v_merchant ->> 'name', v_party_id)
    on conflict (tenant_id, external_id) do update
    set name = excluded.name, party_id = excluded.party_id
    where (m.name, m.party_id) is distinct from (excluded.name, excluded.party_id);
    get diagnostics v_rows = row_count;
    changed := changed + v_rows;
    select m.merchant_id into strict v_id
    from core.merchant m where m.tenant_id = p_tenant_id and m.external_id = v_merchant ->> 'id';
    if v_merchant -> 'delegates' is not null then
      problems := problems || rules.find_unknown_parties(
        p_tenant_id, v_merchant -> 'delegates', v_item.path || '.delegates');
      changed := changed + rules.apply_delegates(p_tenant_id, v_id, v_merchant -> 'delegates');
    end if;
    if v_merchant -> 'stores' is not null then
      changed := changed + rules.apply_stores(p_tenant_id, v_id, v_merchant -> 'stores', false);
    end if;
    if v_merchant -> 'stores_added' is not null then
      changed := changed
        + rules.apply_stores(p_tenant_id, v_id, v_merchant -> 'stores_added', true);
    end if;
  end loop;
end
$$;
