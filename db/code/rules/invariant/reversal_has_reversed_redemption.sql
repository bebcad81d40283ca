create or replace view rules.reversal_has_reversed_redemption as
select 'reversal has reversed redemption' as invariant, v.tenant_id,
       rules.format_id('rvs', v.reversal_id) as subject
from core.reversal v
left join core.redemption r on r.tenant_id = v.tenant_id and r.redemption_id = v.redemption_id
where r.status is distinct from 'REVERSED' or r.ended_at <> v.reversed_at;
comment on view rules.reversal_has_reversed_redemption is
  'Reversals whose redemption is missing or not REVERSED, or ended at another time.';
