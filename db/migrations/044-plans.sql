-- Plans that read what they need, whatever the planner knows of the tables.

-- Lists of batches that are not released: of a maker, and of a template. Batches are few, and an
-- entry lives until the release. Not made online: before 0.1.0 there is no large table.
create index batch_of_maker_is_not_released
on core.batch (maker_id, tenant_id, status, batch_id)
where status <> 'ALLOCATED';
create index batch_of_template_is_not_released
on core.batch (template_id, tenant_id, status, batch_id)
where status <> 'ALLOCATED';
