-- The key of the advisory lock that each group of locks and redeems of a tenant shares, and that a
-- suspension takes alone.
create or replace function rules.compute_redemptions_lock(p_tenant_id int) returns bigint
language sql immutable parallel safe
return hashtextextended('redemptions', p_tenant_id);
