-- What happened to a coupon, with the keys of who did it and where: reversals with sign -1, what
-- costs nothing with 0. p_target: its external ID, under which administrators patched it; triggers
-- note patches by hand under keys. The caller of a lock is also that of its confirm and cancel.
create or replace function rules.list_moments(
  p_coupon_id uuid, p_target text,
  out rank int, out tenant_id int, out happened_at timestamptz, out what text, out caller_id int,
  out merchant_id int, out redemption_id uuid, out sign int, out client text, out reason text)
returns setof record
language plpgsql stable set enable_seqscan = off as $$
declare
  v_locks  uuid[] := array(
    select r.redemption_id from core.redemption r where r.coupon_id = p_coupon_id);
begin
  return query
  with patch as (
    select a.*
    from core.audit a
    where a.target = any (array[p_target, p_coupon_id::text] || v_locks::text[]))
  select 1, u.tenant_id, x.happened_at, x.what, x.caller_id, null::int, null::uuid, 0, null::text,
         null::text
  from core.coupon u
  join core.batch b on b.tenant_id = u.tenant_id and b.batch_id = u.batch_id
  cross join lateral (values
    (u.created_at, 'CREATED', b.maker_id), (b.allocated_at, 'RELEASED', null))
    x (happened_at, what, caller_id)
  where u.coupon_id = p_coupon_id
  union all
  select 2, l.tenant_id, x.happened_at, x.what, x.caller_id, l.merchant_id, l.redemption_id, 1,
         null, null
  from core.redemption l
  cross join lateral (values
    (case when l.lock_expires_at is not null then l.started_at end, 'LOCKED', l.caller_id),
    (l.redeemed_at, case when l.lock_expires_at is null then 'REDEEMED' else 'CONFIRMED' end,
     l.caller_id),
    (case when l.status in ('LOCKED', 'LAPSED') and l.lock_expires_at <= statement_timestamp()
       then l.lock_expires_at end, 'LAPSED', null),
    -- a lock that an administrator released has its patch
    (case when l.status = 'CANCELLED' and not exists (
       select
       from patch a
       where a.details ->> 'redemption' = rules.format_id('red', l.redemption_id))
     then l.ended_at end, 'CANCELLED', l.caller_id)) x (happened_at, what, caller_id)
  where l.redemption_id = any (v_locks)
  union all
  select 3, v.tenant_id, v.reversed_at, 'REVERSED', v.caller_id, null, v.redemption_id, -1, null,
         v.reason
  from core.reversal v
  where v.redemption_id = any (v_locks)
  union all
  select 4, v.tenant_id, v.voided_at, 'VOIDED',
         case when v.merchant_id is not null then v.caller_id end, v.merchant_id, null, 0, null,
         v.reason
  from core.voiding v
  where v.coupon_id = p_coupon_id
  union all
  select 5, e.tenant_id, e.occurred_at, 'EXPIRED', null, null, null, 0, null, null
  from core.event e
  where e.coupon_id = p_coupon_id and e.event_type = 'coupon.expired'
  union all
  select 6, a.tenant_id, a.recorded_at, a.action, null, null, null, 0, a.client, a.reason
  from patch a;
end
$$;
