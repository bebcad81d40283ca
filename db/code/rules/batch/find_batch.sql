-- The batch with an external ID. Searches all tenants; the calling function checks whose batch it
-- is.
create or replace function rules.find_batch(p_external_id text) returns core.batch
language plpgsql stable as $$
declare
  v_found  core.batch;
begin
  select b.* into v_found from core.batch b where b.external_id = p_external_id;
  return v_found;
end
$$;
