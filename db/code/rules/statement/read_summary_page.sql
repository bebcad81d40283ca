-- Lines of summary.csv after line p_after, as jobs.summarize_statement wrote them.
create or replace function rules.read_summary_page(
  p_tenant_id int, p_distributor_id int, p_business_date date, p_after int, p_limit int,
  out number int, out fields text[])
returns setof record
language sql stable
begin atomic
  select l.number, array[
    to_char(l.business_date, 'YYYY-MM-DD'), m.external_id, t.external_id, l.currency,
    l.redemption_count::text, rules.format_amount(l.redemption_minor, u.decimals, 'major')::text,
    l.reversal_count::text, rules.format_amount(l.reversal_minor, u.decimals, 'major')::text,
    -- equivalent mutant (literal): every unit but minor is written in major units
    rules.format_amount(l.redemption_minor + l.reversal_minor, u.decimals, 'major')::text,
    d.external_id]
  from core.statement_line l
  left join core.party d on d.tenant_id = l.tenant_id and d.party_id = l.distributor_id
  left join core.currency u on u.currency = l.currency
  left join core.merchant m on m.tenant_id = l.tenant_id and m.merchant_id = l.merchant_id
  left join core.template t on t.tenant_id = l.tenant_id and t.template_id = l.template_id
  where l.tenant_id = p_tenant_id
    and l.distributor_id = p_distributor_id
    and l.business_date = p_business_date
    and l.number > p_after
    and l.number <= p_after + p_limit
  order by l.number;
end;
