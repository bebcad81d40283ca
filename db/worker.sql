-- Creates graphile-worker's empty schema, owned by coupon_worker, because `work` has no right to
-- create one. `work` fills it with its own rights; migrate must not, since it may run as a
-- superuser. The table makes the library believe that it has created the schema.
--
-- Every migrate runs this. It is safe to run again.
do $worker$
begin
  -- A restore without the schema's objects leaves it empty.
  if to_regclass('graphile_worker.migrations') is null then
    create schema if not exists graphile_worker authorization coupon_worker;
    create table graphile_worker.migrations (
      id        int          primary key,
      ts        timestamptz  not null default now(),
      breaking  boolean      not null default false);
    alter table graphile_worker.migrations owner to coupon_worker;
  end if;
end
$worker$;
