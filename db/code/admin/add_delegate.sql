create or replace function admin.add_delegate(
  p_tenant text, p_merchant text, p_party text, p_reason text)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason  text := rules.check_reason(p_reason);
  v_pair    record := rules.find_delegate_for_patch(p_tenant, p_merchant, p_party);
begin
  insert into core.merchant_delegate (tenant_id, merchant_id, party_id)
  values (v_pair.tenant_id, v_pair.merchant_id, v_pair.party_id)
  on conflict do nothing;
  perform rules.write_audit(v_pair.tenant_id, 'add_delegate', p_merchant, v_reason,
    jsonb_build_object('party', p_party));
end
$$;
comment on function admin.add_delegate(text, text, text, text) is
  'Lets a party act for a merchant. Adding a delegate twice is not an error.';
