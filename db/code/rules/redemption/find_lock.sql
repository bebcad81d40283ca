-- The caller's own lock on a coupon, by the request_id that made it. Returns the latest lock if the
-- ID was used again after its record was pruned.
create or replace function rules.find_lock(p_call core.call, p_coupon_id uuid)
returns core.redemption
language plpgsql stable as $$
declare
  v_found  core.redemption;
begin
  select r.* into v_found
  from core.redemption r
  where r.tenant_id = p_call.tenant_id
    and r.coupon_id = p_coupon_id
    and r.caller_id = p_call.caller_id
    and r.lock_request_id = p_call.args ->> 'lock_request_id'
  order by r.started_at desc
  limit 1;
  return v_found;
end
$$;
comment on function rules.find_lock(core.call, uuid) is
  'The caller''s lock that a confirm or cancel refers to.';
