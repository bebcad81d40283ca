-- The key of an external ID (cpn_…, red_…, rvs_…, evt_…, led_…). The views' key columns are
-- indexed.
create or replace function report.parse_id(p_external_id text) returns uuid
language sql immutable parallel safe security definer set search_path = pg_catalog, pg_temp
return rules.parse_id(split_part(p_external_id, '_', 1), p_external_id);
comment on function report.parse_id(text) is
  'The UUID key of an external ID such as cpn_…, for searches by key.';
