// Corruptions that report.invariants must find: by the invariant that is violated, what is done and how.
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

const isUnreleased = "batch_id = (select b.batch_id from core.batch b where b.status = 'COMPLETED')";
const isReversed = "coupon_id in (select r.coupon_id from core.redemption r where r.status = 'REVERSED')";
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

type Corruptions = Record<string, Record<string, string>>;

const ofCoupons: Corruptions = {
  "coupon status matches redemptions": {
    "ISSUED to REDEEMED": coupon("REDEEMED", "status = 'ISSUED'"),
    "REDEEMED to ISSUED": coupon("ISSUED", "status = 'REDEEMED'"),
    "REDEEMED to LOCKED": coupon("LOCKED", "status = 'REDEEMED'"),
    "LOCKED to REDEEMED": coupon("REDEEMED", "status = 'LOCKED'"),
    "reissued to REDEEMED": coupon("REDEEMED", isReversed),
    "REDEEMED after a cancelled lock": together(
      coupon("REDEEMED", "status = 'LOCKED'"),
      redemption("status = 'CANCELLED', ended_at = now()", "status = 'LOCKED'"),
    ),
    "the redemption of a lock is deleted": remove("redemption", "status = 'LOCKED'"),
  },
  "coupon has one live redemption": {
    "a second redemption": together(
      "drop index core.coupon_has_one_live_redemption",
      insertCopy("redemption", "status = 'REDEEMED'", { redemption_id: "gen_random_uuid()" }),
    ),
  },
  "redemption has coupon and merchant": {
    "another tenant's merchant": redemption(`merchant_id = ${ofOtherTenant("merchant")}`, "tenant_id = 1"),
    "an unknown merchant": redemption("merchant_id = 0", "status = 'LOCKED'"),
    "another tenant's coupon": redemption(`coupon_id = ${ofOtherTenant("coupon")}`, "tenant_id = 1"),
    "an unknown coupon": redemption("coupon_id = gen_random_uuid()", "status = 'LOCKED'"),
  },
  "voided coupon has voiding": {
    "a voiding is deleted": remove("voiding"),
    "VOIDED to ISSUED": coupon("ISSUED", "status = 'VOIDED'"),
  },
  "expired or voided coupon has its event": {
    "the event of an expired one is deleted": removeEvent("coupon.expired"),
    "the event of a voided one is deleted": removeEvent("coupon.voided"),
  },
  "issued coupon will expire": {
    "EXPIRED to ISSUED": together(
      change("batch", "expired_through = total_count", "status = 'ALLOCATED'"),
      coupon("ISSUED", "status = 'EXPIRED'"),
      remove("coupon_extension"),
    ),
  },
  "voided event has voided coupon": {
    "a voided event of an ISSUED one": copyEvent("coupon.voided", {
      coupon_id: "(select c.coupon_id from core.coupon c where c.tenant_id = 1 and c.status = 'ISSUED' limit 1)",
    }),
  },
  "batch has the coupons it counts": {
    "a coupon is deleted": remove("coupon", "number = 1"),
    "a coupon between two others is deleted": remove("coupon", `number = 2 and ${isOfLarge}`),
    "another number": change("coupon", "number = 77", "number = 1"),
    "the first one gets the number 0": change("coupon", "number = 0", `number = 1 and ${isOfLarge}`),
    "a pending batch counts one that it does not have": change("batch", "minted_count = 1", "status = 'PENDING'"),
  },
  "batch has its events": {
    "the event of a completed batch is deleted": removeEvent("batch.generated"),
    "the event of an allocated batch is duplicated": copyEvent("allocation.completed"),
  },
  "used coupon is released": {
    "the release of a redeemed coupon is undone": change(
      "batch",
      "status = 'COMPLETED', allocated_at = null",
      "batch_id = (select c.batch_id from core.coupon c where c.status = 'REDEEMED' limit 1)",
    ),
    "an unreleased one to LOCKED": coupon("LOCKED", isUnreleased),
    "an unreleased one to REDEEMED": coupon("REDEEMED", isUnreleased),
    "an unreleased one to EXPIRED": coupon("EXPIRED", isUnreleased),
  },
};

const percentOfOrder = fixedTemplate("discount_type = 'percent', discount_percent = 10, discount_minor = null");

