-- p_document: the provisioning file, except that each secret comes as sealed_secret and secret_hash
--   (hex). other_hashes: its hashes by other keys, by which it may have been stored. is_generated:
--   the file gave no secret, so this one is stored only if there is none yet.
-- Raises CP400, with [{path, message}] as the detail, if the document contradicts stored data.
create or replace function admin.apply(p_document jsonb, p_reason text default null) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason    text := case when p_reason is not null then rules.check_reason(p_reason) end;
  v_item      record;
  v_step      record;
  v_problems  jsonb := '[]';
  v_tenants   jsonb := '[]';
  v_kept      jsonb := '{"credentials": [], "webhooks": []}';
  v_changed   int := 0;
begin
  for v_item in
    select t.value as tenant, format('tenants.%s', t.ordinality - 1) as path
    from jsonb_array_elements(p_document -> 'tenants') with ordinality t
    order by t.value ->> 'id'
  loop
    v_step := rules.apply_tenant(v_item.tenant, v_item.path, v_reason);
    v_problems := v_problems || v_step.problems;
    v_changed := v_changed + v_step.changed;
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
  if v_problems <> '[]' then
    raise exception 'the document contradicts stored data'
      using errcode = 'CP400', detail = v_problems::text;
  end if;
  return jsonb_build_object(
    'tenants', v_tenants, 'changed', v_changed,
    'credentials_kept_generated', v_kept -> 'credentials',
    'webhooks_kept_generated', v_kept -> 'webhooks',
    'revoked_credentials', (
      select coalesce(jsonb_agg(c.access_key order by c.access_key collate "C"), '[]')
      from jsonb_path_query(p_document, '$.tenants[*].credentials[*].access_key') k
      join core.credential c on c.access_key = k #>> '{}'
      where c.revoked_at is not null));
end
$$;
comment on function admin.apply(jsonb, text) is
  'Provisioning: creates and updates everything that a document declares, or nothing on an error. '
  'Removes no tenant, party, merchant, template or credential. A list in the document (delegates, '
  'stores, the merchants of a template) replaces the stored list. Applying a document twice '
  'changes nothing. Each changed object gets an audit row with its fields old and new.';
