-- Replaces the stores of a merchant, and the terminals of each store, with those of the list, or
-- only adds those of the list. Returns how many rows changed. Existing redemptions keep the names
-- they recorded.
create or replace function rules.apply_stores(
  p_tenant_id int, p_merchant_id int, p_stores jsonb, p_only_adds boolean)
returns int
language plpgsql volatile as $$
declare
  v_changed  int;
  v_rows     int;
begin
  delete from core.store s
  where not p_only_adds
    and s.tenant_id = p_tenant_id
    and s.merchant_id = p_merchant_id
    and s.external_id not in (
      select x.value ->> 'external_id' from jsonb_array_elements(p_stores) x);
  get diagnostics v_changed = row_count;
  insert into core.store (tenant_id, merchant_id, external_id)
  select p_tenant_id, p_merchant_id, x.value ->> 'external_id'
  from jsonb_array_elements(p_stores) x
  on conflict do nothing;
  get diagnostics v_rows = row_count;
  v_changed := v_changed + v_rows;

  delete from core.terminal t
  using core.store s
  where not p_only_adds
    and s.tenant_id = p_tenant_id
    and s.merchant_id = p_merchant_id
    and t.tenant_id = s.tenant_id
    and t.store_id = s.store_id
    and not exists (
      select
      from jsonb_array_elements(p_stores) x
      where x.value ->> 'external_id' = s.external_id and x.value -> 'terminals' ? t.external_id);
  get diagnostics v_rows = row_count;
  v_changed := v_changed + v_rows;
  insert into core.terminal (tenant_id, store_id, external_id)
  select s.tenant_id, s.store_id, t.value
  from jsonb_array_elements(p_stores) x
  join core.store s
    on s.tenant_id = p_tenant_id
       and s.merchant_id = p_merchant_id
       and s.external_id = x.value ->> 'external_id'
  cross join jsonb_array_elements_text(x.value -> 'terminals') t
  on conflict do nothing;
  get diagnostics v_rows = row_count;
  return v_changed + v_rows;
end
$$;
