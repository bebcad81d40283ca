// npm run codes streams the codes of a batch as CSV (coupon_id,code) to standard output, and nowhere else. The
// database has no codes: this program derives them again from the master key, the batch's salt and the coupons'
// numbers. Before the first line is written, the database records who exports the batch. --destroy deletes the salt
// instead: after that, no one can derive the codes again.
import { defineCommand } from "../command-line/command.ts";
import { readConfig } from "../config/config.ts";
import { writeOutput } from "../command-line/output.ts";
import { type Progress, withProgress } from "../command-line/progress.ts";
import { keySettings } from "../config/settings.ts";
import { deriveCodes, type CodeRow, type CodeSource } from "../crypto/derive-codes.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import type { Database } from "../database/types.ts";
import { codesHeader, toCodeLines, type IssuedCode } from "../formats/codes-csv.ts";
import { findAddress } from "../embedded/find-address.ts";
import { loadMasterKeys } from "../embedded/load-keys.ts";
import { checkKeys, withAdminDatabase } from "./admin-database.ts";
import { toCellOf } from "./find-cell.ts";
import { refuseCodesInArguments } from "./refuse-codes-in-arguments.ts";

const pageSize = 5_000;

type Export = { tenant_id: number; batch_id: number } & CodeSource;

export async function* exportCodes(
  database: Database,
  keys: MasterKeys,
  batch: string,
  isUnreleased: boolean,
  onPage?: (done: number, total: number) => void,
): AsyncGenerator<IssuedCode[]> {
  const [opened] = await database.rows<Export>(
    "select tenant_id, batch_id, salt, key_version, total_count from admin.open_export($1, $2)",
    [batch, isUnreleased],
  );
  if (opened === undefined) throw new Error(`no export of ${batch}`);
  const readPage = (after: number) =>
    database.rows<CodeRow>(
      "select number, code_attempt, lookup_hash, coupon_id from rules.read_export_page($1, $2, $3, $4)",
      [opened.tenant_id, opened.batch_id, after, pageSize],
    );
  yield* deriveCodes(keys, opened, readPage, { onPage });
}

// Writes the header with the first page, so a refused export writes nothing.
async function writeCsv(pages: AsyncIterable<IssuedCode[]>): Promise<void> {
  let header = codesHeader;
  for await (const page of pages) {
    await writeOutput(header + toCodeLines(page));
    header = "";
  }
}

// On a terminal, the codes themselves show the progress.
const showPages = (progress: Progress) => (done: number, total: number) => {
  if (process.stdout.isTTY) return;
  progress.show(`${done.toLocaleString("en")} of ${total.toLocaleString("en")} codes`);
};

export const command = defineCommand({
  name: "codes",
  about:
    "Writes the codes of a batch as CSV (coupon_id,code) to standard output. The batch must be released " +
    "or, with --unreleased, completely minted. The audit log records each export. --destroy deletes the batch's salt " +
    "instead: after that, its codes can never be derived again, but printed codes keep working.",
  forms: ["BATCH [--unreleased]", "BATCH --destroy --reason WHY"],
  words: { batch: { about: "the batch, bat_…" } },
  flags: {
    unreleased: { type: "switch", about: "exports a batch that is not released yet" },
    destroy: { type: "switch", about: "deletes the salt, so the codes can never be exported again" },
    reason: { type: "text", value: "WHY", about: "why they are destroyed, for the audit log" },
  },
  settings: keySettings,
  examples: ["bat_… > codes.csv", 'bat_… --destroy --reason "printed"'],
  refuse({ flags }) {
    if (flags.destroy && flags.unreleased) return "--destroy and --unreleased exclude each other";
    if (flags.destroy && flags.reason === undefined) return "--destroy needs --reason";
    return flags.reason !== undefined && !flags.destroy ? "--reason needs --destroy" : null;
  },
  async run({ words: { batch }, flags }) {
    const config = readConfig();
    const address = findAddress(config);
    const keys = loadMasterKeys(config);
    refuseCodesInArguments(keys, [batch, flags.reason ?? ""]);
    const act = async (database: Database) => {
      await checkKeys(database, keys);
      if (flags.destroy) {
        await database.rows("select admin.destroy_codes($1, $2)", [batch, flags.reason]);
        console.error(`${batch}: salt deleted; its codes cannot be derived again`);
      } else {
        await withProgress((progress) =>
          writeCsv(exportCodes(database, keys, batch, flags.unreleased, showPages(progress))),
        );
      }
    };
    await withAdminDatabase(address, "coupon codes", act, toCellOf(batch));
  },
});
