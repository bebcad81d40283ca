-- Whether the deliveries that wait for a coupon go behind (core.delivery.is_behind); null if none
-- waits. A replay may be made beside the sequencer, so neither sees the other's delivery, and those
-- of a coupon are in both places. Then those that were never replayed decide: they are all in one
-- place, because only the sequencer makes them.
create or replace function rules.find_place_of_coupon(
  p_tenant_id int, p_party_id int, p_coupon_id uuid)
returns boolean
language plpgsql stable strict as $$
begin
  return (
    select d.is_behind
    from core.delivery d
    where d.tenant_id = p_tenant_id
      and d.party_id = p_party_id
      and d.coupon_id = p_coupon_id
      and d.parked_at is null
    order by d.counts_for is not null, d.is_behind
    limit 1);
end
$$;
