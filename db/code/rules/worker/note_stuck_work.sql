-- Records that the work of one party failed because of its rows: reports show it, and other parties
-- go on. p_subject: null for the party itself.
create or replace function rules.note_stuck_work(
  p_work text, p_tenant_id int, p_party_id int, p_subject text, p_reason text)
returns void
language plpgsql volatile as $$
declare
  v_now      timestamptz := clock_timestamp();
  v_subject  text := coalesce(p_subject, (
    select p.external_id
    from core.party p
    where p.tenant_id = p_tenant_id and p.party_id = p_party_id));
begin
  insert into core.stuck_work as s
    (work, tenant_id, party_id, subject, reason, since, tried_at)
  values
    (p_work, p_tenant_id, p_party_id, v_subject, left(p_reason, 500), v_now, v_now)
  on conflict (tenant_id, party_id, work, subject) do update
  set reason = excluded.reason, tried_at = v_now,
      since = case
        when exists (
          select
          from rules.stuck_work n
          where n.tenant_id = p_tenant_id
            and n.party_id = p_party_id
            and n.work = p_work
            and n.subject = v_subject)
          then s.since
        else v_now
      end;
  delete from core.stuck_work s
  where s.work <> 'events' and s.tried_at < v_now - interval '1 day';
end
$$;
