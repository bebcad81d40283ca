-- The invariants that report.invariants unites, and what breaks each. Each is a view of its name.
create or replace view rules.known_invariant as
select distinct replace(v.relname, '_', ' ') as invariant,
       obj_description(v.oid, 'pg_class') as description
from pg_depend d
join pg_rewrite r on r.oid = d.objid and r.ev_class = 'report.invariants'::regclass
join pg_class v
  on v.oid = d.refobjid and v.relkind = 'v' and v.relnamespace = 'rules'::regnamespace
where d.classid = 'pg_rewrite'::regclass and d.refclassid = 'pg_class'::regclass;
