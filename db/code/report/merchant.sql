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
comment on view report.merchant is 'Merchants with their delegates, stores and terminals.';
