// Corruptions that report.invariants must find: by the invariant that is violated, what is done and how.
import { insertCopy, together } from "./attempts/statements.ts";
import { ledgerCorruptions } from "./ledger-corruptions.ts";
import { change, event, remove, statementCorruptions } from "./statement-corruptions.ts";

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

const ofUnreleasedBatch = "batch_id = (select b.batch_id from core.batch b where b.status = 'COMPLETED')";

const couponCorruptions: Record<string, Record<string, string>> = {
  "coupon status matches redemptions": {
    "an issued coupon is set to REDEEMED": change("coupon", "status = 'REDEEMED'", "status = 'ISSUED'"),
    "a redeemed coupon is set to ISSUED": change("coupon", "status = 'ISSUED'", "status = 'REDEEMED'"),
    "a redeemed coupon is set to LOCKED": change("coupon", "status = 'LOCKED'", "status = 'REDEEMED'"),
    "a locked coupon is set to REDEEMED": change("coupon", "status = 'REDEEMED'", "status = 'LOCKED'"),
    "a reissued coupon is set to REDEEMED": change(
      "coupon",
      "status = 'REDEEMED'",
      "coupon_id in (select r.coupon_id from core.redemption r where r.status = 'REVERSED')",
    ),
    "the coupon of a cancelled lock is set to REDEEMED": together(
      change("coupon", "status = 'REDEEMED'", "status = 'LOCKED'"),
      change("redemption", "status = 'CANCELLED', ended_at = now()", "status = 'LOCKED'"),
    ),
    "the redemption of a locked coupon is deleted": remove("redemption", "status = 'LOCKED'"),
  },
  "coupon has one live redemption": {
    "a second redemption is added": together(
      "drop index core.coupon_has_one_live_redemption",
      insertCopy("redemption", "status = 'REDEEMED'", { redemption_id: "gen_random_uuid()" }),
    ),
  },
  "redemption has coupon and merchant": {
    "a redemption gets a merchant of another tenant": change(
      "redemption",
      "merchant_id = (select m.merchant_id from core.merchant m where m.tenant_id = 2 limit 1)",
      "status = 'LOCKED' and tenant_id = 1",
    ),
    "a redemption gets an unknown merchant": change("redemption", "merchant_id = 0", "status = 'LOCKED'"),
    "a redemption gets a coupon of another tenant": change(
      "redemption",
      "coupon_id = (select c.coupon_id from core.coupon c where c.tenant_id = 2 limit 1)",
      "status = 'LOCKED' and tenant_id = 1",
    ),
    "a redemption gets an unknown coupon": change("redemption", "coupon_id = gen_random_uuid()", "status = 'LOCKED'"),
  },
  "voided coupon has voiding": {
    "a voiding is deleted": remove("voiding"),
    "a voided coupon is set to ISSUED": change("coupon", "status = 'ISSUED'", "status = 'VOIDED'"),
  },
  "expired or voided coupon has its event": {
    "the event of an expired coupon is deleted": remove("event", event("coupon.expired")),
    "the event of a voided coupon is deleted": remove("event", event("coupon.voided")),
  },
  "issued coupon will expire": {
    "an expired coupon is set to ISSUED": together(
      change("batch", "expired_through = total_count", "status = 'ALLOCATED'"),
      change("coupon", "status = 'ISSUED'", "status = 'EXPIRED'"),
      remove("coupon_extension"),
    ),
  },
  "voided event has voided coupon": {
    "an issued coupon gets a voided event": insertCopy("event", event("coupon.voided"), {
      event_id: "gen_random_uuid()",
      event_seq: "999999",
      coupon_id: "(select c.coupon_id from core.coupon c where c.tenant_id = 1 and c.status = 'ISSUED' limit 1)",
    }),
  },
  "batch has the coupons it counts": {
    "a coupon is deleted": remove("coupon", "number = 1"),
    "a coupon between two others is deleted": remove(
      "coupon",
      "number = 2 and batch_id in (select b.batch_id from core.batch b where b.total_count > 2)",
    ),
    "a coupon gets another number": change("coupon", "number = 77", "number = 1"),
    "the first coupon of a batch gets the number 0": change(
      "coupon",
      "number = 0",
      "number = 1 and batch_id in (select b.batch_id from core.batch b where b.total_count > 1)",
    ),
    "a pending batch counts a coupon that it does not have": change("batch", "minted_count = 1", "status = 'PENDING'"),
  },
  "batch has its events": {
    "the event of a completed batch is deleted": remove("event", event("batch.generated")),
    "the event of an allocated batch is duplicated": insertCopy("event", event("allocation.completed"), {
      event_id: "gen_random_uuid()",
      event_seq: "999999",
    }),
  },
  "used coupon is released": {
    "the release of a batch with a redeemed coupon is undone": change(
      "batch",
      "status = 'COMPLETED', allocated_at = null",
      "batch_id = (select c.batch_id from core.coupon c where c.status = 'REDEEMED' limit 1)",
    ),
    "a coupon of an unreleased batch is set to LOCKED": change("coupon", "status = 'LOCKED'", ofUnreleasedBatch),
    "a coupon of an unreleased batch is set to REDEEMED": change("coupon", "status = 'REDEEMED'", ofUnreleasedBatch),
    "a coupon of an unreleased batch is set to EXPIRED": change("coupon", "status = 'EXPIRED'", ofUnreleasedBatch),
  },
};

