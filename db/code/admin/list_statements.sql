create or replace function admin.list_statements(
  p_after_tenant_id int, p_after_distributor_id int, p_after_date date, p_limit int,
  out tenant_id int, out distributor_id int, out business_date date,
  out tenant text, out distributor text,
  out detail_rows int, out detail_bytes bigint, out detail_sha256 text,
  out summary_rows int, out summary_bytes bigint, out summary_sha256 text)
returns setof record
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select s.tenant_id, s.distributor_id, s.business_date, t.external_id, p.external_id,
         s.entry_count, s.detail_bytes, s.detail_sha256,
         s.summary_rows, s.summary_bytes, s.summary_sha256
  from core.statement s
  join core.tenant t on t.tenant_id = s.tenant_id
  join core.party p on p.tenant_id = s.tenant_id and p.party_id = s.distributor_id
  where s.ready_at is not null
    and (s.tenant_id, s.distributor_id, s.business_date)
        > (p_after_tenant_id, p_after_distributor_id, p_after_date)
  order by s.tenant_id, s.distributor_id, s.business_date
  limit p_limit;
end;
comment on function admin.list_statements(int, int, date, int) is
  'Ready statements after a key, with the stored row counts, sizes and hashes of their files. '
  'Read by npm run statements -- verify.';
