-- A webhook as its subscriber sees it, without a secret. status uses the words of
-- report.webhook_health. waiting and parked count to 10,000, and status looks for failures among
-- the first 10,000 waiting deliveries only, so a large backlog does not make this slow.
create or replace function rules.render_webhook(p_tenant_id int, p_party_id int) returns text
language plpgsql stable as $$
begin
  return (
    select format(
      '{"party_id":"%s","url":%s,"status":"%s","waiting":%s,"parked":%s,"attempts":%s}',
      p.external_id, to_json(w.url),
      case when w.disabled_at is not null then 'disabled'
           when w.paused_until > clock_timestamp() then 'paused'
           when d.is_failing then 'failing'
           else 'healthy' end,
      d.waiting, k.parked, rules.render_attempts(p_tenant_id, p_party_id))
    from core.webhook w
    join core.party p on p.tenant_id = w.tenant_id and p.party_id = w.party_id
    cross join lateral (
      select count(*) as waiting, coalesce(bool_or(x.attempt_count > 0), false) as is_failing
      from (
        select x.attempt_count
        from core.delivery x
        where x.tenant_id = w.tenant_id and x.party_id = w.party_id and x.parked_at is null
        order by x.is_behind, x.next_attempt_at
        limit 10000) x) d
    cross join lateral (
      select count(*) as parked
      from (
        select
        from core.delivery x
        where x.tenant_id = w.tenant_id and x.party_id = w.party_id and x.parked_at is not null
        limit 10000) x) k
    where w.tenant_id = p_tenant_id and w.party_id = p_party_id);
end
$$;
