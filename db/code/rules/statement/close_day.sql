-- Writes the statement of a business day, which fixes its contents. Postings are numbered 1..n, so
-- the number of the last one is their count. The caller holds the sequencer's lock, so no book is
-- opened meanwhile.
create or replace function rules.close_day(
  p_tenant_id int, p_distributor_id int, p_business_date date)
returns void
language sql volatile
begin atomic
  insert into core.statement
    (tenant_id, distributor_id, business_date, entry_count, is_one_of_several, closed_at)
  select p_tenant_id, p_distributor_id, p_business_date,
         coalesce((
           select p.number
           from core.posting p
           where p.tenant_id = p_tenant_id
             and p.distributor_id = p_distributor_id
             and p.business_date = p_business_date
           order by p.number desc
           limit 1), 0),
         (select count(*) > 1 from core.ledger_book b where b.tenant_id = p_tenant_id),
         clock_timestamp();
end;
comment on function rules.close_day(int, int, date) is 'Writes the statement of a business day.';
