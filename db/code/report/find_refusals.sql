-- It is security definer, because readers of reports call it and may read no table.
create or replace function report.find_refusals(
  p_coupon text, p_limit int,
  out recorded_at timestamptz, out operation text, out code text, out tenant text,
  out caller text, out merchant text, out store text, out request_id text)
returns setof record
language sql stable security definer rows 10
set search_path = pg_catalog, pg_temp set enable_seqscan = off
begin atomic
  select q.recorded_at, q.operation, substring(q.response from '"code":"(\w+)"'), t.external_id,
         p.external_id, m.external_id, q.store, q.request_id::text
  from core.request q
  join core.tenant t on t.tenant_id = q.tenant_id
  left join core.party p on p.tenant_id = q.tenant_id and p.party_id = q.caller_id
  left join core.merchant m on m.tenant_id = q.tenant_id and m.merchant_id = q.merchant_id
  where q.coupon_id = rules.parse_id('cpn', p_coupon)
  order by q.recorded_at desc
  limit p_limit;
end;
comment on function report.find_refusals(text, int) is
  'The refused calls about this coupon (cpn_…), newest first: who tried what, where, and why it '
  'was refused.';
