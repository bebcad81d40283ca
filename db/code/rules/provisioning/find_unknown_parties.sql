-- A problem for each party of a list that the tenant does not have.
create or replace function rules.find_unknown_parties(p_tenant_id int, p_parties jsonb, p_path text)
returns jsonb
language sql stable
return (
  select coalesce(jsonb_agg(
    jsonb_build_object(
      'path', format('%s.%s', p_path, d.ordinality - 1), 'message', 'no such party in this tenant')
    order by d.ordinality), '[]')
  from jsonb_array_elements_text(p_parties) with ordinality d
  where not exists (
    select from core.party p where p.tenant_id = p_tenant_id and p.external_id = d.value));
