create index concurrently if not exists delivery_of_coupon
on core.delivery (tenant_id, party_id, coupon_id)
where parked_at is null and coupon_id is not null;
