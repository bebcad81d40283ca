-- How far is each released batch used, how old is it, and what may its unused coupons still cost?
-- percent_used counts coupons that are REDEEMED now. still_owed is the most that usable ones can
-- cost; it is null for a percentage without a limit: only the orders limit that.
select tenant, batch, template, maker, distributor, currency,
       current_date - allocated_at::date as age_days, valid_to::date as valid_to,
       minted_count as coupons, redeemed_count as used,
       round(100.0 * redeemed_count / minted_count, 1) as percent_used,
       issued_count + locked_count as unused, expired_count as expired, voided_count as voided,
       net_amount as net, liability_amount as still_owed
from report.batch
where allocated_at is not null
  and tenant in (select tenant from report.tenant where not is_sandbox)
order by tenant, allocated_at desc, batch;
