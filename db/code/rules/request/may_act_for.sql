-- Whether the caller may act for a merchant of its tenant. It is in SQL, so that PostgreSQL inlines
-- it into the calling expression: most callers need no lookup.
create or replace function rules.may_act_for(p_call core.call, p_merchant_id int, p_party_id int)
returns boolean
language sql stable
return p_call.variant = 'A'
  or p_party_id = p_call.caller_id
  or rules.is_delegate(p_call.tenant_id, p_merchant_id, p_call.caller_id);
