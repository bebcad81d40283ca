// Corruptions that report.invariants must find, by the invariant that is violated.
import { insertCopy, together } from "./attempts/statements.ts";

// The first row of a table that matches.
const one = (table: string, where: string) =>
  `ctid = (select ctid from core.${table} where ${where} order by 1 limit 1)`;
const change = (table: string, set: string, where = "true") =>
  `update core.${table} set ${set} where ${one(table, where)}`;
const remove = (table: string, where = "true") => `delete from core.${table} where ${one(table, where)}`;

const coupon = (status: string, where: string) => change("coupon", `status = '${status}'`, where);
const redemption = (set: string, where = "true") => change("redemption", set, where);
const changeEvent = (type: string, set: string) => change("event", set, `event_type = '${type}'`);
const removeEvent = (type: string) => remove("event", `event_type = '${type}'`);
const copyEvent = (type: string, changes: Record<string, string> = {}) =>
  insertCopy("event", `event_type = '${type}'`, { event_id: "gen_random_uuid()", event_seq: "999999", ...changes });
const entry = (type: string, set: string) => change("ledger_entry", set, `entry_type = '${type}'`);
const fixedTemplate = (set: string) => change("template", set, "external_id = 'tpl_fixed'");
const line = (set: string, where = "true") => change("statement_line", set, where);
const book = (set: string) => change("ledger_book", set, "tenant_id <> party_id");

const recalled = "suspended_at = now(), recalled_at = now(), recall_caller_id = 0, recalled_through = minted_count";
const batchesOf = (status: string) => `select c.batch_id from core.coupon c where c.status = '${status}'`;
const isUnreleased = "batch_id = (select b.batch_id from core.batch b where b.status = 'COMPLETED')";
const isReversed = "coupon_id in (select r.coupon_id from core.redemption r where r.status = 'REVERSED')";
const isConsumed = `${isReversed} and coupon_id in (
  select c.coupon_id from core.coupon c join core.batch b using (tenant_id, batch_id)
  join core.template t using (tenant_id, template_id) where t.after_reversal = 'consumed')`;
const isOfLarge = "batch_id in (select b.batch_id from core.batch b where b.total_count > 2)";
const ofOtherTenant = (table: string) => `(select x.${table}_id from core.${table} x where x.tenant_id = 2 limit 1)`;
const ofDay = "(s.tenant_id, s.distributor_id, s.business_date) = (p.tenant_id, p.distributor_id, p.business_date)";
const ofItsFeed = "(p.tenant_id, p.party_id) = (f.tenant_id, f.party_id)";

// The constraints of core.event_list hold here too.
const dropLastPositions = `
  update core.feed set last_position = last_position - 1;
  delete from core.feed_page p using core.feed f where ${ofItsFeed} and p.first_position > f.last_position;
  update core.feed_page p set event_seqs = trim_array(p.event_seqs, 1) from core.feed f
  where ${ofItsFeed} and p.first_position + cardinality(p.event_seqs) - 1 > f.last_position`;

const moveFirstEventOfACouponToTheEnd = `
  create temp table moved on commit drop as
    select f.tenant_id, f.party_id, min(f.event_seq) as event_seq
    from rules.feed_event f join rules.event e using (event_seq)
    group by f.tenant_id, f.party_id, e.coupon_id having count(*) > 1 limit 1;
  update core.feed_page p set event_seqs = array_remove(p.event_seqs, m.event_seq) from moved m
  where m.event_seq = any (p.event_seqs);
  insert into core.feed_page
  select f.tenant_id, f.party_id, f.last_position + 1, now(), array[m.event_seq]
  from core.feed f join moved m using (tenant_id, party_id)`;

const aMerchantPage = "first_position = 1";

type Corruptions = Record<string, string[]>;

