-- The schema of the worker's queue, its own and empty: graphile-worker fills it when `work` starts, with the rights of
-- coupon_worker. Nobody else runs what it holds, least of all migrate, which may be a superuser; and no program has the right to
-- create schemas. The table is the library's first, which it takes for the sign that the schema is there.
-- Run by each migrate, and safe to run again.
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
