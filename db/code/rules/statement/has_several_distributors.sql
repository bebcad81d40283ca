-- Whether several distributors share a date, so that a download must name one. A party is a
-- distributor once it has a ledger book. Closing a day fixes the answer for its date: a book that
-- is opened later begins after every closed date (rules.open_books). For other dates, the books
-- that exist now count.
create or replace function rules.has_several_distributors(p_tenant_id int, p_business_date date)
returns boolean
language sql stable
begin atomic
  select coalesce(bool_or(s.is_one_of_several), count(*) > 1)
  from core.ledger_book b
  left join core.statement s
    on s.tenant_id = b.tenant_id
   and s.distributor_id = b.party_id
   and s.business_date = p_business_date
  where b.tenant_id = p_tenant_id;
end;
