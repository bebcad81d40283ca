create or replace view report.batch as
select t.external_id as tenant, b.external_id as batch, b.status, b.total_count, b.minted_count,
       x.external_id as template, m.external_id as maker, d.external_id as distributor,
       b.valid_from::timestamptz, b.valid_to::timestamptz, b.key_version, b.mint_lease_until,
       b.created_at, b.completed_at, b.allocated_at, b.codes_destroyed_at
from core.batch b
join core.tenant t using (tenant_id)
join core.template x using (tenant_id, template_id)
join core.party m on m.tenant_id = b.tenant_id and m.party_id = b.maker_id
join core.party d on d.tenant_id = b.tenant_id and d.party_id = b.distributor_id;
comment on view report.batch is 'Batches and their minting progress.';
