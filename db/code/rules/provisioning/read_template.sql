-- Reads a template of a document as a row. A field that cannot be read stays null;
-- rules.find_template_problems reports it.
create or replace function rules.read_template(p_tenant core.tenant, p_template jsonb)
returns core.template
language plpgsql stable as $$
declare
  v_row       core.template;
  v_discount  jsonb := p_template -> 'discount';
begin
  select c.decimals into v_row.decimals
  from core.currency c
  where c.currency = p_template ->> 'currency';
  v_row.tenant_id := p_tenant.tenant_id;
  v_row.external_id := p_template ->> 'id';
  v_row.name := p_template ->> 'name';
  v_row.maker_id := rules.find_party(p_tenant.tenant_id, p_template ->> 'maker');
  v_row.distributor_id := rules.find_party(p_tenant.tenant_id, p_template ->> 'distributor');
  v_row.currency := p_template ->> 'currency';
  v_row.discount_type := v_discount ->> 'type';
  v_row.discount_percent := (v_discount ->> 'percent')::numeric;
  v_row.discount_minor :=
    rules.parse_amount((v_discount ->> 'amount')::numeric, v_row.decimals, p_tenant.amount_unit);
  v_row.max_discount_minor := rules.parse_amount(
    (v_discount ->> 'max_amount')::numeric, v_row.decimals, p_tenant.amount_unit);
  v_row.min_order_minor := rules.parse_amount(
    (p_template ->> 'min_order_amount')::numeric, v_row.decimals, p_tenant.amount_unit);
  if p_template -> 'skus' is not null then
    v_row.skus := array(select jsonb_array_elements_text(p_template -> 'skus') order by 1);
  end if;
  v_row.is_for_all_merchants := p_template -> 'merchants' is null;
  v_row.valid_from := (p_template ->> 'valid_from')::timestamptz;
  v_row.valid_to := (p_template ->> 'valid_to')::timestamptz;
  v_row.lock_ttl_seconds := coalesce((p_template ->> 'lock_ttl_seconds')::int, 900);
  v_row.after_reversal := coalesce(p_template ->> 'after_reversal', 'consumed');
  return v_row;
end
$$;
