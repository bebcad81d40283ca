// Writes what reports read: a tenant of Variant B with 50 templates, 100 merchants and 60 days of redemptions. Rows are
// written as the service writes them, with triggers and foreign keys off. Each time is spread evenly over the days. A
// page of a list has 30 entries. Yesterday is not closed, as shortly after midnight.
import { apply } from "../../../src/commands/apply.ts";
import { connect, openSession } from "../../../src/database/connect.ts";
import type { Address } from "../../../src/config/database-address.ts";
import { parseMasterKeys } from "../../../src/crypto/keys.ts";
import { stopAutovacuum } from "../../support/count-reads.ts";
import { merchant, party, template } from "../../support/tenants.ts";
import { fillSettings, insertUsed } from "./fill.ts";

const count = (length: number, make: (number: number) => object) => Array.from({ length }, (_, index) => make(index));
const distributors = ["pty_north", "pty_south", "pty_east", "pty_west"];
const tenants = [
  {
    id: "ten_big",
    name: "Big",
    variant: "B",
    parties: ["pty_maker", "pty_shop", ...distributors].map((id) => party(id, { time_zone: "Europe/Berlin" })),
    merchants: count(100, (number) => merchant(`mch_${number}`, "pty_shop")),
    templates: count(50, (number) =>
      template(`tpl_${number}`, "pty_maker", { distributor: distributors[number % 4]! }),
    ),
  },
  {
    id: "ten_small",
    name: "Small",
    variant: "A",
    parties: [party("pty_maker")],
    merchants: [merchant("mch_0", "pty_maker")],
    templates: [template("tpl_0", "pty_maker")],
  },
];

// The size of the largest batch, as a share of all coupons.
const largest = 0.51;

/** A fifth of the coupons are redeemed. Small tables are analyzed, as the worker does when they have rows. */
export async function fillReports(address: Address, coupons: number): Promise<void> {
  const admin = connect(address, { name: "coupon report data", role: "coupon_admin", max: 1 });
  await apply(admin, parseMasterKeys(Buffer.alloc(32, 1).toString("base64")), { tenants });
  await admin.end();
  const session = openSession(address, { name: "coupon report data" });
  try {
    await stopAutovacuum(session);
    await session.run(fillSettings);
    await session.run(fillCoupons(coupons));
    await session.run(fillRedemptions(Math.ceil(coupons / 5)));
    await session.run(fillLedger);
    await session.run(fillCalls);
    await session.run(fillDays);
    await session.run(fillLists);
    await session.run("analyze core.tenant, core.party, core.merchant, core.template, core.batch, core.currency");
  } finally {
    await session.end();
  }
}

// The functions are temporary. A UUIDv7 of a given time sorts by that time, as the service's own IDs do.
const fillCoupons = (coupons: number): string => `
  create function pg_temp.id_at(p_at timestamptz) returns uuid language sql volatile as $$
    select encode(overlay(uuid_send(gen_random_uuid()) placing substring(
      int8send((extract(epoch from p_at) * 1000)::bigint) from 3) from 1 for 6), 'hex')::uuid $$;
  create temporary table big as
    select tenant_id, now() - interval '60 days' as since,
           (select party_id from core.party p where p.external_id = 'pty_shop') as shop_id
    from core.tenant t where t.external_id = 'ten_big';
  insert into core.master_key (version, fingerprint) values ('1', decode(repeat('00', 16), 'hex'))
  on conflict do nothing;
  insert into core.batch
    (tenant_id, external_id, template_id, maker_id, distributor_id, status, total_count, minted_count, valid_from,
     valid_to, key_version, salt, caller_id, request_id, body_hash, created_at, completed_at, allocated_at)
  select x.tenant_id, replace(x.external_id, 'tpl_', 'bat_'), x.template_id, x.maker_id, x.distributor_id, 'ALLOCATED',
         n.total, n.total, x.valid_from, x.valid_to, '1', '\\x00', x.maker_id, x.external_id, '\\x00',
         b.since, b.since, b.since
  from big b
  join core.template x using (tenant_id)
  cross join lateral (
    select (${coupons} * case x.external_id when 'tpl_0' then ${largest} else ${(1 - largest) / 49} end)::int
  ) n (total);
  insert into core.coupon
    (tenant_id, batch_id, number, coupon_id, lookup_hash, valid_from, valid_to, created_at)
  select b.tenant_id, b.batch_id, n.number, pg_temp.id_at(b.created_at), gen_random_uuid(), b.valid_from, b.valid_to,
         b.created_at
  from core.batch b
  cross join lateral generate_series(1, b.total_count) n (number);`;

