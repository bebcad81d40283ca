create or replace view report.master_key as
select m.version, m.registered_at, rules.is_key_in_use(m.version) as is_in_use
from core.master_key m;
comment on view report.master_key is '@primaryKey version
Versions of the master key. Keep a version in COUPON_MASTER_KEY while it is in use.';
comment on column report.master_key.version is 'The first character of each code.';
comment on column report.master_key.registered_at is
  'When a program with this version first used this database.';
comment on column report.master_key.is_in_use is
  'True: a secret is sealed with it, or one of its codes can still be locked or confirmed.';
