create or replace view report.redemption as
select t.external_id as tenant, rules.format_id('red', r.redemption_id) as redemption,
       case
         when r.status = 'LOCKED' and r.lock_expires_at <= statement_timestamp() then 'LAPSED'
         else r.status
       end as status,
       r.status as stored_status, rules.format_id('cpn', r.coupon_id) as coupon,
       m.external_id as merchant, p.external_id as caller, r.lock_request_id::text,
       rules.format_amount(r.discount_minor, c.decimals, 'major') as discount_amount,
       rules.format_amount(r.order_minor, c.decimals, 'major') as order_amount, r.currency,
       r.store::text, r.terminal::text, r.order_id::text, r.started_at::timestamptz,
       r.lock_expires_at::timestamptz, r.redeemed_at::timestamptz, r.ended_at::timestamptz,
       (select rules.format_id('rvs', v.reversal_id)
        from core.reversal v
        where v.redemption_id = r.redemption_id and v.tenant_id = r.tenant_id) as reversal,
       (select v.reason
        from core.reversal v
        where v.redemption_id = r.redemption_id and v.tenant_id = r.tenant_id) as reversal_reason,
       r.tenant_id, r.redemption_id as redemption_key, r.coupon_id as coupon_key,
       (select b.external_id
        from core.coupon u
        join core.batch b on b.tenant_id = u.tenant_id and b.batch_id = u.batch_id
        where u.coupon_id = r.coupon_id and u.tenant_id = r.tenant_id) as batch,
       (select x.external_id
        from core.coupon u
        join core.batch b on b.tenant_id = u.tenant_id and b.batch_id = u.batch_id
        join core.template x on x.tenant_id = b.tenant_id and x.template_id = b.template_id
        where u.coupon_id = r.coupon_id and u.tenant_id = r.tenant_id) as template
from core.redemption r
join core.merchant m on m.merchant_id = r.merchant_id
left join core.tenant t on t.tenant_id = r.tenant_id
left join core.currency c on c.currency = r.currency
left join core.party p on p.tenant_id = r.tenant_id and p.party_id = r.caller_id;
comment on view report.redemption is '@primaryKey tenant_id,redemption_key
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant_id,coupon_key) references report.coupon (tenant_id,coupon_key)
@foreignKey (tenant,merchant) references report.merchant (tenant,merchant)
@foreignKey (tenant,caller) references report.party (tenant,party)
Locks and redemptions with their current status; amounts in major units. Fast: order by
redemption_key, which is the order of started_at; a range of redemption_key with
report.make_key(time); a merchant; an order_id; stored_status = ''LOCKED'';
report.find_redemption(ID).';
comment on column report.redemption.tenant is 'External ID, ten_….';
comment on column report.redemption.redemption is 'External ID, red_….';
comment on column report.redemption.status is
  'The status now: LOCKED, REDEEMED, REVERSED, CANCELLED or LAPSED (the lock has expired).';
comment on column report.redemption.stored_status is
  'As last written. The end of a lock or a validity shows only after a job has run.';
comment on column report.redemption.coupon is 'External ID, cpn_…. Never the code.';
comment on column report.redemption.merchant is 'External ID, mch_….';
comment on column report.redemption.caller is
  'External ID of the calling party, pty_…. Null: Variant A, the tenant called.';
comment on column report.redemption.lock_request_id is
  'request_id of the lock or one-step redeem. confirm and cancel name it.';
comment on column report.redemption.discount_amount is
  'Granted, in major units. Never negative, even once reversed.';
comment on column report.redemption.order_amount is
  'Total of the order in major units. Null: the till sent none.';
comment on column report.redemption.currency is
  'ISO 4217 code. It sets the decimals of the amounts in this row.';
comment on column report.redemption.store is
  'As the till sent it. Variant A: free text. Variant B: a registered store. Null: not sent.';
comment on column report.redemption.terminal is
  'As the till sent it. Variant A: free text. Variant B: registered in the store. Null: not sent.';
comment on column report.redemption.order_id is
  'As the till sent it; neither checked nor unique. Null: not sent.';
comment on column report.redemption.started_at is
  'When the coupon was locked, or redeemed in one step.';
comment on column report.redemption.lock_expires_at is
  'End of the lock. Null: redeemed in one step.';
comment on column report.redemption.redeemed_at is 'Null: never redeemed.';
comment on column report.redemption.ended_at is
  'When it became REVERSED, CANCELLED or was marked LAPSED. Null: it is live.';
comment on column report.redemption.reversal is 'External ID, rvs_…. Null: not reversed.';
comment on column report.redemption.reversal_reason is
  'As the till sent it. Null: not reversed, or none sent.';
comment on column report.redemption.tenant_id is 'Internal key of the tenant.';
comment on column report.redemption.redemption_key is
  'UUID of redemption, for searches: redemption_key = report.parse_id(''red_…'').';
comment on column report.redemption.coupon_key is
  'UUID of coupon, for searches: coupon_key = report.parse_id(''cpn_…'').';
comment on column report.redemption.batch is 'External ID, bat_….';
comment on column report.redemption.template is 'External ID, tpl_….';
