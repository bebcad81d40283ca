-- Key of the party with an external ID; null if the tenant has none.
create or replace function rules.find_party(p_tenant_id int, p_external_id text) returns int
language plpgsql stable as $$
begin
  return (
    select p.party_id
    from core.party p
    where p.tenant_id = p_tenant_id and p.external_id = p_external_id);
end
$$;
