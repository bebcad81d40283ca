create or replace view rules.closed_days_follow_each_other as
select 'closed days follow each other' as invariant, d.tenant_id,
       core.name_party(d.tenant_id, d.distributor_id) || ' '
         || to_char(d.business_date, 'YYYY-MM-DD') as subject
from (
  select s.tenant_id, s.distributor_id, s.business_date, p.time_zone,
         lead(s.business_date, 1, b.open_on) over (
           partition by s.tenant_id, s.distributor_id order by s.business_date) as next_date
  from core.statement s
  join core.ledger_book b on b.tenant_id = s.tenant_id and b.party_id = s.distributor_id
  join core.party p on p.tenant_id = s.tenant_id and p.party_id = s.distributor_id) d
where case
  when d.next_date > d.business_date + 1 and d.time_zone <> all (
    (select rules.find_unknown_zones(array(select distinct p.time_zone from core.party p)))::text[])
    then d.next_date <> (
      (d.business_date + 1)::timestamp at time zone d.time_zone at time zone d.time_zone)::date
end;
comment on view rules.closed_days_follow_each_other is
  'Closed business days after which a day is neither closed nor open. Days that do not exist in '
  'the time zone are left out (Apia had no 2011-12-30), and distributors whose time zone the '
  'server does not know.';
