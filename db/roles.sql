-- The seven roles of the service. They cannot log in: the deployment makes its login roles members
-- of them, and each program takes its role when it connects.
--
-- Every migrate runs this first. It is safe to run again. The databases of a cluster share its
-- roles, so it is no error if another migrate creates the same role at this moment.
do $roles$
declare
  v_role text;
begin
  foreach v_role in array
    array['coupon_owner', 'coupon_api', 'coupon_worker', 'coupon_report', 'coupon_admin',
          'coupon_console', 'coupon_portal']
  loop
    begin
      if not exists (select from pg_roles where rolname = v_role) then
        execute format('create role %I nologin', v_role);
      end if;
    exception when duplicate_object or unique_violation then
      null;  -- A migrate of another database of this cluster created it.
    end;
  end loop;
end
$roles$;

-- Programs have only the rights of their role: public has none.
do $grants$
begin
  -- A superuser may act as any role. The administrator of a managed service has to be a member.
  if not (select rolsuper from pg_roles where rolname = current_user) then
    execute format('grant coupon_owner, coupon_worker to %I', current_user);
  end if;
  execute format('revoke all on database %I from public', current_database());
  revoke all on schema public from public;
  execute format(
    'grant connect on database %I '
    'to coupon_owner, coupon_api, coupon_worker, coupon_report, coupon_admin, coupon_console, '
    'coupon_portal',
    current_database());
  execute format('grant create, temporary on database %I to coupon_owner', current_database());
  execute format('revoke create on database %I from coupon_worker', current_database());
end
$grants$;
