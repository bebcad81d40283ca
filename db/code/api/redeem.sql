-- Lock and confirm in one step.
create or replace function api.redeem(p_call core.call) returns core.answer
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_decision       record;
  v_terms          core.grant_terms;
  v_redemption_id  uuid;
begin
  -- lock rows and decide
  v_decision := rules.decide_redemption(p_call);
  if (v_decision.refusal).http_status is not null then
    return v_decision.refusal;
  end if;
  v_terms := v_decision.terms;

  -- write
  v_redemption_id := rules.write_redemption(p_call, v_terms, 'REDEEMED');
  perform rules.post_redemption(
    p_call.tenant_id, v_redemption_id, v_terms.coupon_id, v_terms.distributor_id,
    v_terms.discount_minor, v_terms.currency, v_terms.granted_at);

  -- answer
  return (200, format('{"ok":true,"redemption":"%s","discount_amount":%s}',
    rules.external_id('red', v_redemption_id),
    rules.amount(v_terms.discount_minor, v_terms.decimals, p_call.amount_unit)));
end
$$;
comment on function api.redeem(core.call) is 'POST /v1/coupons/redeem';
