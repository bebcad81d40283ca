create or replace view report.stuck_work as
select t.external_id as tenant, p.external_id as party, s.work, s.subject, s.reason, s.since,
       s.tried_at,
       case s.work when 'events' then (
         select count(*)
         from core.event_gap g
         where g.tenant_id = s.tenant_id and g.party_id = s.party_id) end as waiting_events
from rules.stuck_work s
join core.tenant t on t.tenant_id = s.tenant_id
join core.party p on p.tenant_id = s.tenant_id and p.party_id = s.party_id;
comment on view report.stuck_work is '@primaryKey tenant,party,work,subject
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,party) references report.party (tenant,party)
Work that fails because of the rows of one party: normally no rows. Nothing else waits for it.';
comment on column report.stuck_work.tenant is 'External ID, ten_….';
comment on column report.stuck_work.party is
  'External ID, pty_…: the distributor; of a batch that is minted or recalled, its maker.';
comment on column report.stuck_work.work is
  'events (its events and business days wait), locks, expiry, mint, recall, statement or webhook.';
comment on column report.stuck_work.subject is
  'What fails: the party, a coupon, a batch, or the date of a statement.';
comment on column report.stuck_work.reason is 'The error of the last attempt.';
comment on column report.stuck_work.since is 'When it first failed.';
comment on column report.stuck_work.tried_at is 'The last attempt. Others follow each minute.';
comment on column report.stuck_work.waiting_events is
  'Events that wait for a position in the feed. Null for other work.';
