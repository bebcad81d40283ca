-- The same as gate.perform_calls, for programs of the version before: they give no random bytes,
-- and expect the body of a grant.
create or replace function gate.perform(
  p_tenant_id int, p_calls jsonb, p_may_wait boolean,
  out ordinal int, out http_status int, out code text, out resource text, out body text,
  out is_replay boolean)
returns setof record
language sql volatile security definer
set search_path = pg_catalog, pg_temp
begin atomic
  select p.ordinal, p.http_status, p.code, p.resource,
         coalesce(p.body, rules.render_grant(
           p.redemption_id, p.coupon_id, p.discount_amount, p.currency,
           rules.format_time(p.lock_expires_at))),
         p.is_replay
  from unnest(gate.perform_calls(
    p_tenant_id, p_calls,
    (select string_agg(substring(uuid_send(rules.make_id()) from 7), '')
     from jsonb_array_elements(p_calls)),
    p_may_wait)) p;
end;
