-- Variant A: the first date for which a distributor of the tenant has no ready statement yet.
create or replace function rules.find_first_unlisted_date(p_tenant_id int) returns date
language sql stable
begin atomic
  select min(coalesce(
    (select min(s.business_date)
     from core.statement s
     where s.tenant_id = b.tenant_id
       and s.distributor_id = b.party_id
       and s.ready_at is null),
    b.open_on))
  from core.ledger_book b
  where b.tenant_id = p_tenant_id;
end;
