-- What each lock or redeem of a group names: merchant, coupon, batch, template and earlier cancel.
-- Returns one row per call. A column is null if the call names something that does not exist or
-- that its caller may not see. batch_status is SUSPENDED if the batch is, whatever its status. It
-- is in SQL, stable and without `set`, so that PostgreSQL inlines it into the calling statement. It
-- returns whole rows, because each column of each join makes a statement slower to start.
-- `offset 0` makes PostgreSQL read the amount of the order once, and not for each use.
create or replace function rules.read_redemption_cases(
  p_calls core.call[], p_ordinals int[],
  out call core.call, out merchant_id int, out coupon core.coupon, out batch_status text,
  out distributor_id int, out template core.template, out decimals int, out is_cancelled boolean,
  out order_amount numeric)
returns setof record
language sql stable
begin atomic
  select c.call, m.merchant_id, k,
         case when b.suspended_at is null then b.status else 'SUSPENDED' end,
         b.distributor_id, t, y.decimals::int,
         x.lock_request_id is not null, c.order_amount
  from (
    select u as call, u.tenant_id, u.caller_id, u.request_id, u.args,
           (u.args ->> 'order_amount')::numeric as order_amount
    from unnest(p_calls) u
    where u.ordinal = any (p_ordinals)
    offset 0) c
  left join core.merchant m
    on m.tenant_id = c.tenant_id
       and m.external_id = c.args ->> 'merchant'
       and rules.may_act_for(c.call, m.merchant_id, m.party_id)
  left join core.coupon k
    on k.tenant_id = c.tenant_id and k.lookup_hash = (c.args ->> 'coupon')::uuid
  left join core.batch b on b.tenant_id = k.tenant_id and b.batch_id = k.batch_id
  left join core.template t on t.tenant_id = b.tenant_id and t.template_id = b.template_id
  left join core.currency y on y.currency = t.currency
  left join core.lock_cancellation x
    on x.tenant_id = k.tenant_id
       and x.coupon_id = k.coupon_id
       and x.caller_id = c.caller_id
       and x.lock_request_id = c.request_id;
end;
