-- Locks a coupon for a redemption that a confirm completes, and says what it is worth.
create or replace function api.lock(p_call core.call) returns core.answer
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_decision  record;
  v_terms     core.grant_terms;
begin
  -- lock rows and decide
  v_decision := rules.decide_redemption(p_call);
  if (v_decision.refusal).http_status is not null then
    return v_decision.refusal;
  end if;
  v_terms := v_decision.terms;

  -- write, answer
  return (200, format('{"ok":true,"redemption":"%s","discount_amount":%s,"lock_expires_at":"%s"}',
    rules.external_id('red', rules.write_redemption(p_call, v_terms, 'LOCKED')),
    rules.amount(v_terms.discount_minor, v_terms.decimals, p_call.amount_unit),
    rules.iso_time(v_terms.lock_expires_at)));
end
$$;
comment on function api.lock(core.call) is 'POST /v1/coupons/lock';
