-- Finds the file of a download. The HTTP layer streams it with gate.read_statement_page, and passes
-- an invalid date or kind as null. In Variant A, the caller must name the distributor if several
-- have a statement of that date.
create or replace function api.get_reconciliation(p_call core.call) returns core.answer
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  v_kind   text := p_call.args ->> 'kind';
  v_found  record;
begin
  select count(*) over () as distributors, s.* into v_found
  from core.statement s
  join core.party p on p.tenant_id = s.tenant_id and p.party_id = s.distributor_id
  where s.tenant_id = p_call.tenant_id
    and s.business_date = (p_call.args ->> 'date')::date
    and v_kind in ('detail', 'summary')
    and s.ready_at is not null
    and (p_call.variant = 'A' or s.distributor_id = p_call.caller_id)
    and (p_call.args ->> 'distributor' is null
         or p.external_id = p_call.args ->> 'distributor')
  limit 1;
  if not found then
    return rules.refuse_not_found(p_call, 'reconciliation');
  elsif v_found.distributors > 1 then
    return rules.refuse(p_call, 'AMBIGUOUS_DISTRIBUTOR');
  end if;
  return rules.succeed(json_build_object(
    'tenant_id', v_found.tenant_id,
    'distributor_id', v_found.distributor_id,
    'business_date', to_char(v_found.business_date, 'YYYY-MM-DD'),
    'kind', v_kind,
    'rows', case v_kind when 'detail' then v_found.entry_count else v_found.summary_rows end,
    'bytes', case v_kind when 'detail' then v_found.detail_bytes else v_found.summary_bytes end,
    'sha256', case v_kind when 'detail' then v_found.detail_sha256 else v_found.summary_sha256 end
  )::text);
end
$$;
comment on function api.get_reconciliation(core.call) is 'GET /v1/reconciliations/{date}/{kind}';
