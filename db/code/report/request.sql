create or replace view report.request as
select t.external_id as tenant, p.external_id as caller, q.request_id::text,
       q.idempotency_key::text, q.first_request_id::text, q.operation, q.http_status::smallint,
       coalesce(q.response::text, rules.render_grant(
         r.redemption_id, r.coupon_id,
         rules.format_amount(r.discount_minor, y.decimals, t.amount_unit), r.currency,
         rules.format_time(q.lock_expires_at))) as response,
       q.recorded_at,
       case when q.http_status <> 200 then substring(q.response from '"code":"(\w+)"') end as code,
       m.external_id as merchant, rules.format_id('cpn', x.coupon_id) as coupon,
       coalesce(q.store, r.store)::text as store,
       coalesce(
         -- of a success, the answer names it
         substring(q.response from '"template_id":"(\w+)"'),
         (select e.external_id
          from core.template e
          where e.tenant_id = q.tenant_id and e.template_id = coalesce(q.template_id, (
            select b.template_id
            from core.coupon c
            join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
            where c.tenant_id = q.tenant_id and c.coupon_id = x.coupon_id)))) as template,
       q.tenant_id, x.coupon_id as coupon_key
from core.request q
left join core.tenant t using (tenant_id)
left join core.party p on p.tenant_id = q.tenant_id and p.party_id = q.caller_id
left join core.redemption r
  on r.tenant_id = q.tenant_id
     and r.redemption_id = coalesce(
       q.redemption_id, rules.parse_id('red', substring(q.response from '"redemption":"(\w+)"')))
left join core.currency y on y.currency = r.currency
left join core.voiding v
  on v.tenant_id = q.tenant_id
     and q.operation = 'void'
     and v.coupon_id = rules.parse_id('cpn', substring(q.response from '"coupon_id":"(\w+)"'))
left join core.merchant m
  on m.tenant_id = q.tenant_id
     and m.merchant_id = coalesce(q.merchant_id, r.merchant_id, v.merchant_id)
cross join lateral (select coalesce(q.coupon_id, r.coupon_id, v.coupon_id) as coupon_id) x;
comment on view report.request is '@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,caller) references report.party (tenant,party)
@foreignKey (tenant,merchant) references report.merchant (tenant,merchant)
@foreignKey (tenant,template) references report.template (tenant,template)
@foreignKey (tenant_id,coupon_key) references report.coupon (tenant_id,coupon_key)
Recorded answers of writes, with what they are about. Fast: a request_id; an idempotency_key;
recorded_at after a recent time.';
comment on column report.request.tenant is 'External ID, ten_….';
comment on column report.request.caller is
  'External ID of the calling party, pty_…. Null: Variant A, the tenant called.';
comment on column report.request.request_id is 'As the caller sent it; unique per caller.';
comment on column report.request.idempotency_key is
  'Header of that name; unique per caller. Null: not sent, or a retry that was found by it.';
comment on column report.request.first_request_id is
  'Of a retry that was found by its idempotency-key: the request_id of the first call.';
comment on column report.request.operation is 'As in the path, for example redeem.';
comment on column report.request.http_status is
  '200, or the status of a final refusal: 404, 409 or 422.';
comment on column report.request.response is 'The body that a retry gets, byte for byte.';
comment on column report.request.recorded_at is
  'When it was decided, also for a retry with another request_id. Deleted after '
  'REQUEST_RETENTION_DAYS.';
comment on column report.request.code is
  'Why it was refused, for example COUPON_REDEEMED. Null: it succeeded.';
comment on column report.request.merchant is
  'External ID, mch_…: the merchant that the call named, or that of its redemption. Null: it named '
  'none, or one that the tenant does not have.';
comment on column report.request.coupon is
  'External ID, cpn_…. Never the code. Null: it named none, or one that the tenant does not have.';
comment on column report.request.store is
  'As the till sent it, also if the merchant has no such store. Null: not sent.';
comment on column report.request.template is
  'External ID, tpl_…: the template of the coupon or of the batch. Null: the tenant has none.';
comment on column report.request.tenant_id is 'Internal key of the tenant.';
comment on column report.request.coupon_key is
  'UUID of coupon, for searches: coupon_key = report.parse_id(''cpn_…'').';
