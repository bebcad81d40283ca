-- Variant A records store and terminal as given. Variant B knows them: the store under the merchant,
-- the terminal under the store. p_store_id: null when the merchant has no such store.
create or replace function rules.check_place(p_call core.call, p_store_id int, p_is_terminal boolean)
returns core.answer
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
  v_store     text := p_call.args ->> 'store';
  v_terminal  text := p_call.args ->> 'terminal';
begin
  return case
    when p_call.variant = 'A' or (v_store is null and v_terminal is null) then null
    when v_store is null then rules.refuse_field(p_call, 'terminal', 'needs a store')
    when p_store_id is null then rules.refuse_unknown(p_call, 'store')
    when v_terminal is not null and not p_is_terminal then rules.refuse_unknown(p_call, 'terminal')
  end;
end
$$;
comment on function rules.check_place(core.call, int, boolean) is 'Variant B: store and terminal exist under the merchant.';
