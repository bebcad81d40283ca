-- One step of clearing: deletes rows of a tenant that left for another cell at least p_after ago,
-- at most p_limit coupons with all that happened to them, or p_limit rows of a few other tables.
-- Returns how many; 0 means that nothing is left. A step that is killed has no effect.
--
-- Parties, merchants, templates, credentials, webhooks and the audit stay. Recorded answers are
-- pruned by their age. Two workers take different tenants, because a step locks the tenant's row.
create or replace function jobs.clear_departed(p_after interval, p_limit int) returns int
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off as $$
declare
  v_limit      int := greatest(p_limit, 1);  -- of nothing, a step would find nothing left
  v_tenant_id  int;
  v_done       int;
begin
  select t.tenant_id into v_tenant_id
  from core.tenant t
  where t.left_at <= now() - p_after and t.cleared_at is null and core.is_departed(t.tenant_id)
  order by t.left_at, t.tenant_id
  limit 1
  for no key update skip locked;
  if not found then
    return 0;
  end if;
  -- first, because they name batches and coupons
  v_done := rules.clear_lines(v_tenant_id, v_limit);
  if v_done = 0 then
    v_done := rules.clear_coupons(v_tenant_id, v_limit);
  end if;
  if v_done = 0 then
    v_done := rules.clear_pages(v_tenant_id, v_limit);
  end if;
  if v_done = 0 then
    -- A step of the sequencer that read events before they were deleted has ended by now.
    perform pg_advisory_xact_lock(rules.compute_sequencer_lock());
    v_done := rules.clear_pages(v_tenant_id, v_limit);
  end if;
  if v_done = 0 then
    v_done := rules.clear_books(v_tenant_id, v_limit);
  end if;
  if v_done = 0 then
    update core.tenant t set cleared_at = clock_timestamp() where t.tenant_id = v_tenant_id;
    v_done := 1;
  end if;
  return v_done;
end
$$;
