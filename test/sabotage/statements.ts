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
];
