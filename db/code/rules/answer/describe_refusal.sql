-- The message of an error code, for people: what is wrong, and what they can do next. The cases are
-- in order of precedence, like the error table.
create or replace function rules.describe_refusal(p_code text, p_details json) returns text
language plpgsql immutable as $$
begin
  case p_code
    when 'UNAUTHENTICATED' then return 'The request is not signed by a known credential.';
    when 'NONCE_REUSED' then return 'x-svc-nonce has been used before; sign again with a new one.';
    when 'INVALID_REQUEST' then return 'The request is not valid; see details.issues.';
    when 'IDEMPOTENCY_KEY_REUSED' then
      return 'This request_id or idempotency-key was used for a different request; use a new one.';
    when 'REQUEST_IN_PROGRESS' then return 'An equal request is still in progress; repeat it.';
    when 'NOT_A_SANDBOX' then return 'Only a sandbox closes its days early; wait for their end.';
    when 'NOT_FOUND' then
      return format('There is no such %s that you may use; check it.', p_details ->> 'resource');
    when 'AMBIGUOUS_DISTRIBUTOR' then
      return 'This tenant has several distributors; name one as distributor.';
    when 'MERCHANT_NOT_IN_SCOPE' then return 'The coupon is not for this merchant; refuse it.';
    when 'LOCK_NOT_FOUND' then
      return 'The coupon has no lock with this lock_request_id: nothing to confirm or to cancel.';
    when 'LOCK_EXPIRED' then
      return format('The lock ended at %s; lock again with a new request_id.',
        p_details ->> 'lock_expires_at');
    when 'LOCK_CANCELLED' then return 'The lock was cancelled; lock again with a new request_id.';
    when 'LOCK_CONFIRMED' then
      return format('The lock is already confirmed; to take it back, reverse %s.',
        p_details ->> 'redemption');
    when 'BATCH_SUSPENDED' then
      return 'The batch is suspended; refuse its coupons until it is resumed.';
    when 'COUPON_VOIDED' then
      return format('The coupon was voided at %s; refuse it.', p_details ->> 'voided_at');
    when 'COUPON_REDEEMED' then
      return format('The coupon was redeemed at %s; refuse it.', p_details ->> 'redeemed_at');
    when 'COUPON_EXPIRED' then
      return format('The coupon was valid until %s; refuse it.', p_details ->> 'valid_to');
    when 'COUPON_LOCKED' then
      return format('Another request holds the coupon until %s; try again then.',
        p_details ->> 'lock_expires_at');
    when 'COUPON_NOT_RELEASED' then
      return 'The maker has not released the coupon''s batch; refuse the coupon until then.';
    when 'COUPON_NOT_YET_VALID' then
      return format('The coupon is valid from %s on; refuse it until then.',
        p_details ->> 'valid_from');
    when 'TEMPLATE_EXPIRED' then
      return 'The validity of the template has ended; ask the operator to extend it.';
    when 'COUPON_NOT_VOIDABLE' then return 'Only an unused coupon can be voided; query it.';
    when 'REDEMPTION_NOT_REVERSIBLE' then
      return 'The redemption was not completed, so there is nothing to reverse.';
    when 'REDEMPTION_REVERSED' then
      return format('%s reversed the redemption at %s; nothing is left to do.',
        p_details ->> 'reversal', p_details ->> 'reversed_at');
    when 'BATCH_NOT_COMPLETED' then
      return 'The batch is still being minted; try again later with a new request_id.';
    when 'BATCH_ALREADY_ALLOCATED' then
      return 'The batch is already released; nothing is left to do.';
    when 'CODES_DESTROYED' then
      return 'The codes of the batch were destroyed; nobody can derive them again.';
    when 'NO_PUBLIC_KEY' then return 'The party has no public key; give the operator one (age1…).';
    when 'WEBHOOK_DISABLED' then return 'The webhook is disabled; ask the operator to enable it.';
    when 'CURRENCY_MISMATCH' then
      return format('The coupon is in %s; refuse it for this order.', p_details ->> 'currency');
    when 'DISCOUNT_NOT_COMPUTABLE' then
      return format('The discount needs %s; send it with a new request_id.',
        p_details ->> 'missing');
    when 'ORDER_BELOW_MINIMUM' then
      return format('The coupon is for orders from %s %s on; refuse it for a smaller one.',
        p_details ->> 'min_order_amount', p_details ->> 'currency');
    when 'NO_ELIGIBLE_ITEMS' then
      return 'The coupon is for none of the items of this order; refuse it.';
  end case;
end
$$;
