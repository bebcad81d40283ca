-- What a refused call names, for reports: also what the caller may not use, if its tenant has it. A
-- confirm, cancel or reverse names a redemption, which has the merchant and the store.
create or replace function rules.find_subject(p_call core.call) returns core.subject
language plpgsql stable as $$
declare
  v_subject     core.subject;
  v_redemption  core.redemption;
begin
  select c.coupon_id into v_subject.coupon_id
  from core.coupon c
  where c.tenant_id = p_call.tenant_id and c.lookup_hash = (p_call.args ->> 'coupon')::uuid;
  if p_call.operation = 'reverse' then
    select r.* into v_redemption
    from core.redemption r
    where r.tenant_id = p_call.tenant_id
      and r.redemption_id = rules.parse_id('red', p_call.args ->> 'redemption');
    v_subject.coupon_id := v_redemption.coupon_id;
  elsif p_call.operation in ('confirm', 'cancel') then
    v_redemption := rules.find_lock(p_call, v_subject.coupon_id);
  end if;
  select m.merchant_id into v_subject.merchant_id
  from core.merchant m
  where m.tenant_id = p_call.tenant_id and m.external_id = p_call.args ->> 'merchant';
  v_subject.merchant_id := coalesce(v_subject.merchant_id, v_redemption.merchant_id);
  v_subject.store := coalesce(p_call.args ->> 'store', v_redemption.store);
  select t.template_id into v_subject.template_id
  from core.template t
  where t.tenant_id = p_call.tenant_id and t.external_id = p_call.args ->> 'template';
  if p_call.args ->> 'batch' is not null then
    select b.template_id into v_subject.template_id
    from core.batch b
    where b.tenant_id = p_call.tenant_id and b.external_id = p_call.args ->> 'batch';
  end if;
  return v_subject;
end
$$;
