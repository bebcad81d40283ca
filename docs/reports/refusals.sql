-- Why are locks and redeems refused, at which merchant, and how often? The last 30 days.
-- percent is the share of the merchant's calls: its refusals and its granted locks and redeems.
-- A retry does not count again. Calls that leave no record, such as wrong codes, do not count.
with refused as materialized (
  select tenant_id, tenant, caller, request_id, code
  from report.request
  where recorded_at >= current_date - 30
    and operation in ('lock', 'redeem')
    and code is not null
    and first_request_id is null
    and tenant in (select tenant from report.tenant where not is_sandbox)),
counted as (
  select f.tenant, q.merchant, f.code, count(*) as refusals
  from refused f
  -- limit 1: the planner looks up what each refusal is about, and reads no table whole
  cross join lateral (
    select q.merchant
    from report.request q
    where q.tenant_id = f.tenant_id
      and q.request_id = f.request_id
      and q.caller is not distinct from f.caller
    limit 1) q
  group by 1, 2, 3),
granted as (
  select tenant, merchant, count(*) as grants
  from report.redemption
  where redemption_key >= report.make_key(current_date - 30)
  group by 1, 2)
select c.tenant, c.merchant, c.code, c.refusals,
       round(100.0 * c.refusals / (
         coalesce(g.grants, 0) + sum(c.refusals) over (partition by c.tenant, c.merchant)), 1)
         as percent
from counted c
left join granted g on g.tenant = c.tenant and g.merchant = c.merchant
order by c.tenant, c.refusals desc, c.merchant, c.code;
