-- Returns the webhooks that a call may refer to, at most two. Variant B: the caller's own. Variant
-- A: the webhook of the party that the call names, or any webhook of the tenant if it names none.
create or replace function rules.find_webhooks(p_call core.call) returns int[]
language plpgsql stable as $$
begin
  return array(
    select w.party_id
    from core.webhook w
    join core.party p on p.tenant_id = w.tenant_id and p.party_id = w.party_id
    where w.tenant_id = p_call.tenant_id
      and case p_call.variant
        when 'B' then w.party_id = p_call.caller_id
        else p.external_id = coalesce(p_call.args ->> 'party', p.external_id)
      end
    -- equivalent mutant (literal): the callers ask whether there is exactly one
    limit 2);
end
$$;