const ofTheLedger: Corruptions = {
  "redemption has its ledger entries": {
    "another amount": entry("REDEMPTION", "amount_minor = amount_minor - 1"),
    "another currency": change("ledger_entry", "currency = 'CHF'"),
    "a reversal in a currency that sorts before its redemption's": entry("REVERSAL", "currency = 'CHF'"),
    "a reversal in a currency that sorts after its redemption's": entry("REVERSAL", "currency = 'USD'"),
    "the entry of a redemption is deleted": remove("ledger_entry", "entry_type = 'REDEMPTION'"),
    "the entry of a reversal is deleted": remove("ledger_entry", "entry_type = 'REVERSAL'"),
    "a lock gets an entry": insertCopy("ledger_entry", "entry_type = 'REDEMPTION'", {
      event_seq: "999999",
      entry_id: "(select r.redemption_id from core.redemption r where r.status = 'LOCKED')",
    }),
    "a reversal of another redemption": change(
      "reversal",
      "redemption_id = (select r.redemption_id from core.redemption r where r.status = 'REDEEMED' limit 1)",
    ),
  },
  "ledger entry has its redemption": {
    "a redemption is deleted": remove("redemption", "status = 'REDEEMED'"),
    "a redemption becomes a reversal": entry("REDEMPTION", "entry_type = 'REVERSAL', amount_minor = -amount_minor"),
    "a reversal is deleted": remove("reversal"),
    "another coupon of the batch": change(
      "ledger_entry",
      `coupon_id = (select o.coupon_id from core.coupon c join core.coupon o using (tenant_id, batch_id)
                    where c.coupon_id = ledger_entry.coupon_id and o.coupon_id <> c.coupon_id limit 1)`,
      `tenant_id = 1 and exists (
         select from core.coupon c where c.coupon_id = ledger_entry.coupon_id and c.number = 2)`,
    ),
    "another time": entry("REDEMPTION", "occurred_at = occurred_at + interval '1 second'"),
    "a reversal at the time of its redemption": entry(
      "REVERSAL",
      "occurred_at = (select r.redeemed_at from core.redemption r where r.status = 'REVERSED')",
    ),
  },
  "reversal has reversed redemption": {
    "the redemption is deleted": remove("redemption", "status = 'REVERSED'"),
    "REVERSED to REDEEMED": redemption("status = 'REDEEMED', ended_at = null", "status = 'REVERSED'"),
  },
  "redemption follows its template": {
    "another currency": redemption("currency = 'CHF'"),
    "a larger discount": redemption("discount_minor = discount_minor + 1"),
    "a smaller discount": redemption("discount_minor = discount_minor - 1"),
    "a template with another discount": fixedTemplate("discount_minor = 1"),
    "a template with a minimum order": fixedTemplate("min_order_minor = 1"),
    "a template with a minimum above an order": together(
      redemption("order_minor = 10000", "status = 'LOCKED'"),
      fixedTemplate("min_order_minor = 10001"),
    ),
    "not the percentage of its order": together("update core.redemption set order_minor = 10000", percentOfOrder),
    "a percentage of an order that is not known": percentOfOrder,
  },
  "recorded redemption exists": {
    "an answer with a character that JSON cannot store": change(
      "request",
      String.raw`response = '{"redemption":"\u0000"}'`,
      "operation = 'redeem'",
    ),
    "a confirm without a lock": change(
      "request",
      "operation = 'confirm'",
      "operation = 'redeem' and http_status = 200",
    ),
    "a confirm of a lock": change("request", "operation = 'confirm'", "operation = 'lock'"),
    "a reversal of a redemption": change("request", "operation = 'reverse'", "operation = 'redeem'"),
    "a redemption that a lock began is deleted": remove("redemption", "lock_expires_at is not null"),
    "another request_id": redemption("lock_request_id = 'test-other'"),
    "another caller": redemption("caller_id = caller_id + 1"),
  },
};

const ofFeeds: Corruptions = {
  "event is for the right party": {
    "the event of a batch": changeEvent("batch.generated", "party_id = party_id + 1000"),
    "the event of a coupon": changeEvent("coupon.voided", "party_id = party_id + 1000"),
    "the event of a statement": changeEvent("reconciliation.ready", "party_id = 999999"),
    "a ledger entry": change("ledger_entry", "distributor_id = distributor_id + 1000"),
    "a ledger entry, to the maker of the batch": change(
      "ledger_entry",
      `distributor_id = (select b.maker_id from core.coupon c join core.batch b using (tenant_id, batch_id)
                         where c.coupon_id = ledger_entry.coupon_id)`,
      "tenant_id = 2",
    ),
    "the event of an unknown coupon": changeEvent("coupon.expired", "coupon_id = gen_random_uuid()"),
  },
  "event is in one table": {
    "the number of an entry": change("event", "event_seq = (select min(event_seq) from core.ledger_entry)"),
    "the ID of an entry": change(
      "event",
      "event_id = (select entry_id from core.ledger_entry where tenant_id = 1 limit 1)",
      "tenant_id = 1",
    ),
  },
  "feed positions are 1 to n": {
    "an event in the middle is deleted": change("feed_page", "event_seqs = array_remove(event_seqs, event_seqs[2])"),
    "a position is skipped": change("feed", "last_position = last_position + 1"),
    "an event beyond the last one of a feed that skipped some": change(
      "feed",
      "skipped_count = 1, last_position = last_position - 1",
    ),
  },
  "event has one position": {
    "the events of a page are added to its feed again": `
      insert into core.feed_page
      select p.tenant_id, p.party_id, f.last_position + 1, now(), p.event_seqs
      from core.feed_page p join core.feed f using (tenant_id, party_id) where p.first_position = 1`,
  },
  "feed keeps the order of each coupon": {
    "the first event of a coupon moves to the end": moveFirstEventOfACouponToTheEnd,
  },
  "sequenced event is in its feed": {
    "the last event is deleted, and its position with it": dropLastPositions,
    "a whole feed is deleted": together(
      "delete from core.feed_page where party_id = 0",
      "delete from core.feed where party_id = 0",
    ),
    "events move to another party's feed": `
      update core.ledger_entry set distributor_id = distributor_id + 1
      where distributor_id in (select party_id from core.feed)`,
  },
  "feed counts its events": {
    "an event of a pruned feed is lost": together(
      "delete from core.feed_page where first_position = 1",
      dropLastPositions,
    ),
    "a position without an event": insertCopy("feed", "true", { party_id: "999999", last_position: "1" }),
  },
  "delivery is of an event": {
    "the events are deleted": together("delete from core.event", "delete from core.ledger_entry"),
    "another number": change("delivery", "event_seq = event_seq + 1"),
    "the events go to another party": together(
      "update core.event set party_id = party_id + 1",
      "update core.ledger_entry set distributor_id = distributor_id + 1",
    ),
  },
  "delivery is parked after 10 attempts": { "10 attempts": change("delivery", "attempt_count = 10") },
};

