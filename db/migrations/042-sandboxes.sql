-- Sandbox tenants, in which companies rehearse. A sandbox may close a business day before it is
-- over, and it may be emptied (043-resets.sql). Nothing else differs, and no other tenant can do
-- either.

alter table core.tenant
  add column is_sandbox boolean not null default false,
  add column feed_base bigint not null default 0,
  add constraint only_a_sandbox_was_reset check (is_sandbox or feed_base = 0) not valid;
comment on column core.tenant.is_sandbox is
  'Its coupons and money are for rehearsals: its days may be closed early, and it may be reset. '
  'Fixed from the beginning.';
comment on column core.tenant.feed_base is
  'Like core.sequencer.feed_base, for this tenant: feeds and lists of merchants that begin after a '
  'reset start after this position, so a cursor from before it stays valid.';

create function core.keep_sandbox() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  raise exception 'tenant %: it stays what it is, a sandbox or not, and its positions go forward',
    old.external_id
    using errcode = 'check_violation', constraint = 'sandbox_is_fixed';
end
$$;
comment on function core.keep_sandbox() is
  'Trigger: a tenant never becomes a sandbox, and a sandbox never becomes another tenant.';

create trigger sandbox_is_fixed before update on core.tenant
for each row when (new.is_sandbox <> old.is_sandbox or new.feed_base < old.feed_base)
execute function core.keep_sandbox();

create or replace function core.check_merchant_pages() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
declare
  v_is  record;
begin
  -- waits for a step that another session takes without the advisory lock
  perform from core.sequencer s for no key update;
  select min(w.foreign_seq) as foreign_seq, min(w.stray_seq) as stray_seq,
         bool_or(w.is_apart) as is_apart
    into v_is
  from (
    select c.foreign_seq, core.find_stray_event(n.event_seqs) as stray_seq,
           n.first_position
             <> greatest(coalesce(b.next_position, 1), s.feed_base + 1, t.feed_base + 1)
           or coalesce(b.is_of_this_step, false)
           or (n.recorded_from, n.recorded_through) is distinct from
              (c.recorded_from, greatest(c.recorded_through, b.recorded_through)) as is_apart
    from new_page n
    cross join core.sequencer s
    left join core.tenant t on t.tenant_id = n.tenant_id
    cross join lateral (
      select min(x.event_seq) filter (where r.merchant_id is distinct from n.merchant_id)
               as foreign_seq,
             min(l.recorded_at) as recorded_from, max(l.recorded_at) as recorded_through
      from unnest(n.event_seqs) x (event_seq)
      left join core.ledger_entry l on l.event_seq = x.event_seq and l.tenant_id = n.tenant_id
      left join core.reversal v
        on v.tenant_id = l.tenant_id
           and v.reversal_id = case l.entry_type when 'REVERSAL' then l.entry_id end
      left join core.redemption r
        on r.tenant_id = l.tenant_id and r.redemption_id = coalesce(v.redemption_id, l.entry_id)
      ) c
    left join lateral (
      select p.first_position + cardinality(p.event_seqs) as next_position, p.recorded_through,
             core.find_stray_event(p.event_seqs) is null as is_of_this_step
      from core.merchant_page p
      where p.tenant_id = n.tenant_id
        and p.merchant_id = n.merchant_id
        and p.first_position <> n.first_position
      order by p.first_position desc
      limit 1) b on true) w;
  if v_is.foreign_seq is not null then
    raise exception 'event_seq % is not a redemption or reversal of this merchant', v_is.foreign_seq
      using errcode = 'foreign_key_violation', constraint = 'change_is_of_its_merchant';
  elsif v_is.stray_seq is not null then
    raise exception 'event_seq % is not of this step of the sequencer', v_is.stray_seq
      using errcode = 'check_violation', constraint = 'change_is_listed_once';
  elsif v_is.is_apart then
    raise exception 'a page does not begin after its list, or the merchant has a page of this step'
      using errcode = 'check_violation', constraint = 'page_continues_its_merchant';
  end if;
  return null;
end
$$;

-- A day is closed when it is over. Nothing said so yet: the worker looked at the clock.

create or replace function core.check_new_statement() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if new.business_date >= (
    select b.open_on
    from core.ledger_book b
    where b.tenant_id = new.tenant_id and b.party_id = new.distributor_id)
  then
    raise exception 'statement of % of %: the day is still open',
      core.name_party(new.tenant_id, new.distributor_id), new.business_date
      using errcode = 'check_violation', constraint = 'open_day_has_no_statement',
            hint = 'Closing a day moves its book first, in the same transaction.';
  end if;
  if new.business_date >= (
    select (clock_timestamp() at time zone p.time_zone)::date
    from core.party p
    join core.tenant t on t.tenant_id = p.tenant_id and not t.is_sandbox
    where p.tenant_id = new.tenant_id and p.party_id = new.distributor_id)
  then
    raise exception 'statement of % of %: the day is not over',
      core.name_party(new.tenant_id, new.distributor_id), new.business_date
      using errcode = 'check_violation', constraint = 'day_is_over_before_it_is_closed',
            hint = 'Only a sandbox closes its days earlier.';
  end if;
  return null;
end
$$;

comment on function core.check_new_statement() is
  'Trigger: a day gets its statement when it is over and the book has left it. One that is written '
  'earlier would stop the sequencer, which posts to the open day. A sandbox may close its open day '
  'at any time.';
