-- Lists work that waits because of the rows of one party, for the log and the metrics of `work`.
create or replace function jobs.list_stuck_work(
  out work text, out tenant text, out party text, out subject text, out reason text)
returns setof record
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select s.work, t.external_id, p.external_id, s.subject, s.reason
  from rules.stuck_work s
  join core.tenant t on t.tenant_id = s.tenant_id
  join core.party p on p.tenant_id = s.tenant_id and p.party_id = s.party_id
  order by s.since, t.external_id, p.external_id, s.work, s.subject;
end;
