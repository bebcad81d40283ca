-- The logins of a deployment. Run it once in the database `coupon` as its superuser, after the
-- first `coupon migrate`:  psql -d coupon -f docs/deploy/roles.sql
-- Then give each a password with \password, or let pg_hba.conf decide.
create role coupon_serve login in role coupon_api connection limit 50;
create role coupon_work  login in role coupon_worker connection limit 40;
create role coupon_desk  login in role coupon_console, coupon_portal connection limit 20;
create role coupon_dba   login in role coupon_admin, coupon_report;

-- Reporting tools: the views of schema report, and nothing else.
create role coupon_bi    login in role coupon_report connection limit 10;
alter role coupon_bi set statement_timeout = '60s';

-- Backups by pg_dump. It reads every table of the database but the job queue, whose rows row
-- security hides and which a restore leaves out: pg_dump --exclude-schema=graphile_worker.
create role coupon_backup login in role pg_read_all_data connection limit 2;

-- Monitoring, for example by postgres_exporter: statistics of the server, and no row of a table.
create role coupon_monitor login in role pg_monitor connection limit 3;

do $$
begin
  execute format(
    'grant connect on database %I to coupon_backup, coupon_monitor', current_database());
end
$$;
