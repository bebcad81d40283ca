-- Refused calls, newest first: of everybody, of a tenant, and of a coupon. A call that succeeds
-- writes none of them. These indexes are not made online: before 0.1.0 there is no large table.
create index refusal_by_time on core.request (recorded_at, request_id) where http_status <> 200;
create index refusal_of_tenant on core.request (tenant_id, recorded_at, request_id)
where http_status <> 200;
create index refusal_of_coupon on core.request (coupon_id, recorded_at)
where coupon_id is not null;
