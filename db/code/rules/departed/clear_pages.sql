-- Deletes what the sequencer and other work have written about a tenant that has left, at most
-- p_limit rows of each table, when its coupons are gone. Returns how many.
create or replace function rules.clear_pages(p_tenant_id int, p_limit int) returns int
language sql volatile
begin atomic
  with feed_page as (
    delete from core.feed_page d
    where d.ctid = any (array(
      select o.ctid from core.feed_page o where o.tenant_id = p_tenant_id limit p_limit))
    returning 1),
  merchant_page as (
    delete from core.merchant_page d
    where d.ctid = any (array(
      select o.ctid
      from core.merchant m
      join core.merchant_page o on o.merchant_id = m.merchant_id and o.tenant_id = m.tenant_id
      where m.tenant_id = p_tenant_id
      limit p_limit))
    returning 1),
  posting_page as (
    delete from core.posting_page d
    where d.ctid = any (array(
      select o.ctid from core.posting_page o where o.tenant_id = p_tenant_id limit p_limit))
    returning 1),
  delivery as (
    delete from core.delivery d
    where d.ctid = any (array(
      select o.ctid from core.delivery o where o.tenant_id = p_tenant_id limit p_limit))
    returning 1),
  delivery_attempt as (
    delete from core.delivery_attempt d
    where d.ctid = any (array(
      select o.ctid from core.delivery_attempt o where o.tenant_id = p_tenant_id limit p_limit))
    returning 1),
  test_delivery as (
    delete from core.test_delivery d
    where d.ctid = any (array(
      select o.ctid from core.test_delivery o where o.tenant_id = p_tenant_id limit p_limit))
    returning 1),
  event_gap as (
    delete from core.event_gap d
    where d.ctid = any (array(
      select o.ctid
      from core.event_gap o
      where o.tenant_id = p_tenant_id and o.party_id is not null
      limit p_limit))
    returning 1),
  event as (
    delete from core.event d
    where d.ctid = any (array(
      select o.ctid
      from core.event o
      where o.tenant_id = p_tenant_id and o.coupon_id is null
      limit p_limit))
    returning 1)
  select (
    (select count(*) from feed_page)
    + (select count(*) from merchant_page)
    + (select count(*) from posting_page)
    + (select count(*) from delivery)
    + (select count(*) from delivery_attempt)
    + (select count(*) from test_delivery)
    + (select count(*) from event_gap)
    + (select count(*) from event))::int;
end;