const ofCoupons: Corruptions = {
  "coupon status matches redemptions": [
    coupon("REDEEMED", "status = 'ISSUED'"),
    coupon("ISSUED", "status = 'REDEEMED'"),
    coupon("LOCKED", "status = 'REDEEMED'"),
    coupon("REDEEMED", "status = 'LOCKED'"),
    coupon("REDEEMED", `status = 'ISSUED' and ${isReversed}`),
    together(
      coupon("REDEEMED", "status = 'LOCKED'"),
      redemption("status = 'CANCELLED', ended_at = now()", "status = 'LOCKED'"),
    ),
    remove("redemption", "status = 'LOCKED'"),
  ],
  "consumed coupon stays redeemed": [
    coupon("ISSUED", isConsumed),
    together(coupon("ISSUED", isConsumed), change("coupon", "valid_to = now(), status = 'EXPIRED'", isConsumed)),
    insertCopy("redemption", `status = 'REVERSED' and ${isConsumed}`, {
      redemption_id: "gen_random_uuid()",
      status: "'REDEEMED'",
      ended_at: "null",
    }),
  ],
  "coupon has one live redemption": [
    together(
      "drop index core.coupon_has_one_live_redemption",
      insertCopy("redemption", "status = 'REDEEMED'", { redemption_id: "gen_random_uuid()" }),
    ),
  ],
  "redemption has coupon and merchant": [
    redemption(`merchant_id = ${ofOtherTenant("merchant")}`, "tenant_id = 1"),
    redemption("merchant_id = 0", "status = 'LOCKED'"),
    redemption(`coupon_id = ${ofOtherTenant("coupon")}`, "tenant_id = 1"),
    redemption("coupon_id = gen_random_uuid()", "status = 'LOCKED'"),
  ],
  "voided coupon has voiding": [
    remove("voiding"),
    coupon("ISSUED", "status = 'VOIDED'"),
    change("voiding", "batch_id = batch_id + 1"),
  ],
  "recalled coupon is not usable": [
    change("batch", `${recalled}, recall_finished_at = '2098-01-01'`, "status = 'ALLOCATED'"),
    change("batch", `${recalled}, recall_finished_at = '2200-01-01'`, `batch_id in (${batchesOf("LOCKED")})`),
  ],
  "expired or voided coupon has its event": [removeEvent("coupon.expired"), removeEvent("coupon.voided")],
  "issued coupon will expire": [
    together(
      change("batch", "expired_through = total_count", "status = 'ALLOCATED'"),
      coupon("ISSUED", "status = 'EXPIRED'"),
      remove("coupon_extension"),
    ),
  ],
  "voided event has voided coupon": [
    changeEvent("coupon.voided", "occurred_at = occurred_at - interval '1 second'"),
    change("voiding", "voided_at = voided_at - interval '1 second'"),
    copyEvent("coupon.voided", {
      coupon_id: "(select c.coupon_id from core.coupon c where c.tenant_id = 1 and c.status = 'ISSUED' limit 1)",
    }),
  ],
  "batch has the coupons it counts": [
    remove("coupon", "number = 1"),
    remove("coupon", `number = 2 and ${isOfLarge}`),
    change("coupon", "number = 77", "number = 1"),
    change("coupon", "number = 0", `number = 1 and ${isOfLarge}`),
    change("batch", "minted_count = 1", "status = 'PENDING'"),
  ],
  "batch has its events": [removeEvent("batch.generated"), copyEvent("allocation.completed")],
  "used coupon is released": [
    change(
      "batch",
      "status = 'COMPLETED', allocated_at = null",
      "batch_id = (select c.batch_id from core.coupon c where c.status = 'REDEEMED' limit 1)",
    ),
    coupon("LOCKED", isUnreleased),
    coupon("REDEEMED", isUnreleased),
    coupon("EXPIRED", isUnreleased),
  ],
};

const percentOfOrder = fixedTemplate("discount_type = 'percent', discount_percent = 10, discount_minor = null");

