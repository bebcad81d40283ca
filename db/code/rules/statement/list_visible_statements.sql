-- Returns the ready statements that the caller may list after a date, in the order of their dates:
-- at least p_limit if there are that many, and all statements of the last date. Variant B: those of
-- the calling party. Variant A: those of all distributors of the tenant, up to the last date for
-- which every statement is ready. The list is paged by date, so a date that was listed must not get
-- another statement.
create or replace function rules.list_visible_statements(
  p_call core.call, p_after date, p_limit int)
returns setof core.statement
language sql stable
begin atomic
  (select s.*
   from core.statement s
   where p_call.variant = 'B'
     and s.tenant_id = p_call.tenant_id
     and s.distributor_id = p_call.caller_id
     and s.business_date > p_after
     and s.ready_at is not null
   order by s.business_date
   limit p_limit)
  union all
  select s.*
  from core.statement s
  where p_call.variant = 'A'
    and s.tenant_id = p_call.tenant_id
    and s.business_date > p_after
    and s.business_date <= (
      select max(page.business_date)
      from (
        select x.business_date
        from core.statement x
        where x.tenant_id = p_call.tenant_id
          and x.business_date > p_after
          and x.business_date < (select rules.find_first_unlisted_date(p_call.tenant_id))
        order by x.business_date
        limit p_limit) page);
end;
