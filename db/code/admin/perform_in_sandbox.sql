-- p_args: as the HTTP layer makes them, so a coupon is its lookup hash.
create or replace function admin.perform_in_sandbox(
  p_tenant text, p_party text, p_operation text, p_args jsonb,
  out http_status int, out body jsonb)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off as $$
declare
  v_tenant_id  int := rules.hold_sandbox(p_tenant);
  v_call       core.call;
  v_answer     core.answer;
begin
  if p_operation not in ('create_batch', 'allocate_batch', 'lock', 'redeem', 'reverse', 'void') then
    raise exception 'no test card needs %', p_operation using errcode = 'CP400';
  end if;
  select 1, t.tenant_id, t.variant, t.amount_unit,
         case t.variant when 'A' then 0 else rules.find_party(t.tenant_id, p_party) end,
         null, null, p_operation, 'sandbox-' || gen_random_uuid(), null,
         substr(sha256(convert_to(p_args::text, 'UTF8')), 1, 8), true, p_args,
         substring(uuid_send(rules.make_id()) from 7)
    into v_call
  from core.tenant t
  where t.tenant_id = v_tenant_id;
  if v_call.caller_id is null then
    raise exception 'tenant % has no party %', p_tenant, p_party using errcode = 'CP404';
  end if;
  v_answer := (rules.run_operations(array[v_call], '{1}'))[1];
  http_status := v_answer.http_status;
  body := rules.render_body(v_answer)::jsonb;
  perform rules.write_audit(v_tenant_id, 'perform_in_sandbox', v_call.request_id, null,
    jsonb_build_object('operation', p_operation, 'party', p_party, 'http_status', http_status));
end
$$;
comment on function admin.perform_in_sandbox(text, text, text, jsonb) is
  'Performs an operation in a sandbox as one of its parties, to make test cards: create_batch, '
  'allocate_batch, lock, redeem, reverse or void. In Variant A the caller is the tenant. Returns '
  'the answer. Refuses every other tenant.';
