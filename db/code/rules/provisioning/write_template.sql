-- Inserts the template or updates the stored one. Returns how many rows changed.
create or replace function rules.write_template(p_wanted core.template) returns int
language plpgsql volatile as $$
declare
  v_rows  int;
begin
  insert into core.template as t
    (tenant_id, external_id, name, maker_id, distributor_id,
     currency, decimals, discount_type, discount_minor, discount_percent, max_discount_minor,
     min_order_minor, skus, is_for_all_merchants, valid_from, valid_to,
     lock_ttl_seconds, after_reversal)
  values
    (p_wanted.tenant_id, p_wanted.external_id, p_wanted.name,
     p_wanted.maker_id, p_wanted.distributor_id,
     p_wanted.currency, p_wanted.decimals, p_wanted.discount_type, p_wanted.discount_minor,
     p_wanted.discount_percent, p_wanted.max_discount_minor,
     p_wanted.min_order_minor, p_wanted.skus, p_wanted.is_for_all_merchants,
     p_wanted.valid_from, p_wanted.valid_to, p_wanted.lock_ttl_seconds, p_wanted.after_reversal)
  on conflict (tenant_id, external_id) do update
  set name = excluded.name, maker_id = excluded.maker_id, distributor_id = excluded.distributor_id,
      currency = excluded.currency, decimals = excluded.decimals,
      discount_type = excluded.discount_type, discount_minor = excluded.discount_minor,
      discount_percent = excluded.discount_percent,
      max_discount_minor = excluded.max_discount_minor, min_order_minor = excluded.min_order_minor,
      skus = excluded.skus, is_for_all_merchants = excluded.is_for_all_merchants,
      valid_from = excluded.valid_from, valid_to = excluded.valid_to,
      lock_ttl_seconds = excluded.lock_ttl_seconds, after_reversal = excluded.after_reversal
  where (t.name, t.maker_id, t.distributor_id,
         t.currency, t.discount_type, t.discount_minor, t.discount_percent, t.max_discount_minor,
         t.min_order_minor, t.skus, t.is_for_all_merchants, t.valid_from, t.valid_to,
         t.lock_ttl_seconds, t.after_reversal)
        is distinct from
        (excluded.name, excluded.maker_id, excluded.distributor_id,
         excluded.currency, excluded.discount_type, excluded.discount_minor,
         excluded.discount_percent, excluded.max_discount_minor,
         excluded.min_order_minor, excluded.skus, excluded.is_for_all_merchants,
         excluded.valid_from, excluded.valid_to,
         excluded.lock_ttl_seconds, excluded.after_reversal);
  get diagnostics v_rows = row_count;
  return v_rows;
end
$$;
