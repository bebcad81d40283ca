-- Writes an event in the transaction that causes it. The sequence number is drawn here, while the
-- coupon's row is locked, so the events of a coupon are in order.
create or replace function rules.write_event(
  p_tenant_id int, p_event_id uuid, p_event_type text, p_party_id int, p_batch_id int,
  p_coupon_id uuid, p_occurred_at timestamptz)
returns void
language plpgsql volatile as $$
begin
  insert into core.event
    (tenant_id, event_id, event_type, party_id, batch_id, coupon_id, occurred_at, recorded_at)
  values
    (p_tenant_id, p_event_id, p_event_type, p_party_id, p_batch_id, p_coupon_id,
     p_occurred_at, clock_timestamp());
end
$$;
