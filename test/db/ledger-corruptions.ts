// Corruptions of redemptions, their ledger entries and recorded answers, for corruptions.ts.
import { insertCopy, together } from "./attempts/statements.ts";
import { change, remove } from "./statement-corruptions.ts";

export const ledgerCorruptions: Record<string, Record<string, string>> = {
  "redemption has its ledger entries": {
    "an amount in the ledger is changed": change(
      "ledger_entry",
      "amount_minor = amount_minor - 1",
      "entry_type = 'REDEMPTION'",
    ),
    "a ledger entry gets another currency": change("ledger_entry", "currency = 'CHF'"),
    "a reversal gets a currency that sorts before its redemption's": change(
      "ledger_entry",
      "currency = 'CHF'",
      "entry_type = 'REVERSAL'",
    ),
    "a reversal gets a currency that sorts after its redemption's": change(
      "ledger_entry",
      "currency = 'USD'",
      "entry_type = 'REVERSAL'",
    ),
    "the ledger entry of a redemption is deleted": remove("ledger_entry", "entry_type = 'REDEMPTION'"),
    "the ledger entry of a reversal is deleted": remove("ledger_entry", "entry_type = 'REVERSAL'"),
    "a lock gets a ledger entry": insertCopy("ledger_entry", "entry_type = 'REDEMPTION'", {
      event_seq: "999999",
      entry_id: "(select r.redemption_id from core.redemption r where r.status = 'LOCKED')",
    }),
    "a reversal points to another redemption": change(
      "reversal",
      "redemption_id = (select r.redemption_id from core.redemption r where r.status = 'REDEEMED' limit 1)",
    ),
  },
  "ledger entry has its redemption": {
    "a redeemed redemption is deleted": remove("redemption", "status = 'REDEEMED'"),
    "the entry of a redemption becomes a reversal": change(
      "ledger_entry",
      "entry_type = 'REVERSAL', amount_minor = -amount_minor",
      "entry_type = 'REDEMPTION'",
    ),
    "a reversal is deleted": remove("reversal"),
    "the entry of a redemption names another coupon of the batch": change(
      "ledger_entry",
      `coupon_id = (select o.coupon_id from core.coupon c join core.coupon o using (tenant_id, batch_id)
                    where c.coupon_id = ledger_entry.coupon_id and o.coupon_id <> c.coupon_id limit 1)`,
      `tenant_id = 1 and exists (
         select from core.coupon c where c.coupon_id = ledger_entry.coupon_id and c.number = 2)`,
    ),
    "the entry of a redemption gets another time": change(
      "ledger_entry",
      "occurred_at = occurred_at + interval '1 second'",
      "entry_type = 'REDEMPTION'",
    ),
    "the entry of a reversal gets the time of its redemption": change(
      "ledger_entry",
      `occurred_at = (select r.redeemed_at from core.redemption r where r.status = 'REVERSED')`,
      "entry_type = 'REVERSAL'",
    ),
  },
  "reversal has reversed redemption": {
    "a reversed redemption is deleted": remove("redemption", "status = 'REVERSED'"),
    "a reversed redemption is set to REDEEMED": change(
      "redemption",
      "status = 'REDEEMED', ended_at = null",
      "status = 'REVERSED'",
    ),
  },
  "redemption follows its template": {
    "a redemption gets another currency": change("redemption", "currency = 'CHF'"),
    "a redemption gets a larger discount": change("redemption", "discount_minor = discount_minor + 1"),
    "a redemption gets a smaller discount": change("redemption", "discount_minor = discount_minor - 1"),
    "the discount of a template changes": change("template", "discount_minor = 1", "external_id = 'tpl_fixed'"),
    "a template gets a minimum order": change("template", "min_order_minor = 1", "external_id = 'tpl_fixed'"),
    "a template gets a minimum above an order": together(
      change("redemption", "order_minor = 10000", "status = 'LOCKED'"),
      change("template", "min_order_minor = 10001", "external_id = 'tpl_fixed'"),
    ),
    "a redemption is not the percentage of its order": together(
      "update core.redemption set order_minor = 10000",
      change(
        "template",
        "discount_type = 'percent', discount_percent = 10, discount_minor = null",
        "external_id = 'tpl_fixed'",
      ),
    ),
    "a percentage of an order that is not known": change(
      "template",
      "discount_type = 'percent', discount_percent = 10, discount_minor = null",
      "external_id = 'tpl_fixed'",
    ),
  },
  "recorded redemption exists": {
    "a recorded answer has a character that JSON cannot store": change(
      "request",
      String.raw`response = '{"redemption":"\u0000"}'`,
      "operation = 'redeem'",
    ),
    "a confirm is recorded for a redemption without a lock": change(
      "request",
      "operation = 'confirm'",
      "operation = 'redeem' and http_status = 200",
    ),
    "a confirm is recorded for a lock": change("request", "operation = 'confirm'", "operation = 'lock'"),
    "a reversal is recorded for a redemption": change("request", "operation = 'reverse'", "operation = 'redeem'"),
    "a redemption that a lock began is deleted": remove("redemption", "lock_expires_at is not null"),
    "a redemption gets another request_id": change("redemption", "lock_request_id = 'test-other'"),
    "a redemption gets another caller": change("redemption", "caller_id = caller_id + 1"),
  },
};
