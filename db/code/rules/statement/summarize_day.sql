-- Computes the summary of a business day from its postings and the ledger. Security definer,
-- because an invariant view calls it, and views call functions with the rights of their reader.
create or replace function rules.summarize_day(
  p_tenant_id int, p_distributor_id int, p_business_date date,
  out merchant_id int, out template_id int, out currency text, out merchant text, out template text,
  out redemption_count int, out redemption_minor bigint,
  out reversal_count int, out reversal_minor bigint)
returns setof record
language sql stable security definer
begin atomic
  select l.merchant_id, b.template_id, l.currency, m.external_id, t.external_id,
         (count(*) filter (where l.entry_type = 'REDEMPTION'))::int,
         (coalesce(sum(l.amount_minor) filter (where l.entry_type = 'REDEMPTION'), 0))::bigint,
         (count(*) filter (where l.entry_type = 'REVERSAL'))::int,
         (coalesce(sum(l.amount_minor) filter (where l.entry_type = 'REVERSAL'), 0))::bigint
  from core.posting p
  join rules.ledger_entry_detail l on l.tenant_id = p.tenant_id and l.entry_id = p.entry_id
  join core.coupon c on c.tenant_id = l.tenant_id and c.coupon_id = l.coupon_id
  join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
  join core.merchant m on m.tenant_id = l.tenant_id and m.merchant_id = l.merchant_id
  join core.template t on t.tenant_id = b.tenant_id and t.template_id = b.template_id
  where p.tenant_id = p_tenant_id
    and p.distributor_id = p_distributor_id
    and p.business_date = p_business_date
  group by l.merchant_id, b.template_id, l.currency, m.external_id, t.external_id;
end;
comment on function rules.summarize_day(int, int, date) is
  'The summary of a business day: one row per merchant, template and currency.';
