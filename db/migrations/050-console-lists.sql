-- What the console lists: the closed days of all tenants, newest first, and the patches of a
-- coupon. These indexes are not made online: before 0.1.0 there is no large table.
create index statement_by_day on core.statement (business_date, tenant_id, distributor_id);
create index audit_of_target on core.audit (target);
