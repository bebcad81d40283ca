-- Applies a provisioning document; admin.apply describes it. The answer names what changed and what
-- was removed. p_allows_removals: also more than ten things of a kind.
create or replace function rules.apply_document(
  p_document jsonb, p_reason text, p_allows_removals boolean)
returns jsonb
language plpgsql volatile as $$
declare
  v_item      record;
  v_step      record;
  v_problems  jsonb := '[]';
  v_tenants   jsonb := '[]';
  v_changes   jsonb := '[]';
  v_removals  jsonb := '[]';
  v_kept      jsonb := '{"credentials": [], "webhooks": []}';
  v_changed   int := 0;
begin
  for v_item in
    select t.value as tenant, format('tenants.%s', t.ordinality - 1) as path
    from jsonb_array_elements(p_document -> 'tenants') with ordinality t
    order by t.value ->> 'id'
  loop
    v_step := rules.apply_tenant(v_item.tenant, v_item.path, p_reason);
    v_problems := v_problems || v_step.problems;
    v_changed := v_changed + v_step.changed;
    v_changes := v_changes || v_step.changes;
    v_removals := v_removals || v_step.removals;
    v_kept := jsonb_build_object(
      'credentials', (v_kept -> 'credentials') || (v_step.kept -> 'credentials'),
      'webhooks', (v_kept -> 'webhooks') || (v_step.kept -> 'webhooks'));
    v_tenants := v_tenants || jsonb_build_object(
      'id', v_item.tenant -> 'id',
      'changed', v_step.changed,
      'parties', jsonb_path_query_array(v_item.tenant, '$.parties[*].id'),
      'merchants', jsonb_path_query_array(v_item.tenant, '$.merchants[*].id'),
      'templates', jsonb_path_query_array(v_item.tenant, '$.templates[*].id'),
      'credentials', jsonb_path_query_array(v_item.tenant, '$.credentials[*].access_key'));
  end loop;
  if not p_allows_removals then
    v_problems := v_problems || rules.find_excess_removals(v_removals);
  end if;
  if v_problems <> '[]' then
    raise exception 'the document contradicts stored data'
      using errcode = 'CP400', detail = v_problems::text;
  end if;
  return jsonb_build_object(
    'tenants', v_tenants, 'changed', v_changed, 'changes', v_changes, 'removals', v_removals,
    'credentials_kept_generated', v_kept -> 'credentials',
    'webhooks_kept_generated', v_kept -> 'webhooks',
    'revoked_credentials', (
      select coalesce(jsonb_agg(c.access_key order by c.access_key collate "C"), '[]')
      from jsonb_path_query(p_document, '$.tenants[*].credentials[*].access_key') k
      join core.credential c on c.access_key = k #>> '{}'
      where c.revoked_at is not null));
end
$$;
