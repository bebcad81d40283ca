create or replace function admin.remove_delegate(
  p_tenant text, p_merchant text, p_party text, p_reason text)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason  text := rules.check_reason(p_reason);
  v_pair    record := rules.find_delegate_for_patch(p_tenant, p_merchant, p_party);
begin
  delete from core.merchant_delegate d
  where d.tenant_id = v_pair.tenant_id
    and d.merchant_id = v_pair.merchant_id
    and d.party_id = v_pair.party_id;
  if not found then
    raise exception '% is not a delegate of %', p_party, p_merchant using errcode = 'CP404';
  end if;
  perform rules.write_audit(v_pair.tenant_id, 'remove_delegate', p_merchant, v_reason,
    jsonb_build_object('party', p_party));
end
$$;
comment on function admin.remove_delegate(text, text, text, text) is
  'Ends a party''s right to act for a merchant, starting with the party''s next call. Its open '
  'locks can no longer be confirmed; they expire.';
