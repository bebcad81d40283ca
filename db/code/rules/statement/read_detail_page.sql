-- Lines of detail.csv after line p_after, in posting order. Reads only rows that never change, so
-- the file has the same bytes each time. Returns IDs as UUIDs and times as microseconds since 1970;
-- the program that writes the file formats them.
create or replace function rules.read_detail_page(
  p_tenant_id int, p_distributor_id int, p_business_date date, p_after int, p_limit int,
  out number int, out fields text[])
returns setof record
language sql stable
begin atomic
  select p.number, array[
    p.business_date::text, l.entry_id::text, l.entry_type, l.redemption_id::text,
    l.reversal_id::text, l.coupon_id::text, b.external_id, t.external_id, m.external_id,
    l.store, l.terminal, l.order_id, rules.format_amount(l.order_minor, u.decimals, 'major')::text,
    rules.format_amount(l.amount_minor, u.decimals, 'major')::text, l.currency,
    (date_part('epoch', l.occurred_at) * 1000000)::bigint::text,
    (date_part('epoch', l.recorded_at) * 1000000)::bigint::text, d.external_id]
  from core.posting p
  join core.party d on d.tenant_id = p.tenant_id and d.party_id = p.distributor_id
  join rules.ledger_entry_detail l on l.tenant_id = p.tenant_id and l.entry_id = p.entry_id
  join core.currency u on u.currency = l.currency
  join core.coupon c on c.tenant_id = l.tenant_id and c.coupon_id = l.coupon_id
  join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
  join core.merchant m on m.tenant_id = l.tenant_id and m.merchant_id = l.merchant_id
  join core.template t on t.tenant_id = b.tenant_id and t.template_id = b.template_id
  where p.tenant_id = p_tenant_id
    and p.distributor_id = p_distributor_id
    and p.business_date = p_business_date
    and p.number > p_after
    and p.number <= p_after + p_limit
  order by p.number;
end;
comment on function rules.read_detail_page(int, int, date, int, int) is
  'Lines of a detail file, page by page.';
