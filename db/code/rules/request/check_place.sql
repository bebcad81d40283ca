-- Variant B checks stores and terminals: the store must belong to the merchant and the terminal to
-- the store. Variant A records them unchecked.
create or replace function rules.check_place(p_call core.call, p_merchant_id int)
returns core.answer
language plpgsql stable as $$
declare
  v_store     text := p_call.args ->> 'store';
  v_terminal  text := p_call.args ->> 'terminal';
  v_store_id  int;
begin
  if v_store is null and v_terminal is null then
    return null;
  end if;
  if v_store is null then
    return rules.refuse_field(p_call, 'terminal', 'needs a store');
  end if;
  select s.store_id into v_store_id
  from core.store s
  -- equivalent mutant (operand): a merchant_id is unique across tenants
  where s.tenant_id = p_call.tenant_id
    and s.merchant_id = p_merchant_id
    and s.external_id = v_store;
  if not found then
    return rules.refuse_not_found(p_call, 'store');
  end if;
  if v_terminal is not null and not exists (
    select
    from core.terminal t
    where t.tenant_id = p_call.tenant_id
      and t.store_id = v_store_id
      and t.external_id = v_terminal)
  then
    return rules.refuse_not_found(p_call, 'terminal');
  end if;
  return null;
end
$$;
