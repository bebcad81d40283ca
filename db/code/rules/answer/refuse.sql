-- A refusal: the status, message and body of an error code. It is a value, because an exception
-- would roll back the record of the answer. If several errors apply, an operation returns the first
-- one of the error table.
create or replace function rules.refuse(p_call core.call, p_code text, p_details json default null)
returns core.answer
language plpgsql immutable as $$
declare
  v_status  int := case
    when p_code = 'INVALID_REQUEST' then 400
    when p_code in ('UNAUTHENTICATED', 'NONCE_REUSED') then 401
    when p_code = 'NOT_FOUND' then 404
    when p_code in ('IDEMPOTENCY_KEY_REUSED', 'AMBIGUOUS_DISTRIBUTOR', 'MERCHANT_NOT_IN_SCOPE',
                    'CURRENCY_MISMATCH', 'DISCOUNT_NOT_COMPUTABLE', 'ORDER_BELOW_MINIMUM',
                    'NO_ELIGIBLE_ITEMS') then 422
    else 409
  end;
begin
  return (v_status, p_code, p_details ->> 'resource', format(
    '{"code":"%s","message":%s,"request_id":%s,"details":%s}',
    p_code, to_json(rules.describe_refusal(p_code, p_details)), to_json(p_call.request_id),
    coalesce(p_details::text, 'null')),
    p_call.ordinal, false, null, null, null, null, null)::core.answer;
end
$$;
