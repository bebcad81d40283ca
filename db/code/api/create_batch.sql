-- POST /v1/batches creates a PENDING batch, which the worker mints. It copies the validity from the
-- template, so later changes to the template do not affect this batch. Batches have unique
-- constraints on request_id and idempotency-key, so a repeated request never mints twice, even
-- after its record was pruned. The commit notifies the workers. A worker that misses the
-- notification finds the batch when it next looks for work.
create or replace function api.create_batch(p_call core.call) returns core.answer
language plpgsql volatile as $$
declare
  v_template        core.template;
  v_distributor_id  int;
  v_batch           core.batch;
begin
  -- decide: first look for a batch of this request or key, as if its record were still kept
  select b.* into v_batch
  from (
    select r.* from core.batch r
    where r.tenant_id = p_call.tenant_id
      and r.caller_id = p_call.caller_id
      and r.request_id = p_call.request_id
    -- equivalent mutant (union): if both find the same batch, one row is used
    union all
    select k.* from core.batch k
    where k.tenant_id = p_call.tenant_id
      and k.caller_id = p_call.caller_id
      and k.idempotency_key = p_call.idempotency_key) b
  order by b.body_hash = p_call.body_hash
  limit 1;
  if found then
    return case
      when v_batch.body_hash = p_call.body_hash
        then rules.render_batch(p_call.tenant_id, v_batch.batch_id)
      else rules.refuse(p_call, 'IDEMPOTENCY_KEY_REUSED')
    end;
  end if;
  select t.* into v_template
  from core.template t
  where t.tenant_id = p_call.tenant_id
    and t.external_id = p_call.args ->> 'template'
    and (p_call.variant = 'A' or t.maker_id = p_call.caller_id);
  if not found then
    return rules.refuse_not_found(p_call, 'template');
  end if;
  v_distributor_id := coalesce(v_template.distributor_id, v_template.maker_id);
  if p_call.args ->> 'distributor' is not null then
    v_distributor_id := rules.find_party(p_call.tenant_id, p_call.args ->> 'distributor');
    if v_distributor_id is null then
      return rules.refuse_not_found(p_call, 'distributor');
    end if;
  end if;
  if v_template.valid_to <= clock_timestamp() then
    return rules.refuse(p_call, 'TEMPLATE_EXPIRED');
  end if;

  -- write
  insert into core.batch
    (tenant_id, external_id, template_id, maker_id, distributor_id, total_count,
     valid_from, valid_to, key_version, salt, caller_id, request_id, idempotency_key,
     body_hash, created_at)
  values
    (p_call.tenant_id, rules.format_id('bat', rules.make_id()), v_template.template_id,
     v_template.maker_id, v_distributor_id, (p_call.args ->> 'total_count')::int,
     v_template.valid_from, v_template.valid_to, p_call.args ->> 'key_version',
     uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),
     p_call.caller_id, p_call.request_id, p_call.idempotency_key,
     p_call.body_hash, clock_timestamp())
  returning * into v_batch;
  perform pg_notify('coupon_batch', '');

  -- answer
  return rules.render_batch(p_call.tenant_id, v_batch.batch_id);
end
$$;
