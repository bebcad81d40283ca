-- Replaces the delegates of a merchant with those of the list. Returns how many rows changed.
create or replace function rules.apply_delegates(
  p_tenant_id int, p_merchant_id int, p_delegates jsonb)
returns int
language sql volatile
begin atomic
  with wanted as (
    select p.party_id
    from core.party p
    where p.tenant_id = p_tenant_id
      and p.external_id in (select jsonb_array_elements_text(p_delegates))),
  removed as (
    delete from core.merchant_delegate d
    where d.tenant_id = p_tenant_id
      and d.merchant_id = p_merchant_id
      and d.party_id not in (select w.party_id from wanted w)
    returning 1),
  added as (
    insert into core.merchant_delegate (tenant_id, merchant_id, party_id)
    select p_tenant_id, p_merchant_id, w.party_id from wanted w
    on conflict do nothing
    returning 1)
  select (select count(*)::int from removed) + (select count(*)::int from added);
end;
