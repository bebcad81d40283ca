-- Closed days are lines that were written with their summaries, open days are summed up from their
-- entries. tenant and distributor are in both branches, so a filter on them reaches the tables.
-- Open entries are summed up by batch before its template is looked up: not for each entry.
create or replace view report.daily as
select y.tenant, y.distributor, y.business_date, m.external_id as merchant,
       x.external_id as template, k.external_id as maker, y.currency, y.redemption_count,
       rules.format_amount(y.redemption_minor, c.decimals, 'major') as redemption_amount,
       y.reversal_count,
       rules.format_amount(y.reversal_minor, c.decimals, 'major') as reversal_amount,
       rules.format_amount(
         y.redemption_minor + y.reversal_minor, c.decimals, 'major') as net_amount,
       y.is_closed
from (
  select t.external_id as tenant, d.external_id as distributor, l.tenant_id, l.business_date,
         l.merchant_id, l.template_id, l.currency, l.redemption_count, l.redemption_minor,
         l.reversal_count, l.reversal_minor, true as is_closed
  from core.statement_line l
  left join core.tenant t on t.tenant_id = l.tenant_id
  left join core.party d on d.tenant_id = l.tenant_id and d.party_id = l.distributor_id
  union all
  select t.external_id, d.external_id, t.tenant_id, e.business_date, e.merchant_id, e.template_id,
         e.currency, e.redemption_count, e.redemption_minor, e.reversal_count, e.reversal_minor,
         coalesce(e.business_date < b.open_on, false)
  from core.tenant t
  cross join lateral (
    select g.distributor_id, g.business_date, g.merchant_id, b.template_id, g.currency,
           sum(g.redemption_count)::int as redemption_count,
           sum(g.redemption_minor)::bigint as redemption_minor,
           sum(g.reversal_count)::int as reversal_count,
           sum(g.reversal_minor)::bigint as reversal_minor
    from (
      select o.distributor_id, o.business_date, r.merchant_id, c.batch_id, o.currency,
             sum(o.redemption_count) as redemption_count,
             sum(o.redemption_minor) as redemption_minor,
             sum(o.reversal_count) as reversal_count, sum(o.reversal_minor) as reversal_minor
      from rules.list_open_entries(t.tenant_id) o
      left join lateral (
        select r.merchant_id
        from core.redemption r
        where r.redemption_id = o.redemption_id and r.tenant_id = t.tenant_id
        limit 1) r on true
      left join lateral (
        select c.batch_id
        from core.coupon c
        where c.coupon_id = o.coupon_id and c.tenant_id = t.tenant_id
        limit 1) c on true
      group by o.distributor_id, o.business_date, r.merchant_id, c.batch_id, o.currency) g
    left join core.batch b on b.tenant_id = t.tenant_id and b.batch_id = g.batch_id
    group by g.distributor_id, g.business_date, g.merchant_id, b.template_id, g.currency) e
  left join core.ledger_book b on b.tenant_id = t.tenant_id and b.party_id = e.distributor_id
  left join core.party d on d.tenant_id = t.tenant_id and d.party_id = e.distributor_id) y
left join core.currency c on c.currency = y.currency
left join core.merchant m on m.tenant_id = y.tenant_id and m.merchant_id = y.merchant_id
left join core.template x on x.tenant_id = y.tenant_id and x.template_id = y.template_id
left join core.party k on k.tenant_id = x.tenant_id and k.party_id = x.maker_id;
comment on view report.daily is
  '@primaryKey tenant,distributor,business_date,merchant,template,currency
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,distributor) references report.party (tenant,party)
@foreignKey (tenant,merchant) references report.merchant (tenant,merchant)
@foreignKey (tenant,template) references report.template (tenant,template)
@foreignKey (tenant,maker) references report.party (tenant,party)
Redemptions and reversals of each business day, open days included, by merchant, template and '
'currency; amounts in major units. Fast: everything, in proportion to days × merchants × '
'templates. Reads the entries of open days only.';
comment on column report.daily.tenant is 'External ID, ten_….';
comment on column report.daily.distributor is
  'External ID of the party that gets the statements, pty_….';
comment on column report.daily.business_date is
  'Local day in the distributor''s time zone (report.party), 23 to 25 hours long.';
comment on column report.daily.merchant is 'External ID, mch_….';
comment on column report.daily.template is 'External ID, tpl_….';
comment on column report.daily.maker is
  'External ID of the party that submits batches of the template, pty_….';
comment on column report.daily.currency is
  'ISO 4217 code. It sets the decimals of the amounts in this row.';
comment on column report.daily.redemption_count is
  'Redemptions of this merchant, template and currency on that day.';
comment on column report.daily.redemption_amount is
  'Sum of their discounts in major units. 0: none.';
comment on column report.daily.reversal_count is
  'Reversals on that day, including those of earlier redemptions.';
comment on column report.daily.reversal_amount is
  'Sum of the reversed discounts in major units, 0 or negative.';
comment on column report.daily.net_amount is
  'redemption_amount plus reversal_amount, in major units.';
comment on column report.daily.is_closed is
  'True: the row never changes, and is or will be a line of the statement. False: the day is open.';
