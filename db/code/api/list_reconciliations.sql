-- GET /v1/reconciliations lists closed business days in ascending order. limit counts statements.
-- The cursor is a date, so a date is never split across pages, even if several distributors have a
-- statement for it (Variant A). An empty page returns the cursor that the caller sent. If there was
-- none it returns 1970-01-01, because the interface requires a date.
create or replace function api.list_reconciliations(p_call core.call) returns core.answer
language plpgsql stable as $$
declare
  v_after  date := coalesce((p_call.args ->> 'cursor')::date, '1970-01-01');
  v_limit  int := coalesce((p_call.args ->> 'limit')::int, 100);
  v_page   record;
begin
  with page as (
    select s.*, p.external_id as distributor,
           p_call.variant = 'A' and s.is_one_of_several as must_name
    from rules.list_visible_statements(p_call, v_after, v_limit) s
    join core.party p on p.tenant_id = s.tenant_id and p.party_id = s.distributor_id)
  select '[' || coalesce(string_agg(
           rules.render_statement(g.distributor, g.business_date, g.closed_at, array[
             rules.render_file(
               g.business_date, 'detail', g.distributor, g.must_name,
               g.entry_count, g.detail_bytes, g.detail_sha256),
             rules.render_file(
               g.business_date, 'summary', g.distributor, g.must_name,
               g.summary_rows, g.summary_bytes, g.summary_sha256)]),
           ',' order by g.business_date, g.distributor), '') || ']' as entries,
         max(g.business_date) as last
    into v_page
  from page g;
  return rules.succeed(format('{"reconciliations":%s,"next_cursor":"%s"}',
    v_page.entries, to_char(coalesce(v_page.last, v_after), 'YYYY-MM-DD')));
end
$$;
