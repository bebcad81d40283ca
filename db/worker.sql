-- The empty schema of the worker's queue. graphile-worker fills it when `work` starts, with the
-- rights of coupon_worker. Only the worker runs the functions in it. migrate, which may run as a
-- superuser, never does. migrate creates the schema because no program has the right to create one.
-- The table is the first one of graphile-worker, by which the library sees that the schema exists.
--
-- Every migrate runs this. It is safe to run again.
do $worker$
begin
  if to_regnamespace('graphile_worker') is null then
    create schema graphile_worker authorization coupon_worker;
    create table graphile_worker.migrations (
      id        int          primary key,
      ts        timestamptz  not null default now(),
      breaking  boolean      not null default false);
    alter table graphile_worker.migrations owner to coupon_worker;
  end if;
end
$worker$;
