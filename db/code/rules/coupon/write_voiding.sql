-- Makes a coupon VOIDED and writes the voiding and the event.
create or replace function rules.write_voiding(
  p_coupon core.coupon, p_distributor_id int, p_merchant_id int, p_caller_id int, p_reason text,
  p_voided_at timestamptz)
returns void
language plpgsql volatile as $$
begin
  insert into core.voiding
    (tenant_id, coupon_id, batch_id, merchant_id, caller_id, reason, voided_at)
  values
    (p_coupon.tenant_id, p_coupon.coupon_id, p_coupon.batch_id, p_merchant_id, p_caller_id,
     p_reason, p_voided_at);
  update core.coupon c
  set status = 'VOIDED'
  where c.tenant_id = p_coupon.tenant_id and c.coupon_id = p_coupon.coupon_id;
  perform rules.write_event(
    p_coupon.tenant_id, rules.make_id(), 'coupon.voided', p_distributor_id, null,
    p_coupon.coupon_id, p_voided_at);
end
$$;
