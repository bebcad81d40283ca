// coupon check: checks every invariant of the database now, as work does at night, and prints the broken ones. The
// results are stored, so the metrics of work show them.
import { defineCommand } from "../command-line/command.ts";
import { writeOutput } from "../command-line/output.ts";
import { withProgress } from "../command-line/progress.ts";
import { readConfig } from "../config/config.ts";
import { databaseSettings } from "../config/settings.ts";
import { findAddress } from "../embedded/find-address.ts";
import { withAdminDatabase } from "./admin-database.ts";
import { formatJson, formatRows, json } from "./table.ts";

type Broken = { invariant: string; rows: number; example: string };

export const command = defineCommand({
  name: "check",
  about:
    "Checks every invariant of the database now, as work does at night. It prints those that are broken, and stores " +
    "the results for the metrics. It reads all tables.",
  flags: { json },
  settings: databaseSettings,
  examples: ["", "--json"],
  exitCodes: "0 all invariants hold, 1 some are broken or failed",
  async run({ flags }) {
    const broken: Broken[] = [];
    const checked = await withAdminDatabase(findAddress(readConfig()), "coupon check", (database) =>
      withProgress(async (progress) => {
        const invariants = await database.rows<{ invariant: string }>("select invariant from rules.list_invariants()");
        for (const [index, { invariant }] of invariants.entries()) {
          progress.show(`${index + 1} of ${invariants.length}: ${invariant}`);
          const [result] = await database.rows<{ rows: number; example: string | null }>(
            "select broken_rows::float8 as rows, example from rules.check_invariant($1)",
            [invariant],
          );
          const { rows, example } = result!;
          if (example !== null) broken.push({ invariant, rows, example });
        }
        return invariants.length;
      }),
    );
    const found = broken.length === 0 ? "all hold" : `${broken.length} broken; select * from report.invariants has all`;
    if (flags.json) await writeOutput(`${formatJson({ checked, broken })}\n`);
    else {
      if (broken.length > 0) await writeOutput(`${formatRows(broken, flags)}\n`);
      await writeOutput(`${checked} invariants checked, ${found}\n`);
    }
    if (broken.length > 0) process.exitCode = 1;
  },
});
