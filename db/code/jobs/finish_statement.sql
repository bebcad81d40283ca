-- Records the sizes and hashes of a closed day's files, makes the statement visible, and writes the
-- event for the distributor. Returns false if it is already ready, if an earlier day of the
-- distributor is not, or if a reset of its sandbox has deleted it. Raises an error if the files
-- differ from those recorded before, because the same postings always make the same files.
create or replace function jobs.finish_statement(
  p_tenant_id int, p_distributor_id int, p_business_date date,
  p_detail_rows int, p_detail_bytes bigint, p_detail_sha256 text,
  p_summary_rows int, p_summary_bytes bigint, p_summary_sha256 text)
returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_statement  core.statement;
  v_now        timestamptz;
begin
  select s.* into v_statement
  from core.statement s
  where s.tenant_id = p_tenant_id
    and s.distributor_id = p_distributor_id
    and s.business_date = p_business_date
  for no key update;
  if not found then
    return false;
  elsif p_detail_rows <> v_statement.entry_count
     or (p_detail_sha256, p_summary_sha256) is distinct from (
       coalesce(v_statement.detail_sha256, p_detail_sha256),
       coalesce(v_statement.summary_sha256, p_summary_sha256))
  then
    raise exception 'the files of % do not match their statement', p_business_date;
  elsif v_statement.ready_at is not null or exists (
    select
    from core.statement s
    where s.tenant_id = p_tenant_id
      and s.distributor_id = p_distributor_id
      and s.business_date < p_business_date
      and s.ready_at is null)
  then
    return false;
  end if;
  v_now := clock_timestamp();
  update core.statement s
  set ready_at = v_now, detail_bytes = p_detail_bytes, detail_sha256 = p_detail_sha256,
      summary_rows = p_summary_rows, summary_bytes = p_summary_bytes,
      summary_sha256 = p_summary_sha256
  where s.tenant_id = p_tenant_id
    and s.distributor_id = p_distributor_id
    and s.business_date = p_business_date;
  insert into core.event
    (tenant_id, event_id, event_type, party_id, business_date, occurred_at, recorded_at)
  values
    (p_tenant_id, rules.make_id(), 'reconciliation.ready', p_distributor_id, p_business_date,
     v_now, v_now);
  return true;
end
$$;