const ofTheLedger: Corruptions = {
  "redemption has its ledger entries": [
    entry("REDEMPTION", "amount_minor = amount_minor - 1"),
    change("ledger_entry", "currency = 'CHF'"),
    entry("REVERSAL", "currency = 'CHF'"),
    entry("REVERSAL", "currency = 'USD'"),
    remove("ledger_entry", "entry_type = 'REDEMPTION'"),
    remove("ledger_entry", "entry_type = 'REVERSAL'"),
    insertCopy("ledger_entry", "entry_type = 'REDEMPTION'", {
      event_seq: "999999",
      entry_id: "(select r.redemption_id from core.redemption r where r.status = 'LOCKED')",
    }),
    change(
      "reversal",
      "redemption_id = (select r.redemption_id from core.redemption r where r.status = 'REDEEMED' limit 1)",
    ),
  ],
  "ledger entry has its redemption": [
    remove("redemption", "status = 'REDEEMED'"),
    entry("REDEMPTION", "entry_type = 'REVERSAL', amount_minor = -amount_minor"),
    remove("reversal"),
    change(
      "ledger_entry",
      `coupon_id = (select o.coupon_id from core.coupon c join core.coupon o using (tenant_id, batch_id)
                    where c.coupon_id = ledger_entry.coupon_id and o.coupon_id <> c.coupon_id limit 1)`,
      `tenant_id = 1 and exists (
         select from core.coupon c where c.coupon_id = ledger_entry.coupon_id and c.number = 2)`,
    ),
    entry("REDEMPTION", "occurred_at = occurred_at + interval '1 second'"),
    entry(
      "REVERSAL",
      "occurred_at = (select r.redeemed_at from core.redemption r where r.status = 'REVERSED' limit 1)",
    ),
  ],
  "reversal has reversed redemption": [
    remove("redemption", "status = 'REVERSED'"),
    redemption("status = 'REDEEMED', ended_at = null", "status = 'REVERSED'"),
    redemption("ended_at = ended_at + interval '1 second'", "status = 'REVERSED'"),
  ],
  "redemption follows its template": [
    redemption("currency = 'CHF'"),
    redemption("discount_minor = discount_minor + 1"),
    redemption("discount_minor = discount_minor - 1"),
    fixedTemplate("discount_minor = 1"),
    fixedTemplate("min_order_minor = 1"),
    together(redemption("order_minor = 10000", "status = 'LOCKED'"), fixedTemplate("min_order_minor = 10001")),
    together("update core.redemption set order_minor = 10000", percentOfOrder),
    percentOfOrder,
  ],
  "recorded redemption exists": [
    change("request", String.raw`redemption_id = null, response = '{"redemption":"\u0000"}'`, "operation = 'redeem'"),
    change("request", "redemption_id = gen_random_uuid()", "operation = 'lock'"),
    change("request", "operation = 'confirm'", "operation = 'redeem' and http_status = 200"),
    change("request", "operation = 'confirm'", "operation = 'lock'"),
    change("request", "operation = 'reverse'", "operation = 'redeem'"),
    remove("redemption", "lock_expires_at is not null"),
    redemption("lock_request_id = 'test-other'"),
    redemption("caller_id = caller_id + 1"),
  ],
};

const ofFeeds: Corruptions = {
  "event is for the right party": [
    changeEvent("batch.generated", "party_id = party_id + 1000"),
    changeEvent("coupon.voided", "party_id = party_id + 1000"),
    changeEvent("reconciliation.ready", "party_id = 999999"),
    change("ledger_entry", "distributor_id = distributor_id + 1000"),
    change(
      "ledger_entry",
      `distributor_id = (select b.maker_id from core.coupon c join core.batch b using (tenant_id, batch_id)
                         where c.coupon_id = ledger_entry.coupon_id)`,
      "tenant_id = 2",
    ),
    changeEvent("coupon.expired", "coupon_id = gen_random_uuid()"),
  ],
  "event is in one table": [
    change("event", "event_seq = (select min(event_seq) from core.ledger_entry)"),
    change("event", "event_id = (select entry_id from core.ledger_entry where tenant_id = 1 limit 1)", "tenant_id = 1"),
  ],
  "merchant lists its changes": [
    remove("merchant_page"),
    change("merchant_page", `merchant_id = ${ofOtherTenant("merchant")}`, "tenant_id = 1"),
    change("merchant_page", "event_seqs = event_seqs || 999999::bigint"),
  ],
  "merchant pages follow each other": [
    change("merchant_page", "first_position = 2", aMerchantPage),
    change("merchant_page", "recorded_through = '2999-01-01'", aMerchantPage),
  ],
  "feed positions are 1 to n": [
    change("feed_page", "event_seqs = array_remove(event_seqs, event_seqs[2])"),
    change("feed", "last_position = last_position + 1"),
    change("feed", "skipped_count = 1, last_position = last_position - 1"),
  ],
  "event has one position": [
    `insert into core.feed_page
      select p.tenant_id, p.party_id, f.last_position + 1, now(), p.event_seqs
      from core.feed_page p join core.feed f using (tenant_id, party_id) where p.first_position = 1`,
  ],
  "feed keeps the order of each coupon": [moveFirstEventOfACouponToTheEnd],
  "sequenced event is in its feed": [
    dropLastPositions,
    together("delete from core.feed_page where party_id = 0", "delete from core.feed where party_id = 0"),
    `update core.ledger_entry set distributor_id = distributor_id + 1
      where distributor_id in (select party_id from core.feed)`,
  ],
  "feed counts its events": [
    copyEvent("coupon.expired", { event_seq: "0" }),
    together("delete from core.feed_page where first_position = 1", dropLastPositions),
    insertCopy("feed", "true", { party_id: "999999", last_position: "1" }),
  ],
  "delivery is of an event": [
    together("delete from core.event", "delete from core.ledger_entry"),
    change("delivery", "event_seq = event_seq + 1"),
    change("delivery", "coupon_id = gen_random_uuid()"),
    together(
      "update core.event set party_id = party_id + 1",
      "update core.ledger_entry set distributor_id = distributor_id + 1",
    ),
  ],
  "delivery is parked after 10 attempts": [change("delivery", "attempt_count = 10")],
  "deliveries of a coupon wait together": [
    // A redemption and its reversal.
    change("delivery", "is_behind = true", "event_id in (select reversal_id from core.reversal)"),
  ],
};

