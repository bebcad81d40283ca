-- p_document: the provisioning file, except that each secret comes as sealed_secret and secret_hash
--   (hex). other_hashes: its hashes by other keys, by which it may have been stored. is_generated:
--   the file gave no secret, so this one is stored only if there is none yet.
-- Raises CP400, with [{path, message}] as the detail, if the document contradicts stored data.
create or replace function admin.apply(
  p_document jsonb, p_reason text default null,
  p_is_dry_run boolean default false, p_allows_removals boolean default false)
returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason  text := case when p_reason is not null then rules.check_reason(p_reason) end;
  v_answer  jsonb;
begin
  v_answer := rules.apply_document(p_document, v_reason, p_allows_removals);
  if p_is_dry_run then
    raise exception 'a dry run writes nothing' using errcode = 'CP200';
  end if;
  return v_answer;
exception
  -- The block is rolled back, but its variables keep their values.
  when sqlstate 'CP200' then
    return v_answer;
end
$$;
comment on function admin.apply(jsonb, text, boolean, boolean) is
  'Provisioning: creates and updates everything that a document declares, or nothing on an error. '
  'Removes no tenant, party, merchant, template or credential. A list in the document (delegates, '
  'stores, the merchants of a template) replaces the stored list; stores_added only adds. Refuses '
  'to remove more than ten things of a kind, unless p_allows_removals. Applying a document twice '
  'changes nothing. Each changed object gets an audit row with its fields old and new. '
  'p_is_dry_run: does the same, answers the same and undoes it.';