const ofStatements: Corruptions = {
  "sequenced ledger entry is posted": {
    "a posting is deleted": change("posting_page", "event_seqs = trim_array(event_seqs, 1)"),
  },
  "entry is posted once": {
    "another day too": insertCopy("posting_page", "true", { business_date: "(o.x).business_date + 100" }),
  },
  "posting has the distributor of its entry": {
    "another distributor": change("posting_page", "distributor_id = distributor_id + 1"),
  },
  "posting numbers are 1 to n": {
    "a number is skipped": change("posting_page", "first_number = first_number + 100"),
    "a number after the first is skipped": insertCopy("posting_page", "first_number = 1", { first_number: "100" }),
    "the numbers 0 and 2": together(
      change("posting_page", "first_number = 0, event_seqs = event_seqs[1:1]", "first_number = 1"),
      insertCopy("posting_page", "first_number = 0", { first_number: "2" }),
    ),
  },
  "statement counts its postings": {
    "an entry is added to a closed day": `
      update core.posting_page p set business_date = s.business_date, first_number = 99 from core.statement s
      where (s.tenant_id, s.distributor_id) = (p.tenant_id, p.distributor_id) and p.business_date > s.business_date`,
    "another number of entries": change("statement", "entry_count = entry_count + 1"),
  },
  "summary matches the ledger": {
    "another sum of redemptions": line("redemption_minor = redemption_minor + 1"),
    "one redemption more": line("redemption_count = redemption_count + 1"),
    "one reversal more": line("reversal_count = reversal_count + 1"),
    "another sum of reversals": line("reversal_minor = reversal_minor - 1", "reversal_count > 0"),
    "a line is deleted": remove("statement_line"),
    "another merchant": line("merchant_id = merchant_id + 1"),
    "a redemption as a reversal": line("redemption_count = 0, reversal_count = reversal_count + redemption_count"),
    "a line is split into its redemptions and its reversals": together(
      insertCopy("statement_line", "redemption_count > 0 and reversal_count > 0", {
        number: "99",
        redemption_count: "0",
        redemption_minor: "0",
      }),
      `update core.statement_line set reversal_count = 0, reversal_minor = 0
       where redemption_count > 0 and reversal_count > 0`,
    ),
    "a posting without an entry": `
      update core.posting_page p set event_seqs = p.event_seqs || 999999::bigint from core.statement s where ${ofDay}`,
    "a line for a merchant without entries": insertCopy("statement_line", "true", {
      number: "99",
      merchant_id: "0",
      redemption_minor: "0",
      reversal_minor: "0",
    }),
  },
  "days before the open day are closed": {
    "a statement is deleted": remove("statement", "entry_count > 0"),
    "a statement of another distributor than the first is deleted": remove(
      "statement",
      "entry_count > 0 and distributor_id <> tenant_id",
    ),
  },
  "closed days follow each other": {
    "the open day moves ahead": book("open_on = open_on + 1"),
    "a day between two closed days has no statement": together(
      insertCopy("statement", "true", { business_date: "(o.x).business_date + 2" }),
      "update core.ledger_book set open_on = open_on + 2",
    ),
  },
  "open day and later days are not closed": { "a closed day is opened again": book("open_on = open_on - 1") },
  "ready statement has its event": {
    "the event is deleted": removeEvent("reconciliation.ready"),
    "the statement is not ready": change(
      "statement",
      `ready_at = null, detail_bytes = null, detail_sha256 = null,
       summary_rows = null, summary_bytes = null, summary_sha256 = null`,
    ),
  },
};

export const corruptions: Corruptions = { ...ofCoupons, ...ofTheLedger, ...ofFeeds, ...ofStatements };
