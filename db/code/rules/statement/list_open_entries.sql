-- The ledger entries of a tenant that no line of a closed day contains yet, each once, with the
-- business day that it is posted to, or will be: entries of open days, of closed days that are not
-- summed up yet, and entries that the sequencer has not processed. For those, this does what
-- rules.post_entries will do; in a time zone that the server no longer knows, a day begins in UTC.
-- With the lines of closed days, these are the whole ledger at every moment.
--
-- This is a function because it carries planner settings: it reads pages and entries of open days
-- and nothing else, whatever the planner knows. It is security definer, because readers of reports
-- call it and may read no table.
create or replace function rules.list_open_entries(
  p_tenant_id int,
  out distributor_id int, out business_date date, out redemption_id uuid, out coupon_id uuid,
  out currency text, out redemption_count int, out redemption_minor bigint,
  out reversal_count int, out reversal_minor bigint)
returns setof record
language sql stable security definer rows 5000 set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off
begin atomic
  with unsummed as (
    select b.party_id as distributor_id, b.open_on as from_date, 'infinity'::date as to_date
    from core.ledger_book b
    where b.tenant_id = p_tenant_id
    union all
    select s.distributor_id, s.business_date, s.business_date
    from core.statement s
    where s.tenant_id = p_tenant_id
      and s.ready_at is null
      and not exists (
        select
        from core.batch_line l
        where l.tenant_id = s.tenant_id
          and l.distributor_id = s.distributor_id
          and l.business_date = s.business_date)),
  -- The planner would rather search by tenant, and read its whole ledger: hence offset and limit.
  unposted as (
    (select l
     from core.ledger_entry l
     where l.event_seq > (select s.high_seq from core.sequencer s)
     order by l.event_seq
     offset 0)
    union all
    select l
    from core.event_gap g
    cross join lateral (
      select l from core.ledger_entry l where l.event_seq = g.event_seq limit 1) l (l)),
  entry as (
    select p.business_date, l
    from unsummed d
    join core.posting_page p
      on p.tenant_id = p_tenant_id
         and p.distributor_id = d.distributor_id
         and p.business_date >= d.from_date
         and p.business_date <= d.to_date
    join core.ledger_entry l on l.event_seq = any (p.event_seqs)
    union all
    select greatest(b.open_on, rules.compute_local_date(
             (u.l).recorded_at,
             case when rules.find_unknown_zones(array[p.time_zone]) = '{}' then p.time_zone
                  else 'UTC' end)),
           u.l
    from unposted u
    join core.party p on p.tenant_id = (u.l).tenant_id and p.party_id = (u.l).distributor_id
    left join core.ledger_book b
      on b.tenant_id = p_tenant_id and b.party_id = (u.l).distributor_id
    where (u.l).tenant_id = p_tenant_id)
  select (e.l).distributor_id, e.business_date, coalesce(v.redemption_id, (e.l).entry_id),
         (e.l).coupon_id, (e.l).currency,
         (v.reversal_id is null)::int,
         case when v.reversal_id is null then (e.l).amount_minor else 0 end,
         (v.reversal_id is not null)::int,
         case when v.reversal_id is not null then (e.l).amount_minor else 0 end
  from entry e
  left join core.reversal v
    -- a null is not looked up
    on v.tenant_id = p_tenant_id
       and v.reversal_id = case (e.l).entry_type when 'REVERSAL' then (e.l).entry_id end;
end;
