-- The fields of an event of a batch or of a business day, as JSON. For coupons see
-- rules.describe_event.
create or replace function rules.describe_other_event(
  p_tenant_id int, p_event_id uuid, p_event_type text, p_party_id int, p_batch_id int,
  p_business_date date, p_occurred_at timestamptz)
returns text
language plpgsql stable as $$
declare
  v_at  bigint := date_part('epoch', p_occurred_at) * 1000000;
begin
  if p_batch_id is not null then
    return json_build_array(p_event_type, p_event_id, (
      select b.external_id
      from core.batch b
      where b.tenant_id = p_tenant_id and b.batch_id = p_batch_id), v_at);
  end if;
  return json_build_array(
    p_event_type, p_event_id, to_char(p_business_date, 'YYYY-MM-DD'), (
      select d.external_id
      from core.party d
      where d.tenant_id = p_tenant_id and d.party_id = p_party_id), v_at);
end
$$;
