-- A file of a statement as JSON. If p_must_name is true, its address names the distributor.
create or replace function rules.render_file(
  p_business_date date, p_kind text, p_distributor text, p_must_name boolean,
  p_rows int, p_bytes bigint, p_sha256 text)
returns text
language sql stable
return format(
  '{"kind":"%s","href":"/v1/reconciliations/%s/%s%s","rows":%s,"bytes":%s,"sha256":"%s"}',
  p_kind, to_char(p_business_date, 'YYYY-MM-DD'), p_kind,
  case when p_must_name then '?distributor=' || p_distributor else '' end,
  p_rows, p_bytes, p_sha256);
