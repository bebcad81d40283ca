-- GET /v1/batches/{batch}/codes opens an export: what the HTTP layer needs to derive the codes of
-- a batch and to encrypt them to a party's public key. The audit row is in the same transaction, so
-- no salt leaves without it. A HEAD (is_head) gets no salt and is not audited.
--
-- The reader is the party whose key encrypts. Variant B: the caller. Variant A: the party that the
-- call names, else the maker or the distributor, whichever has a key. The maker may read a batch
-- that it has not released, the distributor may not; to other parties, the batch does not exist.
--
-- The codes of a suspended batch can be fetched, because it may be printed before it is resumed.
-- Those of a recalled batch cannot: its coupons are void, and nobody should print them.
create or replace function api.export_codes(p_call core.call) returns core.answer
language plpgsql volatile as $$
declare
  v_batch   core.batch := rules.find_batch(p_call.args ->> 'batch');
  v_reader  record;
begin
  -- lock rows
  select p.party_id, p.external_id, p.public_key, count(p.public_key) over () as keys into v_reader
  from core.party p
  where p.tenant_id = p_call.tenant_id
    and v_batch.tenant_id = p_call.tenant_id
    and p.party_id in (v_batch.maker_id, v_batch.distributor_id)
    and case p_call.variant
      when 'B' then p.party_id = p_call.caller_id
      else p.external_id = coalesce(p_call.args ->> 'party', p.external_id)
    end
  order by p.public_key is null, p.party_id <> v_batch.maker_id
  limit 1;
  if not found then
    return rules.refuse_not_found(p_call, 'batch');
  end if;
  if not rules.hold_batch(p_call, v_batch.batch_id) then
    return rules.hand_back();
  end if;

  -- decide
  select b.* into v_batch
  from core.batch b where b.tenant_id = p_call.tenant_id and b.batch_id = v_batch.batch_id;
  if v_reader.keys > 1 then
    return rules.refuse_field(p_call, 'party',
      'is required: both the maker and the distributor have a public key');
  elsif v_batch.recalled_at is not null then
    return rules.refuse(p_call, 'BATCH_SUSPENDED');
  elsif v_batch.status = 'COMPLETED' and v_reader.party_id <> v_batch.maker_id then
    return rules.refuse(p_call, 'COUPON_NOT_RELEASED');
  elsif v_batch.status = 'PENDING' then
    return rules.refuse(p_call, 'BATCH_NOT_COMPLETED');
  elsif v_batch.salt is null then
    return rules.refuse(p_call, 'CODES_DESTROYED');
  elsif v_reader.public_key is null then
    return rules.refuse(p_call, 'NO_PUBLIC_KEY');
  end if;

  -- write
  if not p_call.args ? 'is_head' then
    perform rules.write_audit(p_call.tenant_id, 'export_codes', v_batch.external_id, null,
      jsonb_build_object(
        'status', v_batch.status, 'total_count', v_batch.total_count,
        'party', v_reader.external_id, 'public_key', v_reader.public_key, 'access_key', (
          select c.access_key
          from core.credential c
          where c.tenant_id = p_call.tenant_id and c.credential_id = p_call.credential_id)));
  end if;

  -- answer
  return rules.succeed(json_build_object(
    'tenant_id', v_batch.tenant_id,
    'batch_id', v_batch.batch_id,
    'batch', v_batch.external_id,
    'salt', case when not p_call.args ? 'is_head' then encode(v_batch.salt, 'hex') end,
    'key_version', v_batch.key_version,
    'total_count', v_batch.total_count,
    'public_key', v_reader.public_key
  )::text);
end
$$;
