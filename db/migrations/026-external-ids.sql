-- Messages of triggers name rows by their external IDs, which operators see everywhere else. The
-- functions below, and those of the next four migrations, change only in their messages.

-- The same text as rules.format_id, which is replaceable code and which triggers must not call.
-- Only messages call this, so it is short, and slower.
create function core.format_id(p_prefix text, p_id uuid) returns text
language sql immutable strict parallel safe set search_path = pg_catalog, pg_temp
return (
  select p_prefix || '_' || string_agg(
    substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + substring(
      b'00' || ('x' || replace(p_id::text, '-', ''))::bit(128), 5 * i + 1, 5)::bit(5)::int, 1),
    '' order by i)
  from generate_series(0, 25) i);
comment on function core.format_id(text, uuid) is 'The external ID of a key, for messages.';

-- `security definer`, because report.invariants calls it with the rights of its reader.
create function core.name_party(p_tenant_id int, p_party_id int) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp
return coalesce(
  (select p.external_id
   from core.party p
   where p.tenant_id = p_tenant_id and p.party_id = p_party_id),
  (select t.external_id from core.tenant t where t.tenant_id = p_tenant_id and p_party_id = 0),
  format('a missing party (key %s)', p_party_id));
comment on function core.name_party(int, int) is
  'The external ID of a party, for messages; of the tenant for 0, its feed in Variant A.';

create function core.name_event(p_event_seq bigint) returns text
language sql stable set search_path = pg_catalog, pg_temp
return coalesce(
  (select core.format_id('evt', e.event_id)
   from core.event e
   where e.event_seq = p_event_seq),
  (select core.format_id('evt', l.entry_id)
   from core.ledger_entry l
   where l.event_seq = p_event_seq),
  format('a missing event (number %s)', p_event_seq));
comment on function core.name_event(bigint) is 'The external ID of an event, for messages.';

create or replace function core.check_coupon_identity() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if (new.tenant_id, new.batch_id, new.number, new.code_attempt, new.coupon_id, new.lookup_hash,
      new.created_at)
     is distinct from
     (old.tenant_id, old.batch_id, old.number, old.code_attempt, old.coupon_id, old.lookup_hash,
      old.created_at)
  then
    raise exception 'coupon %: its identity is fixed', core.format_id('cpn', old.coupon_id)
      using errcode = 'check_violation', constraint = 'coupon_identity_is_fixed';
  end if;
  return new;
end
$$;

create or replace function core.check_coupon_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if new.status <> old.status and not (case old.status
    when 'LOCKED' then new.status in ('REDEEMED', 'ISSUED', 'EXPIRED', 'VOIDED')
    when 'REDEEMED' then new.status in ('ISSUED', 'EXPIRED') and (
      select t.after_reversal
      from core.batch b
      join core.template t on t.tenant_id = b.tenant_id and t.template_id = b.template_id
      where b.tenant_id = old.tenant_id and b.batch_id = old.batch_id) = 'reissued'
    when 'EXPIRED' then new.status = 'ISSUED' and new.valid_to > clock_timestamp()
    else false
  end) then
    raise exception 'coupon %: it cannot change from % to %',
      core.format_id('cpn', old.coupon_id), old.status, new.status
      using errcode = 'check_violation', constraint = 'coupon_transition_is_legal';
  end if;
  -- The expiry job may have passed the coupon: psql frees it after its end, or the clock was ahead.
  -- Then it expires alone. A changed valid_to makes an extension by itself.
  if new.status = 'ISSUED' and new.valid_to = old.valid_to then
    insert into core.coupon_extension (tenant_id, coupon_id, valid_to)
    select old.tenant_id, old.coupon_id, old.valid_to
    from core.batch b
    where b.tenant_id = old.tenant_id
      and b.batch_id = old.batch_id
      and b.expired_through >= old.number
    on conflict (tenant_id, coupon_id) do nothing;
  end if;
  return new;
end
$$;

create or replace function core.check_extension() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'DELETE' then
    if exists (
      select
      from core.coupon c
      where c.tenant_id = old.tenant_id
        and c.coupon_id = old.coupon_id
        and (c.status = 'ISSUED' or c.valid_to > clock_timestamp()))
    then
      raise exception 'coupon % must be in core.coupon_extension until it has expired',
        core.format_id('cpn', old.coupon_id)
        using errcode = 'check_violation', constraint = 'extended_coupon_expires';
    end if;
  elsif not exists (
    select
    from core.coupon c
    where c.tenant_id = new.tenant_id
      and c.coupon_id = new.coupon_id
      and c.valid_to = new.valid_to)
  then
    raise exception 'the extension of coupon % has another valid_to than the coupon',
      core.format_id('cpn', new.coupon_id)
      using errcode = 'check_violation', constraint = 'extended_coupon_expires',
            hint = 'Update the coupon: a trigger maintains its extension.';
  end if;
  return null;
end
$$;

create or replace function core.check_redemption_terms() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if (new.tenant_id, new.redemption_id, new.coupon_id, new.merchant_id, new.caller_id,
      new.lock_request_id, new.currency, new.discount_minor, new.order_minor, new.store,
      new.terminal, new.order_id, new.started_at)
     is distinct from
     (old.tenant_id, old.redemption_id, old.coupon_id, old.merchant_id, old.caller_id,
      old.lock_request_id, old.currency, old.discount_minor, old.order_minor, old.store,
      old.terminal, old.order_id, old.started_at)
     or (old.redeemed_at is not null and new.redeemed_at is distinct from old.redeemed_at)
     or (old.ended_at is not null and new.ended_at is distinct from old.ended_at)
     or (old.status <> 'LOCKED' and new.lock_expires_at is distinct from old.lock_expires_at)
  then
    raise exception 'redemption %: its granted terms are fixed',
      core.format_id('red', old.redemption_id)
      using errcode = 'check_violation', constraint = 'redemption_terms_are_fixed';
  end if;
  return new;
end
$$;

create or replace function core.check_redemption_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if new.status <> old.status and not (case old.status
    when 'LOCKED' then new.status in ('REDEEMED', 'CANCELLED', 'LAPSED')
    when 'REDEEMED' then new.status = 'REVERSED'
    else false
  end) then
    raise exception 'redemption %: it cannot change from % to %',
      core.format_id('red', old.redemption_id), old.status, new.status
      using errcode = 'check_violation', constraint = 'redemption_transition_is_legal';
  end if;
  return new;
end
$$;

create or replace function core.check_voiding() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (
    select
    from core.coupon c
    where c.tenant_id = new.tenant_id
      and c.coupon_id = new.coupon_id
      and c.batch_id = new.batch_id
      and c.status = 'VOIDED')
  then
    raise exception 'coupon % has a voiding but is not VOIDED, or is of another batch',
      core.format_id('cpn', new.coupon_id)
      using errcode = 'check_violation', constraint = 'voiding_agrees_with_its_coupon';
  elsif new.merchant_id is not null and not exists (
    select
    from core.merchant m
    where m.tenant_id = new.tenant_id and m.merchant_id = new.merchant_id)
  then
    raise exception 'the merchant in the voiding of coupon % does not exist',
      core.format_id('cpn', new.coupon_id)
      using errcode = 'foreign_key_violation', constraint = 'voiding_is_at_a_merchant';
  end if;
  return null;
end
$$;
