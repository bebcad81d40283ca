-- The rights in a router: coupon_api may call what it may call in a cell. The addresses of cells
-- are visible in pg_foreign_server, their passwords only to the owner of a mapping.
revoke all on schema public from public;
revoke all on all functions in schema router, remote, gate, rules from public;
grant usage on foreign data wrapper cells, postgres_fdw to coupon_owner;
grant usage on schema gate, rules to coupon_api;
grant execute on all functions in schema gate, rules to coupon_api;

-- Commands look up where the cells are, and connect to them with their own login.
grant usage on schema router to coupon_admin;
grant execute on function router.list_connections() to coupon_admin;

-- What coupon_api calls acts as the owner. Functions in PL/Proxy stay those of the superuser who
-- made them, and run as their caller.
do $$
declare
  v_routine  text;
begin
  for v_routine in
    select p.oid::regprocedure::text
    from pg_proc p
    where p.pronamespace in ('router'::regnamespace, 'gate'::regnamespace, 'rules'::regnamespace)
      and p.proowner <> 'coupon_owner'::regrole
  loop
    execute format('alter routine %s owner to coupon_owner', v_routine);
  end loop;
end
$$;
grant usage on schema remote to coupon_owner;
grant execute on all functions in schema remote to coupon_owner;
