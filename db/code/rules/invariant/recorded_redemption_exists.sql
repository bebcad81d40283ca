create or replace view rules.recorded_redemption_exists as
select 'recorded redemption exists' as law, q.tenant_id, q.request_id as subject
from core.request q
where q.operation in ('lock', 'redeem')
  and q.http_status = 200
  and not exists (
    select from core.redemption r
    where r.tenant_id = q.tenant_id
      and r.caller_id = q.caller_id
      and r.lock_request_id = q.request_id
      and r.redemption_id = rules.parse_id('red', q.response::jsonb ->> 'redemption'));
comment on view rules.recorded_redemption_exists is
  'Recorded answers to lock or redeem that name no redemption of this request.';
