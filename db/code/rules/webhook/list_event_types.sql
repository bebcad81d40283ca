-- The types of events that a webhook takes; null: all.
create or replace function rules.list_event_types(p_tenant_id int, p_party_id int) returns text[]
language plpgsql stable as $$
begin
  return (
    select w.event_types
    from core.webhook w
    where w.tenant_id = p_tenant_id and w.party_id = p_party_id);
end
$$;
