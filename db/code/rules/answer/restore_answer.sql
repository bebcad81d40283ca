-- The answer that was recorded for a request. Reads code and resource from the response: only a
-- replay needs them, and storing them would cost every redemption. A grant is read from its
-- redemption, whose terms never change.
create or replace function rules.restore_answer(p_record core.request) returns core.answer
language plpgsql stable as $$
declare
  v_answer  core.answer;
begin
  if p_record.redemption_id is not null then
    select (rules.succeed_with_grant(
             null, r.redemption_id, r.coupon_id,
             rules.format_amount(r.discount_minor, y.decimals, t.amount_unit), r.currency,
             p_record.lock_expires_at)).*
      into v_answer
    from core.redemption r
    join core.currency y on y.currency = r.currency
    join core.tenant t on t.tenant_id = r.tenant_id
    where r.tenant_id = p_record.tenant_id and r.redemption_id = p_record.redemption_id;
  else
    v_answer := rules.succeed(p_record.response);
    v_answer.http_status := p_record.http_status;
  end if;
  if v_answer.http_status <> 200 then
    v_answer.code := p_record.response::json ->> 'code';
    v_answer.resource := p_record.response::json #>> '{details,resource}';
  end if;
  v_answer.is_replay := true;
  return v_answer;
end
$$;
