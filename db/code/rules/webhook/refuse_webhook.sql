-- The refusal of a call that refers to no webhook or to more than one. p_parties is what
-- find_webhooks returned.
create or replace function rules.refuse_webhook(p_call core.call, p_parties int[])
returns core.answer
language plpgsql immutable as $$
begin
  if cardinality(p_parties) = 0 then
    return rules.refuse_not_found(p_call, 'webhook');
  end if;
  return rules.refuse_field(p_call, 'party', 'is required: the tenant has several webhooks');
end
$$;
