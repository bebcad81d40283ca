-- All events. Those of redemptions and reversals are the ledger entries, see 007-events.sql. This
-- is a union of two plain tables, so every plan finds a number or an ID in the index of each table,
-- and reads numbers in order from both.
create or replace view rules.event as
select e.tenant_id, e.party_id, e.event_seq, e.event_id, e.event_type, e.coupon_id, e.batch_id,
       e.business_date, e.occurred_at, e.recorded_at
from core.event e
union all
select l.tenant_id, l.distributor_id, l.event_seq, l.entry_id,
       case l.entry_type when 'REDEMPTION' then 'coupon.redeemed' else 'coupon.reversed' end,
       l.coupon_id, null::int, null::date, l.occurred_at, l.recorded_at
from core.ledger_entry l;