const feedCorruptions: typeof couponCorruptions = {
  "event is for the right party": {
    "the event of a batch goes to another party": change(
      "event",
      "party_id = party_id + 1000",
      event("batch.generated"),
    ),
    "the event of a coupon goes to another party": change(
      "event",
      "party_id = party_id + 1000",
      event("coupon.voided"),
    ),
    "the ledger entry of a redemption goes to another party": change(
      "ledger_entry",
      "distributor_id = distributor_id + 1000",
    ),
    "the ledger entry of a redemption goes to the maker of the batch": change(
      "ledger_entry",
      `distributor_id = (select b.maker_id from core.coupon c join core.batch b using (tenant_id, batch_id)
                         where c.coupon_id = ledger_entry.coupon_id)`,
      "tenant_id = 2",
    ),
    "the event of a statement goes to an unknown party": change(
      "event",
      "party_id = 999999",
      event("reconciliation.ready"),
    ),
    "an event gets an unknown coupon": change("event", "coupon_id = gen_random_uuid()", event("coupon.expired")),
  },
  "event is in one table": {
    "an event gets the number of a ledger entry": change(
      "event",
      "event_seq = (select min(event_seq) from core.ledger_entry)",
    ),
    "an event gets the ID of a ledger entry": change(
      "event",
      "event_id = (select entry_id from core.ledger_entry where tenant_id = 1 limit 1)",
      "tenant_id = 1",
    ),
  },
  "feed positions are 1 to n": {
    "an event in the middle of a feed is deleted": change(
      "feed_page",
      "event_seqs = array_remove(event_seqs, event_seqs[2])",
    ),
    "a position is skipped": change("feed", "last_position = last_position + 1"),
    "an event has a position beyond the last one of a feed that skipped some": change(
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
    "the last event of a feed is deleted, and its position with it": dropLastPositions,
    "a whole feed is deleted": together(
      "delete from core.feed_page where party_id = 0",
      "delete from core.feed where party_id = 0",
    ),
    "events move to another party's feed": `
      update core.ledger_entry set distributor_id = distributor_id + 1
      where distributor_id in (select party_id from core.feed)`,
  },
  "feed counts its events": {
    "an event is lost from a pruned feed": together(
      "delete from core.feed_page where first_position = 1",
      dropLastPositions,
    ),
    "a feed has assigned a position, and has no event": insertCopy("feed", "true", {
      party_id: "999999",
      last_position: "1",
    }),
  },
  "delivery is of an event": {
    "the event of a delivery is deleted": together("delete from core.event", "delete from core.ledger_entry"),
    "a delivery gets another number": change("delivery", "event_seq = event_seq + 1"),
    "the events of a delivery go to another party": together(
      "update core.event set party_id = party_id + 1",
      "update core.ledger_entry set distributor_id = distributor_id + 1",
    ),
  },
  "delivery is parked after 10 attempts": {
    "a delivery has 10 attempts and is not parked": change("delivery", "attempt_count = 10"),
  },
};

export type Corruption = { invariant: string; done: string; sql: string };

export const corruptions: Corruption[] = [
  couponCorruptions,
  ledgerCorruptions,
  feedCorruptions,
  statementCorruptions,
].flatMap((subject) =>
  Object.entries(subject).flatMap(([invariant, ways]) =>
    Object.entries(ways).map(([done, sql]) => ({ invariant, done, sql })),
  ),
);
