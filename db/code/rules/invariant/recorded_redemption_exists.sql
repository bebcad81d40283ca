-- Confirms and reversals name a redemption of an earlier request. The ID is found by a pattern,
-- because jsonb refuses some JSON, and a response that names nothing is a violation and not an
-- error.
create or replace view rules.recorded_redemption_exists as
select 'recorded redemption exists' as invariant, q.tenant_id, q.request_id as subject
from core.request q
where q.operation in ('lock', 'redeem', 'confirm', 'reverse')
  and q.http_status = 200
  and not exists (
    select from core.redemption r
    where r.tenant_id = q.tenant_id
      and r.redemption_id = coalesce(
        q.redemption_id,
        rules.parse_id('red', substring(q.response from '"redemption":"([^"]*)"')))
      and case q.operation
        when 'confirm' then r.lock_expires_at is not null and r.redeemed_at is not null
        when 'reverse' then r.status = 'REVERSED'
        else r.caller_id = q.caller_id
             and r.lock_request_id = coalesce(q.first_request_id, q.request_id)
      end);
comment on view rules.recorded_redemption_exists is
  'Recorded answers to lock, redeem, confirm or reverse whose redemption does not exist, or is '
  'not redeemed or reversed as they say.';