// Of 100 redemptions 5 are reversed, 2 are cancelled and 1 is lapsed. The newest 20 are live locks. One coupon in
// twenty is voided.
const fillRedemptions = (redemptions: number): string => `
  create temporary table used as
    select n.i, c.coupon_id, b.distributor_id, g.tenant_id, g.shop_id as caller_id, m.merchant_id,
           'req-' || n.i as request_id, t.at, pg_temp.id_at(t.at) as redemption_id,
           case when n.i > ${redemptions} - 20 then 'LOCKED'
                when n.i % 100 < 5 then 'REVERSED'
                when n.i % 100 < 7 then 'CANCELLED'
                when n.i % 100 = 7 then 'LAPSED'
                else 'REDEEMED' end as status
    from big g
    cross join generate_series(1, ${redemptions}) n (i)
    cross join lateral (select g.since + n.i * interval '60 days' / ${redemptions}) t (at)
    join (
      select c.tenant_id, c.coupon_id, c.batch_id, row_number() over (order by hashint8(c.number), c.coupon_id) as i
      from core.coupon c) c on c.tenant_id = g.tenant_id and c.i = n.i
    join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
    join (
      select m.tenant_id, m.merchant_id, row_number() over (order by m.merchant_id) - 1 as i
      from core.merchant m) m on m.tenant_id = g.tenant_id and m.i = (n.i + n.i / 100) % 100;
  ${insertUsed}
  insert into core.reversal (tenant_id, reversal_id, redemption_id, caller_id, reason, reversed_at)
  select r.tenant_id, pg_temp.id_at(r.ended_at), r.redemption_id, r.caller_id, 'returned', r.ended_at
  from core.redemption r
  where r.status = 'REVERSED';
  update core.coupon c set status = 'VOIDED' where c.status = 'ISSUED' and c.number % 20 = 1;
  insert into core.voiding (tenant_id, coupon_id, batch_id, merchant_id, caller_id, reason, voided_at)
  select c.tenant_id, c.coupon_id, c.batch_id, null, 0, 'lost', now() - interval '30 days'
  from core.coupon c
  where c.status = 'VOIDED';`;

const fillLedger = `
  create temporary table moved as
    select r.tenant_id, r.redemption_id as id, r.coupon_id, u.distributor_id, 'REDEMPTION' as type,
           r.redeemed_at as at
    from core.redemption r
    join used u using (tenant_id, coupon_id)
    where r.redeemed_at is not null
    union all
    select v.tenant_id, v.reversal_id, u.coupon_id, u.distributor_id, 'REVERSAL', v.reversed_at
    from core.reversal v
    join core.redemption r using (tenant_id, redemption_id)
    join used u on u.tenant_id = r.tenant_id and u.coupon_id = r.coupon_id;
  insert into core.event (tenant_id, event_id, event_type, party_id, coupon_id, occurred_at, recorded_at)
  select v.tenant_id, pg_temp.id_at(v.voided_at), 'coupon.voided', b.distributor_id, v.coupon_id, v.voided_at,
         v.voided_at
  from core.voiding v
  join core.coupon c using (tenant_id, coupon_id)
  join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
  order by v.voided_at;
  insert into core.ledger_entry
    (tenant_id, entry_id, entry_type, distributor_id, coupon_id, amount_minor, currency, occurred_at, recorded_at)
  select m.tenant_id, m.id, m.type, m.distributor_id, m.coupon_id, case m.type when 'REVERSAL' then -500 else 500 end,
         'EUR', m.at, m.at
  from moved m
  order by m.at;
  update core.sequencer set high_seq = (select max(l.event_seq) from core.ledger_entry l);`;

// One redeem in fifty is tried again and refused. The events of the last 30 days are delivered, and one in fifty fails
// at first.
const fillCalls = `
  insert into core.request
    (tenant_id, caller_id, request_id, operation, body_hash, http_status, response, recorded_at, merchant_id,
     coupon_id)
  select u.tenant_id, u.caller_id, 'again-' || u.i, 'redeem', '\\x0000000000000000', 409,
         '{"code":"COUPON_REDEEMED","message":"","request_id":"","details":null}', u.at + interval '1 minute',
         u.merchant_id, u.coupon_id
  from used u
  where u.i % 50 = 0
  order by u.i;
  insert into core.delivery_attempt
    (tenant_id, party_id, event_id, attempt, http_status, duration_ms, attempted_at)
  select l.tenant_id, l.distributor_id, l.entry_id, n.attempt, case when n.attempt = n.last then 200 else 500 end,
         20 + l.event_seq % 100, l.recorded_at + n.attempt * interval '1 second'
  from core.ledger_entry l
  cross join lateral (select case when l.event_seq % 50 = 0 then 2 else 1 end as last) x
  cross join lateral (select attempt, x.last from generate_series(1, x.last) attempt) n
  where l.recorded_at > now() - interval '30 days'
  order by l.event_seq;`;

