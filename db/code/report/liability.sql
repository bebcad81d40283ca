create or replace view report.liability as
select b.tenant, b.currency, sum(b.usable_count)::bigint as coupon_count,
       coalesce(
         sum(b.usable_count * rules.format_amount(b.most_minor, c.decimals, 'major')),
         rules.format_amount(0, c.decimals, 'major')) as liability_amount,
       coalesce(sum(b.usable_count) filter (where b.most_minor is null), 0)::bigint
         as unlimited_count
from rules.counted_batch b
join core.currency c on c.currency = b.currency
group by b.tenant, b.currency, c.decimals;
comment on view report.liability is '@primaryKey tenant,currency
@foreignKey (tenant) references report.tenant (tenant)
The most that coupons which can still be redeemed may cost, in each currency that has batches;
amounts in major units. Fast: everything, in proportion to days × batches, voidings and the entries
of open days. By template, maker or distributor: sum report.batch.';
comment on column report.liability.tenant is 'External ID, ten_….';
comment on column report.liability.currency is
  'ISO 4217 code. It sets the decimals of the amounts in this row.';
comment on column report.liability.coupon_count is
  'ISSUED and LOCKED coupons of released batches, also before their valid_from.';
comment on column report.liability.liability_amount is
  'What they cost at most, in major units: a fixed discount, or a percentage at its limit. Without '
  'those of unlimited_count.';
comment on column report.liability.unlimited_count is
  'Those of coupon_count whose percentage has no limit, so that only their orders limit it.';
