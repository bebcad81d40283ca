create or replace view rules.delivery_is_parked_after_10_attempts as
select 'delivery is parked after 10 attempts' as invariant, d.tenant_id,
       rules.format_id('evt', d.event_id) as subject
from core.delivery d
where d.attempt_count = 10 and d.parked_at is null;
comment on view rules.delivery_is_parked_after_10_attempts is
  'Deliveries that were tried 10 times and are not parked.';