const fillDays = `
  insert into core.posting_page (tenant_id, distributor_id, business_date, first_number, event_seqs)
  select d.tenant_id, d.distributor_id, d.date, min(d.number), array_agg(d.event_seq order by d.event_seq)
  from (
    select l.tenant_id, l.distributor_id, l.date, l.event_seq,
           row_number() over (partition by l.tenant_id, l.distributor_id, l.date order by l.event_seq) as number
    from (
      select e.*, (e.occurred_at at time zone 'Europe/Berlin')::date as date from core.ledger_entry e) l) d
  group by d.tenant_id, d.distributor_id, d.date, (d.number - 1) / 30;
  insert into core.ledger_book (tenant_id, party_id, open_on)
  select distinct p.tenant_id, p.distributor_id, (now() at time zone 'Europe/Berlin')::date - 1 from rules.posting p;
  insert into core.statement
    (tenant_id, distributor_id, business_date, entry_count, is_one_of_several, closed_at, ready_at, detail_bytes,
     detail_sha256, summary_rows, summary_bytes, summary_sha256)
  select p.tenant_id, p.distributor_id, p.business_date, count(*), true, p.business_date + 1, p.business_date + 1,
         1, '', 1, 1, ''
  from rules.posting p
  where p.business_date < (now() at time zone 'Europe/Berlin')::date - 1
  group by p.tenant_id, p.distributor_id, p.business_date;
  create temporary table line as
    -- Else a plan without statistics reads the pages again for each entry of the tenant.
    with posted as materialized (select * from rules.posting)
    select s.tenant_id, s.distributor_id, s.business_date, r.merchant_id, b.template_id, r.store::text, b.batch_id,
           count(*) filter (where l.entry_type = 'REDEMPTION') as redemption_count,
           coalesce(sum(l.amount_minor) filter (where l.entry_type = 'REDEMPTION'), 0) as redemption_minor,
           count(*) filter (where l.entry_type = 'REVERSAL') as reversal_count,
           coalesce(sum(l.amount_minor) filter (where l.entry_type = 'REVERSAL'), 0) as reversal_minor
    from core.statement s
    join posted p using (tenant_id, distributor_id, business_date)
    join core.ledger_entry l using (tenant_id, entry_id)
    join moved m on m.id = l.entry_id
    join core.coupon c on c.tenant_id = m.tenant_id and c.coupon_id = m.coupon_id
    join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
    left join core.reversal v on v.reversal_id = l.entry_id
    join core.redemption r on r.redemption_id = coalesce(v.redemption_id, l.entry_id)
    group by s.tenant_id, s.distributor_id, s.business_date, r.merchant_id, b.template_id, r.store, b.batch_id;
  insert into core.statement_line
    (tenant_id, distributor_id, business_date, number, merchant_id, template_id, currency, redemption_count,
     redemption_minor, reversal_count, reversal_minor)
  select tenant_id, distributor_id, business_date,
         row_number() over (partition by tenant_id, distributor_id, business_date), merchant_id, template_id, 'EUR',
         sum(redemption_count), sum(redemption_minor), sum(reversal_count), sum(reversal_minor)
  from line
  group by tenant_id, distributor_id, business_date, merchant_id, template_id;
  insert into core.store_line
    (tenant_id, distributor_id, business_date, number, merchant_id, store, currency, redemption_count,
     redemption_minor, reversal_count, reversal_minor)
  select tenant_id, distributor_id, business_date,
         row_number() over (partition by tenant_id, distributor_id, business_date), merchant_id, store, 'EUR',
         sum(redemption_count), sum(redemption_minor), sum(reversal_count), sum(reversal_minor)
  from line
  group by tenant_id, distributor_id, business_date, merchant_id, store;
  insert into core.batch_line
    (tenant_id, distributor_id, business_date, batch_id, redemption_count, redemption_minor, reversal_count,
     reversal_minor)
  select tenant_id, distributor_id, business_date, batch_id,
         sum(redemption_count), sum(redemption_minor), sum(reversal_count), sum(reversal_minor)
  from line
  group by tenant_id, distributor_id, business_date, batch_id;`;

// The feeds of the distributors, without what was voided, and the lists of the merchants.
const fillLists = `
  create temporary table listed as
    select l.tenant_id, l.distributor_id, r.merchant_id, l.event_seq, l.recorded_at,
           row_number() over (partition by l.tenant_id, l.distributor_id order by l.event_seq) as in_feed,
           row_number() over (partition by l.tenant_id, r.merchant_id order by l.event_seq) as of_merchant
    from core.ledger_entry l
    left join core.reversal v on v.reversal_id = l.entry_id
    join core.redemption r on r.redemption_id = coalesce(v.redemption_id, l.entry_id);
  insert into core.feed_page (tenant_id, party_id, first_position, sequenced_at, event_seqs)
  select tenant_id, distributor_id, min(in_feed), max(recorded_at), array_agg(event_seq order by event_seq)
  from listed
  group by tenant_id, distributor_id, (in_feed - 1) / 30;
  insert into core.feed (tenant_id, party_id, last_position)
  select tenant_id, distributor_id, max(in_feed) from listed group by tenant_id, distributor_id;
  insert into core.merchant_page
    (tenant_id, merchant_id, first_position, recorded_from, recorded_through, event_seqs)
  select tenant_id, merchant_id, min(of_merchant), min(recorded_at), max(recorded_at),
         array_agg(event_seq order by event_seq)
  from listed
  group by tenant_id, merchant_id, (of_merchant - 1) / 30;`;
