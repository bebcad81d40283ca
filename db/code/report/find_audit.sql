-- The view shows some targets in another form, so no index finds them there. It is security
-- definer, because readers of reports call it and may read no table.
create or replace function report.find_audit(p_target text) returns setof report.audit
language sql stable security definer rows 10
set search_path = pg_catalog, pg_temp set enable_seqscan = off
begin atomic
  select f.*
  from core.audit a
  join report.audit f on f.audit_id = a.audit_id
  where a.target = p_target;
end;
comment on function report.find_audit(text) is
  'What was done to this target, an external ID or an access key, under that name.';
