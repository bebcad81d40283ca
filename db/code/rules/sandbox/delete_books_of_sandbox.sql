-- Deletes the batches of a sandbox, and what the sequencer and the workers have written about its
-- coupons: feeds, lists of merchants, business days, deliveries.
create or replace function rules.delete_books_of_sandbox(p_tenant_id int) returns void
language plpgsql volatile as $$
begin
  delete from core.feed_page p where p.tenant_id = p_tenant_id;
  delete from core.feed f where f.tenant_id = p_tenant_id;
  delete from core.merchant_page p
  using core.merchant m
  where m.tenant_id = p_tenant_id
    and p.merchant_id = m.merchant_id
    and p.tenant_id = p_tenant_id;
  delete from core.posting_page p where p.tenant_id = p_tenant_id;
  delete from core.statement_line l where l.tenant_id = p_tenant_id;
  delete from core.store_line l where l.tenant_id = p_tenant_id;
  delete from core.batch_line l where l.tenant_id = p_tenant_id;
  delete from core.statement s where s.tenant_id = p_tenant_id;
  delete from core.ledger_book b where b.tenant_id = p_tenant_id;
  delete from core.delivery d where d.tenant_id = p_tenant_id;
  delete from core.delivery_attempt a where a.tenant_id = p_tenant_id;
  delete from core.test_delivery d where d.tenant_id = p_tenant_id;
  delete from core.event_gap g where g.tenant_id = p_tenant_id;
  delete from core.stuck_work s where s.tenant_id = p_tenant_id;
  delete from core.event e where e.tenant_id = p_tenant_id and e.coupon_id is null;
  delete from core.batch b where b.tenant_id = p_tenant_id;
end
$$;
