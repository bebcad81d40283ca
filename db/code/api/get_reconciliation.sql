-- GET /v1/reconciliations/{date}/{kind} finds the file of a download. The HTTP layer streams it
-- with rules.read_statement_page, and passes an invalid date or kind as null. In Variant A, the
-- caller must name the distributor if the tenant has several, even if only one of them has closed
-- that date: an address never changes its meaning.
create or replace function api.get_reconciliation(p_call core.call) returns core.answer
language plpgsql stable as $$
declare
  v_kind         text := p_call.args ->> 'kind';
  v_date         date := (p_call.args ->> 'date')::date;
  v_distributor  text := p_call.args ->> 'distributor';
  v_found        record;
begin
  -- decide
  if v_kind is null or v_date is null then
    return rules.refuse_not_found(p_call, 'reconciliation');
  elsif p_call.variant = 'A' and v_distributor is null
    and rules.has_several_distributors(p_call.tenant_id, v_date)
  then
    return rules.refuse(p_call, 'AMBIGUOUS_DISTRIBUTOR');
  end if;
  select s.*, p.external_id as distributor into v_found
  from core.party p
  join core.statement s on s.tenant_id = p.tenant_id and s.distributor_id = p.party_id
  where p.tenant_id = p_call.tenant_id
    and s.business_date = v_date
    and s.ready_at is not null
    and (p_call.variant = 'A' or p.party_id = p_call.caller_id)
    and (v_distributor is null or p.external_id = v_distributor);
  if not found then
    return rules.refuse_not_found(p_call, 'reconciliation');
  end if;

  -- answer
  return rules.succeed(json_build_object(
    'tenant_id', v_found.tenant_id,
    'distributor_id', v_found.distributor_id,
    'distributor', v_found.distributor,
    'business_date', to_char(v_found.business_date, 'YYYY-MM-DD'),
    'kind', v_kind,
    'rows', case v_kind when 'detail' then v_found.entry_count else v_found.summary_rows end,
    'bytes', case v_kind when 'detail' then v_found.detail_bytes else v_found.summary_bytes end,
    'sha256', case v_kind when 'detail' then v_found.detail_sha256 else v_found.summary_sha256 end
  )::text);
end
$$;
