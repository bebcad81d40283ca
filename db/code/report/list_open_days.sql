-- It is security definer, because readers of reports call it and may read no table.
create or replace function report.list_open_days(
  out tenant text, out distributor text, out open_on date, out time_zone text,
  out ends_at timestamptz, out is_overdue boolean)
returns setof record
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_unknown  text[] := rules.find_unknown_zones(array(
    select distinct p.time_zone from core.party p));
begin
  return query
  select d.tenant, d.distributor, d.open_on, d.time_zone, d.ends_at,
         d.ends_at <= statement_timestamp()
  from (
    select t.external_id as tenant, p.external_id as distributor, b.open_on, p.time_zone,
           case
             when p.time_zone <> all (v_unknown)
               then (b.open_on + 1)::timestamp at time zone p.time_zone
           end as ends_at
    from core.ledger_book b
    join core.tenant t on t.tenant_id = b.tenant_id
    join core.party p on p.tenant_id = b.tenant_id and p.party_id = b.party_id) d
  order by d.ends_at nulls first, d.tenant, d.distributor;
end
$$;
comment on function report.list_open_days() is
  'The open business day of each distributor, and when it ends. Null: the server does not know the '
  'time zone. Overdue: it is over, and work has not closed it yet.';