const ofStatements: Corruptions = {
  "sequenced ledger entry is posted": [
    change("posting_page", "event_seqs = trim_array(event_seqs, 1)"),
    // As if the sequence of numbers had been set back.
    insertCopy("ledger_entry", "true", { entry_id: "gen_random_uuid()", event_seq: "0" }),
  ],
  "posting keeps the times of its entries": [
    entry("REDEMPTION", "recorded_at = recorded_at + interval '1 microsecond'"),
    entry("REVERSAL", "recorded_at = recorded_at - interval '1 day'"),
    change("posting_page", "event_seqs = trim_array(event_seqs, 1)", "cardinality(event_seqs) > 1"),
  ],
  "entry is posted once": [insertCopy("posting_page", "true", { business_date: "(o.x).business_date + 100" })],
  "posting has the distributor of its entry": [change("posting_page", "distributor_id = distributor_id + 1")],
  "posting numbers are 1 to n": [
    change("posting_page", "first_number = first_number + 100"),
    insertCopy("posting_page", "first_number = 1", { first_number: "100" }),
    together(
      change("posting_page", "first_number = 0, event_seqs = event_seqs[1:1]", "first_number = 1"),
      insertCopy("posting_page", "first_number = 0", { first_number: "2" }),
    ),
  ],
  "statement counts its postings": [
    `update core.posting_page p set business_date = s.business_date, first_number = 99 from core.statement s
      where (s.tenant_id, s.distributor_id) = (p.tenant_id, p.distributor_id) and p.business_date > s.business_date`,
    change("statement", "entry_count = entry_count + 1"),
  ],
  "summary matches the ledger": [
    line("redemption_minor = redemption_minor + 1"),
    line("redemption_count = redemption_count + 1"),
    line("reversal_count = reversal_count + 1"),
    line("reversal_minor = reversal_minor - 1", "reversal_count > 0"),
    remove("statement_line"),
    line("merchant_id = merchant_id + 1"),
    line("redemption_count = 0, reversal_count = reversal_count + redemption_count"),
    together(
      insertCopy("statement_line", "redemption_count > 0 and reversal_count > 0", {
        number: "99",
        redemption_count: "0",
        redemption_minor: "0",
      }),
      `update core.statement_line set reversal_count = 0, reversal_minor = 0
       where redemption_count > 0 and reversal_count > 0`,
    ),
    `update core.posting_page p set event_seqs = p.event_seqs || 999999::bigint from core.statement s where ${ofDay}`,
    insertCopy("statement_line", "true", {
      number: "99",
      merchant_id: "0",
      redemption_minor: "0",
      reversal_minor: "0",
    }),
  ],
  "day sums match the ledger": [
    ...["store_line", "batch_line"].flatMap((table) => [
      change(table, "redemption_minor = redemption_minor + 1"),
      change(table, "redemption_count = redemption_count + 1"),
      change(table, "reversal_count = reversal_count + 1"),
      change(table, "reversal_minor = reversal_minor - 1"),
      remove(table),
    ]),
    change("store_line", "merchant_id = merchant_id + 1"),
    change("store_line", "store = 'other'"),
    change("store_line", "currency = 'JPY'"),
    change("batch_line", "batch_id = 0"),
    insertCopy("store_line", "true", { number: "99", redemption_minor: "0", reversal_minor: "0" }),
  ],
  "days before the open day are closed": [
    remove("statement", "entry_count > 0"),
    remove("statement", "entry_count > 0 and distributor_id <> tenant_id"),
  ],
  "closed days follow each other": [
    book("open_on = open_on + 1"),
    together(
      insertCopy("statement", "true", { business_date: "(o.x).business_date + 2" }),
      "update core.ledger_book set open_on = open_on + 2",
    ),
  ],
  "open day and later days are not closed": [book("open_on = open_on - 1")],
  "ready statement has its event": [
    removeEvent("reconciliation.ready"),
    change(
      "statement",
      `ready_at = null, detail_bytes = null, detail_sha256 = null,
       summary_rows = null, summary_bytes = null, summary_sha256 = null`,
    ),
  ],
};

export const corruptions: Corruptions = { ...ofCoupons, ...ofTheLedger, ...ofFeeds, ...ofStatements };
