-- A refusal: the status, message and body of an error code. It is a value, because an exception
-- would roll back the record of the answer. The cases are in order of precedence, like the error
-- table: if several errors apply, an operation returns the first.
create or replace function rules.refuse(p_call core.call, p_code text, p_details json default null)
returns core.answer
language plpgsql immutable as $$
declare
  v_status   int;
  v_message  text;
begin
  case p_code
    when 'UNAUTHENTICATED' then v_status := 401;
      v_message := 'The request is not signed by a known credential.';
    when 'NONCE_REUSED' then v_status := 401;
      v_message := 'x-svc-nonce has been used before; sign again with a new one.';
    when 'INVALID_REQUEST' then v_status := 400;
      v_message := 'The request is not valid; see details.issues.';
    when 'IDEMPOTENCY_KEY_REUSED' then v_status := 422;
      v_message := 'This request_id or idempotency-key was used for a different request.';
    when 'REQUEST_IN_PROGRESS' then v_status := 409;
      v_message := 'An equal request is still in progress; retry.';
    when 'NOT_FOUND' then v_status := 404;
      v_message := 'There is no such ' || (p_details ->> 'resource') || '.';
    when 'AMBIGUOUS_DISTRIBUTOR' then v_status := 422;
      v_message := 'This tenant has several distributors; name one with ?distributor=.';
    when 'MERCHANT_NOT_IN_SCOPE' then v_status := 422;
      v_message := 'The coupon is not for this merchant.';
    when 'LOCK_NOT_FOUND' then v_status := 409;
      v_message := 'The coupon has no lock with this lock_request_id.';
    when 'LOCK_EXPIRED' then v_status := 409; v_message := 'The lock has expired.';
    when 'LOCK_CANCELLED' then v_status := 409; v_message := 'The lock was cancelled.';
    when 'LOCK_CONFIRMED' then v_status := 409; v_message := 'The lock is already confirmed.';
    when 'BATCH_SUSPENDED' then v_status := 409;
      v_message := 'The coupon''s batch is suspended.';
    when 'COUPON_VOIDED' then v_status := 409; v_message := 'The coupon is voided.';
    when 'COUPON_REDEEMED' then v_status := 409; v_message := 'The coupon is already redeemed.';
    when 'COUPON_EXPIRED' then v_status := 409; v_message := 'The coupon has expired.';
    when 'COUPON_LOCKED' then v_status := 409;
      v_message := 'The coupon is locked by another request.';
    when 'COUPON_NOT_RELEASED' then v_status := 409;
      v_message := 'The coupon''s batch is not released yet.';
    when 'COUPON_NOT_YET_VALID' then v_status := 409; v_message := 'The coupon is not valid yet.';
    when 'TEMPLATE_EXPIRED' then v_status := 409;
      v_message := 'The validity of the template has ended.';
    when 'COUPON_NOT_VOIDABLE' then v_status := 409;
      v_message := 'A coupon in this state cannot be voided.';
    when 'REDEMPTION_NOT_REVERSIBLE' then v_status := 409;
      v_message := 'Only a completed redemption can be reversed.';
    when 'REDEMPTION_REVERSED' then v_status := 409;
      v_message := 'The redemption is already reversed.';
    when 'BATCH_NOT_COMPLETED' then v_status := 409;
      v_message := 'The batch is still being minted.';
    when 'BATCH_ALREADY_ALLOCATED' then v_status := 409;
      v_message := 'The batch is already allocated.';
    when 'WEBHOOK_DISABLED' then v_status := 409;
      v_message := 'The webhook is disabled; ask the operator to enable it.';
    when 'CURRENCY_MISMATCH' then v_status := 422;
      v_message := 'The coupon has a different currency.';
    when 'DISCOUNT_NOT_COMPUTABLE' then v_status := 422;
      v_message := 'The discount cannot be computed without ' || (p_details ->> 'missing') || '.';
    when 'ORDER_BELOW_MINIMUM' then v_status := 422;
      v_message := 'The order is below the coupon''s minimum.';
    when 'NO_ELIGIBLE_ITEMS' then v_status := 422;
      v_message := 'The coupon applies to no item of the order.';
  end case;
  return (v_status, p_code, p_details ->> 'resource', format(
    '{"code":"%s","message":%s,"request_id":%s,"details":%s}',
    p_code, to_json(v_message), to_json(p_call.request_id), coalesce(p_details::text, 'null')));
end
$$;
