-- Lists the open business day of each distributor, if it is over. If the server does not know the
-- time zone of a distributor, it cannot tell, so it lists the open day without a time zone.
create or replace function rules.list_due_days(
  p_now timestamptz,
  out tenant_id int, out party_id int, out business_date date, out time_zone text)
returns setof record
language plpgsql stable as $$
declare
  v_departed  int[] := rules.find_departed();
  v_unknown   text[] := rules.find_unknown_zones(array(
    select distinct p.time_zone from core.party p));
begin
  return query
  select d.*
  from (
    select b.tenant_id, b.party_id, case
             when p.time_zone <> all (v_unknown)
               then rules.find_due_date(b.open_on, p_now, p.time_zone)
             else b.open_on
           end as due_on,
           case when p.time_zone <> all (v_unknown) then p.time_zone end as time_zone
    from core.ledger_book b
    join core.party p on p.tenant_id = b.tenant_id and p.party_id = b.party_id
    where b.tenant_id <> all (v_departed)) d
  where d.due_on is not null;
end
$$;
