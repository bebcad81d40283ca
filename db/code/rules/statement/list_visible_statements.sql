-- The ready statements that the caller may list. Variant B: those of the calling party. Variant A:
-- those of all distributors of the tenant, up to the last date for which every statement is ready.
-- The list is paged by date, so a date that was listed must not get another statement.
create or replace function rules.list_visible_statements(p_call core.call)
returns setof core.statement
language sql stable
begin atomic
  select s.*
  from core.statement s
  where s.tenant_id = p_call.tenant_id
    and s.ready_at is not null
    and (s.distributor_id = p_call.caller_id
         or p_call.variant = 'A'
         and s.business_date < (
           select min(coalesce(
             (select min(x.business_date)
              from core.statement x
              where x.tenant_id = b.tenant_id
                and x.distributor_id = b.party_id
                and x.ready_at is null),
             b.open_on))
           from core.ledger_book b
           where b.tenant_id = p_call.tenant_id));
end;
comment on function rules.list_visible_statements(core.call) is
  'Statements that the caller may list.';
