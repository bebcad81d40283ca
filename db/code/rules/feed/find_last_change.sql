-- The position of the last change of a merchant, or the position from which its list will start.
create or replace function rules.find_last_change(p_tenant_id int, p_merchant_id int)
returns bigint
language plpgsql stable as $$
begin
  return greatest(rules.find_feed_base(p_tenant_id), (
    select p.first_position + cardinality(p.event_seqs) - 1
    from core.merchant_page p
    where p.tenant_id = p_tenant_id and p.merchant_id = p_merchant_id
    order by p.first_position desc
    limit 1));
end
$$;
