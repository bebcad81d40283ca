create or replace view report.audit as
select a.audit_id, a.recorded_at, a.login, a.client, t.external_id as tenant,
       a.action,
       -- written by triggers, which call no function of this folder
       case a.action
         when 'move_lock_end' then rules.format_id('red', a.target::uuid)
         when 'move_validity' then rules.format_id('cpn', a.target::uuid)
         else a.target
       end as target,
       a.reason, a.details
from core.audit a
left join core.tenant t using (tenant_id);
comment on view report.audit is '@primaryKey audit_id
@foreignKey (tenant) references report.tenant (tenant)
Administrative actions (patches, provisioning, exports): who, when and why. Fast: order by
audit_id.';
comment on column report.audit.audit_id is 'In order of writing, with gaps.';
comment on column report.audit.recorded_at is 'By the clock of the database.';
comment on column report.audit.login is 'The login role, not the role that it acted as.';
comment on column report.audit.client is 'The application_name of the connection.';
comment on column report.audit.tenant is
  'External ID, ten_…. Null: the action concerns the whole database.';
comment on column report.audit.action is
  'The patch or the step of a program, for example void_coupon or apply. move_lock_end, '
  'move_validity: psql moved the end of a lock, or the validity of a used coupon.';
comment on column report.audit.target is 'What was changed: an external ID or an access key.';
comment on column report.audit.reason is
  'As the administrator gave it. Null: the action asks for none.';
comment on column report.audit.details is
  'Values before and after; keys depend on the action. Of apply: the changed fields, each old and '
  'new; of a secret only "replaced", of a URL only its host. Never a code or a secret.';
