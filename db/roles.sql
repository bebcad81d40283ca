-- The five roles of the service. None can log in: a login role of the deployment is made a member of
-- one of them, and each program takes its role at connect time.
--
-- Run by every migrate, before anything else, and safe to run again. Roles belong to the whole
-- cluster: two databases of one cluster share them, so a role that another migrate made in this very
-- moment is not an error.
do $roles$
declare
  v_role text;
begin
  foreach v_role in array
    array['coupon_owner', 'coupon_api', 'coupon_worker', 'coupon_report', 'coupon_admin']
  loop
    begin
      if not exists (select from pg_roles where rolname = v_role) then
        execute format('create role %I nologin', v_role);
      end if;
    exception when duplicate_object or unique_violation then
      null;  -- made by a migrate of another database of this cluster
    end;
  end loop;
end
$roles$;

-- What a program may do is what its role may do: nothing reaches it through PUBLIC.
do $grants$
begin
  -- A superuser may act as any role; a managed service's administrator has to be a member.
  if not (select rolsuper from pg_roles where rolname = current_user) then
    execute format('grant coupon_owner, coupon_worker to %I', current_user);
  end if;
  execute format('revoke all on database %I from public', current_database());
  revoke all on schema public from public;
  execute format('grant connect on database %I to coupon_owner, coupon_api, coupon_worker, coupon_report, coupon_admin', current_database());
  execute format('grant create, temporary on database %I to coupon_owner', current_database());
  execute format('revoke create on database %I from coupon_worker', current_database());
end
$grants$;
