create or replace function admin.reset_sandbox(
  p_tenant text, p_reason text default null, out batches int, out coupons bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off as $$
declare
  v_reason     text := case when p_reason is not null then rules.check_reason(p_reason) end;
  v_tenant_id  int := rules.hold_sandbox(p_tenant);
  v_now        timestamptz := clock_timestamp();
begin
  -- This reads the whole table, so it comes before anything is locked. What is recorded meanwhile
  -- is deleted in the end: by then no call of the tenant is in between.
  delete from core.request r where r.tenant_id = v_tenant_id;
  perform rules.hold_rows_of_sandbox(v_tenant_id);
  select count(*), coalesce(sum(b.minted_count), 0) into batches, coupons
  from core.batch b
  where b.tenant_id = v_tenant_id;
  -- opens the tables, see core.is_being_reset
  perform rules.write_audit(v_tenant_id, 'reset_sandbox', p_tenant, v_reason, jsonb_build_object(
    'transaction', pg_current_xact_id()::text, 'batches', batches, 'coupons', coupons));
  perform rules.delete_coupons_of_sandbox(v_tenant_id);
  -- The sequencer waits from here on. What it has written about the deleted rows goes too.
  perform rules.hold_books_of_sandbox(v_tenant_id);
  update core.tenant t
  set feed_base = rules.find_last_position(v_tenant_id)
  where t.tenant_id = v_tenant_id;
  perform rules.delete_books_of_sandbox(v_tenant_id);
  delete from core.request r
  where r.recorded_at > v_now - interval '1 minute' and r.tenant_id = v_tenant_id;
end
$$;
comment on function admin.reset_sandbox(text, text) is
  'Empties a sandbox: its batches, coupons, redemptions, ledger, events, feeds, statements, '
  'deliveries and recorded answers are deleted. Parties, merchants, templates, credentials, '
  'webhooks and the audit table stay. Returns what there was. Refuses every other tenant. '
  'Cursors of feeds and of redemptions stay valid; business days begin again with the calendar.';
