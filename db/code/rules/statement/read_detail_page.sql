-- Lines of detail.csv after line p_after, in posting order. Reads only rows that never change, so
-- the file has the same bytes each time. Returns IDs as UUIDs and times as microseconds since 1970;
-- the program that writes the file formats them.
create or replace function rules.read_detail_page(
  p_tenant_id int, p_distributor_id int, p_business_date date, p_after int, p_limit int,
  out number int, out fields text[])
returns setof record
language sql stable
begin atomic
  select e.number, array[
    e.business_date::text, e.entry_id::text, e.entry_type, e.redemption_id::text,
    e.reversal_id::text, e.coupon_id::text, e.batch, t.external_id, m.external_id,
    e.store, e.terminal, e.order_id, rules.format_amount(e.order_minor, u.decimals, 'major')::text,
    rules.format_amount(e.amount_minor, u.decimals, 'major')::text, e.currency,
    (date_part('epoch', e.occurred_at) * 1000000)::bigint::text,
    (date_part('epoch', e.recorded_at) * 1000000)::bigint::text, d.external_id]
  from rules.posted_entry e
  left join core.party d on d.tenant_id = e.tenant_id and d.party_id = e.distributor_id
  left join core.template t on t.tenant_id = e.tenant_id and t.template_id = e.template_id
  left join core.merchant m on m.tenant_id = e.tenant_id and m.merchant_id = e.merchant_id
  left join core.currency u on u.currency = e.currency
  where e.tenant_id = p_tenant_id
    and e.distributor_id = p_distributor_id
    and e.business_date = p_business_date
    and e.first_number >= (
      select coalesce(max(p.first_number), 0)
      from core.posting_page p
      where p.tenant_id = p_tenant_id
        and p.distributor_id = p_distributor_id
        and p.business_date = p_business_date
        and p.first_number <= p_after + 1)
    and e.first_number <= p_after + p_limit
    and e.number > p_after
    and e.number <= p_after + p_limit
  order by e.number;
end;
