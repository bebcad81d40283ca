-- The key of the advisory lock on a request_id or idempotency-key. The caller is the seed of the
-- hash, so equal names of two callers do not collide.
create or replace function rules.compute_name_lock(p_tenant_id int, p_caller_id int, p_name text)
returns bigint
language sql immutable parallel safe
return hashtextextended(p_name, p_tenant_id::bigint << 32 | p_caller_id);
