-- Lists of batches and of the redemptions of an order, newest first. These indexes are not made
-- online: before 0.1.0 there is no large table.
create index batch_of_maker on core.batch (maker_id, tenant_id, batch_id);
create index batch_of_distributor on core.batch (distributor_id, tenant_id, batch_id)
where status = 'ALLOCATED';
create index batch_is_not_released on core.batch (tenant_id, status, batch_id)
where status <> 'ALLOCATED';
drop index core.batch_of_template;
create index batch_of_template on core.batch (template_id, tenant_id, batch_id);

drop index core.redemption_of_merchant;
create index redemption_of_merchant on core.redemption (merchant_id, order_id, started_at);
