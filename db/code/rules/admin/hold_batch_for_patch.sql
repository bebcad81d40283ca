-- Locks a batch for a patch, by its external ID.
create or replace function rules.hold_batch_for_patch(p_batch text) returns core.batch
language plpgsql volatile as $$
declare
  v_batch  core.batch;
begin
  select b.* into v_batch from core.batch b where b.external_id = p_batch for no key update;
  if not found then
    raise exception 'no batch %', p_batch using errcode = 'CP404';
  end if;
  return v_batch;
end
$$;
