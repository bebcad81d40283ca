-- The summary of a business day, from its postings and the ledger. Security definer, because
-- report.invariants asks it and a view calls functions as its reader.
create or replace function rules.summarize_day(
  p_tenant_id int, p_distributor_id int, p_business_date date,
  out merchant_id int, out template_id int, out currency text, out merchant text, out template text,
  out redemption_count int, out redemption_minor bigint, out reversal_count int, out reversal_minor bigint)
returns setof record
language sql stable security definer
begin atomic
  select r.merchant_id, b.template_id, l.currency, m.external_id, t.external_id,
         (count(*) filter (where l.entry_type = 'REDEMPTION'))::int,
         (coalesce(sum(l.amount_minor) filter (where l.entry_type = 'REDEMPTION'), 0))::bigint,
         (count(*) filter (where l.entry_type = 'REVERSAL'))::int,
         (coalesce(sum(l.amount_minor) filter (where l.entry_type = 'REVERSAL'), 0))::bigint
  from core.posting p
  join core.ledger_entry l on l.tenant_id = p.tenant_id and l.entry_id = p.entry_id
  left join core.reversal v on v.tenant_id = l.tenant_id and v.reversal_id = l.entry_id
  join core.redemption r on r.tenant_id = l.tenant_id and r.redemption_id = coalesce(v.redemption_id, l.entry_id)
  join core.coupon c on c.tenant_id = r.tenant_id and c.coupon_id = r.coupon_id
  join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
  join core.merchant m on m.tenant_id = r.tenant_id and m.merchant_id = r.merchant_id
  join core.template t on t.tenant_id = b.tenant_id and t.template_id = b.template_id
  where p.tenant_id = p_tenant_id and p.distributor_id = p_distributor_id and p.business_date = p_business_date
  group by r.merchant_id, b.template_id, l.currency, m.external_id, t.external_id;
end;
comment on function rules.summarize_day(int, int, date) is 'One row a merchant, template and currency of a business day.';
