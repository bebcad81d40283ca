-- It is security definer, because readers of reports call it and may read no table.
create or replace function report.find_history(
  p_coupon text,
  out happened_at timestamptz, out what text, out who text, out merchant text, out store text,
  out terminal text, out order_id text, out order_amount numeric, out discount_amount numeric,
  out currency text, out redemption text, out reason text)
returns setof record
language plpgsql stable security definer rows 10
set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
  return query
  select h.happened_at, h.what,
         coalesce(h.client, p.external_id, case h.caller_id when 0 then t.external_id end),
         m.external_id, r.store::text, r.terminal::text, r.order_id::text,
         rules.format_amount(r.order_minor, c.decimals, 'major'),
         rules.format_amount(h.sign * r.discount_minor, c.decimals, 'major'), c.currency,
         rules.format_id('red', h.redemption_id), h.reason
  from rules.list_moments(rules.parse_id('cpn', p_coupon), p_coupon) h
  join core.tenant t on t.tenant_id = h.tenant_id
  left join core.party p on p.tenant_id = h.tenant_id and p.party_id = h.caller_id
  left join core.redemption r on r.tenant_id = h.tenant_id and r.redemption_id = h.redemption_id
  left join core.merchant m
    on m.tenant_id = h.tenant_id and m.merchant_id = coalesce(h.merchant_id, r.merchant_id)
  left join core.currency c on c.currency = r.currency
  where h.happened_at is not null
  order by h.happened_at, h.rank;
end
$$;
comment on function report.find_history(text) is
  'What happened to this coupon (cpn_…), in order of time: who did it, where and for how much. '
  'Also the patches of administrators, with the name of their program and their reason.';
