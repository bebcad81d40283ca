create or replace function rules.may_act_for(p_call core.call, p_merchant_id int, p_party_id int)
returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  if p_call.variant = 'A' or p_party_id = p_call.caller_id then
    return true;
  end if;
  return exists (
    select
    from core.merchant_delegate d
    where d.tenant_id = p_call.tenant_id
      and d.merchant_id = p_merchant_id
      and d.party_id = p_call.caller_id);
end
$$;
comment on function rules.may_act_for(core.call, int, int) is
  'Whether the caller may act for a merchant of its tenant.';
