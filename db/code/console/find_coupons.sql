-- The coupons with this code, by its lookup hash: at most one in a tenant. A code that was pasted
-- is in no statement.
create or replace function console.find_coupons(p_lookup_hash uuid)
returns table (tenant text, coupon text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return query
    select t.external_id, rules.format_id('cpn', c.coupon_id)
    from core.coupon c
    join core.tenant t on t.tenant_id = c.tenant_id
    where c.lookup_hash = p_lookup_hash
    order by 1;
end
$$;
