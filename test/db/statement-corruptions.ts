// Corruptions of postings, statements and books, for corruptions.ts.
import { insertCopy, together } from "./attempts/statements.ts";

// The first row of a table that matches.
const one = (table: string, where: string) =>
  `ctid = (select ctid from core.${table} where ${where} order by 1 limit 1)`;
export const change = (table: string, set: string, where = "true") =>
  `update core.${table} set ${set} where ${one(table, where)}`;
export const remove = (table: string, where = "true") => `delete from core.${table} where ${one(table, where)}`;
export const event = (type: string) => `event_type = '${type}'`;

export const statementCorruptions: Record<string, Record<string, string>> = {
  "sequenced ledger entry is posted": {
    "a posting is deleted": change("posting_page", "event_seqs = trim_array(event_seqs, 1)"),
  },
  "entry is posted once": {
    "the entries of a day are posted to another day too": insertCopy("posting_page", "true", {
      business_date: "(o.x).business_date + 100",
    }),
  },
  "posting has the distributor of its entry": {
    "a posting moves to another distributor": change("posting_page", "distributor_id = distributor_id + 1"),
  },
  "posting numbers are 1 to n": {
    "a number is skipped": change("posting_page", "first_number = first_number + 100"),
    "a number after the first is skipped": insertCopy("posting_page", "first_number = 1", { first_number: "100" }),
    "two entries have the numbers 0 and 2": together(
      change("posting_page", "first_number = 0, event_seqs = event_seqs[1:1]", "first_number = 1"),
      insertCopy("posting_page", "first_number = 0", { first_number: "2" }),
    ),
  },
  "statement counts its postings": {
    "an entry is added to a closed day": `
      update core.posting_page p set business_date = s.business_date, first_number = 99 from core.statement s
      where (s.tenant_id, s.distributor_id) = (p.tenant_id, p.distributor_id) and p.business_date > s.business_date`,
    "the number of entries is changed": change("statement", "entry_count = entry_count + 1"),
  },
  "summary matches the ledger": {
    "a line of a summary is changed": change("statement_line", "redemption_minor = redemption_minor + 1"),
    "a line of a summary counts one redemption more": change(
      "statement_line",
      "redemption_count = redemption_count + 1",
    ),
    "a line of a summary counts one reversal more": change("statement_line", "reversal_count = reversal_count + 1"),
    "the sum of the reversals in a line of a summary is changed": change(
      "statement_line",
      "reversal_minor = reversal_minor - 1",
      "reversal_count > 0",
    ),
    "a line of a summary is deleted": remove("statement_line"),
    "a line of a summary names another merchant": change("statement_line", "merchant_id = merchant_id + 1"),
    "a line of a summary counts a redemption as a reversal": change(
      "statement_line",
      "redemption_count = 0, reversal_count = reversal_count + redemption_count",
    ),
    "a line of a summary is split into its redemptions and its reversals": together(
      insertCopy("statement_line", "redemption_count > 0 and reversal_count > 0", {
        number: "99",
        redemption_count: "0",
        redemption_minor: "0",
      }),
      `update core.statement_line set reversal_count = 0, reversal_minor = 0
       where redemption_count > 0 and reversal_count > 0`,
    ),
    "a day has a line for an entry that does not exist": `
      update core.posting_page p set event_seqs = p.event_seqs || 999999::bigint from core.statement s
      where (s.tenant_id, s.distributor_id, s.business_date) = (p.tenant_id, p.distributor_id, p.business_date)`,
    "a summary has a line for a merchant without entries": insertCopy("statement_line", "true", {
      number: "99",
      merchant_id: "0",
      redemption_minor: "0",
      reversal_minor: "0",
    }),
  },
  "days before the open day are closed": {
    "the statement of a closed day is deleted": remove("statement", "entry_count > 0"),
    "the statement of a distributor without the number of its tenant is deleted": remove(
      "statement",
      "entry_count > 0 and distributor_id <> tenant_id",
    ),
  },
  "closed days follow each other": {
    "the open day moves ahead": change("ledger_book", "open_on = open_on + 1", "tenant_id <> party_id"),
    "a day between two closed days has no statement": together(
      insertCopy("statement", "true", { business_date: "(o.x).business_date + 2" }),
      "update core.ledger_book set open_on = open_on + 2",
    ),
  },
  "open day and later days are not closed": {
    "a closed day is opened again": change("ledger_book", "open_on = open_on - 1", "tenant_id <> party_id"),
  },
  "ready statement has its event": {
    "the event of a ready statement is deleted": remove("event", event("reconciliation.ready")),
    "the statement of an event is not ready": change(
      "statement",
      `ready_at = null, detail_bytes = null, detail_sha256 = null,
       summary_rows = null, summary_bytes = null, summary_sha256 = null`,
    ),
  },
};
