// Guards of books, of the files of statements and of their download.
import { edit, type Sabotage } from "./sabotage.ts";

const summary = "db/code/rules/statement/read_summary_page.sql";

export const statementGuards: Sabotage[] = [
  {
    name: "a later page of a summary has lines",
    edits: [edit(summary, "l.number <= p_after + p_limit", "l.number <= p_limit")],
    tests: ["test/db/statement-page.test.ts"],
  },
  {
    name: "a page of a summary begins after the last line",
    edits: [edit(summary, "l.number > p_after", "l.number >= p_after")],
    tests: ["test/db/statement-page.test.ts"],
  },
  {
    name: "a file is not found before its statement is ready",
    // The length of a file that was not measured breaks the answer.
    mayThrow: true,
    edits: [edit("db/code/api/get_reconciliation.sql", "    and s.ready_at is not null\n", "")],
    tests: ["test/http/reconciliations.test.ts"],
  },
  {
    name: "in Variant B the book of a distributor begins whatever others have closed",
    edits: [edit("db/code/rules/statement/open_books.sql", " and t.variant = 'A'", "")],
    tests: ["test/db/admin/owners-books.test.ts"],
  },
];
