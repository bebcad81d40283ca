-- Writes the statement of a business day, which fixes its contents. The caller holds the
-- sequencer's lock, so no book is opened meanwhile.
create or replace function rules.write_statement(
  p_tenant_id int, p_distributor_id int, p_business_date date)
returns void
language sql volatile
begin atomic
  insert into core.statement
    (tenant_id, distributor_id, business_date, entry_count, is_one_of_several, closed_at)
  select p_tenant_id, p_distributor_id, p_business_date,
         core.count_postings(p_tenant_id, p_distributor_id, p_business_date),
         (select count(*) > 1 from core.ledger_book b where b.tenant_id = p_tenant_id),
         clock_timestamp();
end;
