create or replace view report.merchant as
select t.external_id as tenant, m.external_id as merchant, m.name, p.external_id as party,
       array(select d.external_id
             from core.merchant_delegate x
             join core.party d on d.tenant_id = x.tenant_id and d.party_id = x.party_id
             where x.tenant_id = m.tenant_id and x.merchant_id = m.merchant_id
             order by d.external_id) as delegates,
       (select jsonb_object_agg(s.external_id, array(
          select x.external_id
          from core.terminal x
          where x.tenant_id = s.tenant_id and x.store_id = s.store_id
          order by x.external_id))
        from core.store s
        where s.tenant_id = m.tenant_id and s.merchant_id = m.merchant_id) as stores,
       m.created_at
from core.merchant m
join core.tenant t using (tenant_id)
join core.party p on p.tenant_id = m.tenant_id and p.party_id = m.party_id;
comment on view report.merchant is '@primaryKey tenant,merchant
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,party) references report.party (tenant,party)
Merchants with their delegates, stores and terminals.';
comment on column report.merchant.tenant is 'External ID, ten_….';
comment on column report.merchant.merchant is 'External ID, mch_….';
comment on column report.merchant.name is 'As provisioned; need not be unique.';
comment on column report.merchant.party is 'External ID of the party that operates it, pty_….';
comment on column report.merchant.delegates is
  'External IDs of the parties that may act for it. Empty: none.';
comment on column report.merchant.stores is
  'Store to the list of its terminals. Null: none registered.';
comment on column report.merchant.created_at is 'When apply first declared it.';
