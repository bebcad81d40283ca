-- Whether work failed within the last minute. Such work is left out for that minute, so it cannot
-- keep other work from its turn.
create or replace function rules.is_resting(
  p_work text, p_tenant_id int, p_party_id int, p_subject text)
returns boolean
language sql stable
begin atomic
  select exists (
    select
    from core.stuck_work s
    where s.tenant_id = p_tenant_id
      and s.party_id = p_party_id
      and s.work = p_work
      and s.subject = p_subject
      and s.tried_at > now() - interval '1 minute');
end;
