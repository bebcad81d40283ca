-- Lines of a file of a closed business day after line p_after, for the console: with external IDs.
create or replace function console.read_statement_page(
  p_tenant text, p_distributor text, p_business_date date, p_kind text, p_after int, p_limit int,
  out number int, out fields text[])
returns setof record
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return query
    select l.number, l.fields
    from core.party p
    join core.tenant t on t.tenant_id = p.tenant_id
    cross join lateral rules.read_statement_page(
      p.tenant_id, p.party_id, p_business_date, p_kind, p_after, p_limit) l
    where t.external_id = p_tenant and p.external_id = p_distributor
    order by l.number;
end
$$;
