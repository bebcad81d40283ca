// npm run sandbox: test cards for a sandbox, and its reset. Both refuse every other tenant.
import { defineCommand, groupCommands } from "../command-line/command.ts";
import { writeOutput } from "../command-line/output.ts";
import { withProgress } from "../command-line/progress.ts";
import { readConfig } from "../config/config.ts";
import { keySettings } from "../config/settings.ts";
import type { Database } from "../database/types.ts";
import { findAddress } from "../embedded/find-address.ts";
import { loadMasterKeys } from "../embedded/load-keys.ts";
import { checkKeys, withAdminDatabase } from "./admin-database.ts";
import { toCellOf } from "./find-cell.ts";
import { refuseCodesInArguments } from "./refuse-codes-in-arguments.ts";
import { makeCards } from "./sandbox-cards.ts";
import { formatRows, json } from "./table.ts";

const tenant = { about: "the sandbox, ten_…" } as const;
const name = "coupon sandbox";

const cards = defineCommand({
  name: "cards",
  about:
    "Makes real coupons, one in each state that a till must handle, and prints their codes with the answer that a " +
    "lock must get. Each call makes new ones. The audit log records each step.",
  words: { tenant },
  flags: {
    merchant: {
      type: "text",
      value: "MERCHANT",
      about: "where the till redeems; default: the tenant's first merchant",
    },
    json,
  },
  settings: keySettings,
  examples: ["ten_acmetest", "ten_acmetest --merchant mch_1 --json"],
  async run({ words, flags }) {
    const config = readConfig();
    const address = findAddress(config);
    const keys = loadMasterKeys(config);
    refuseCodesInArguments(keys, [words.tenant, flags.merchant ?? ""]);
    const rows = await withProgress(async (progress) => {
      progress.show(`making test cards for ${words.tenant}`);
      const act = async (database: Database) => {
        await checkKeys(database, keys);
        return makeCards({ database, keys }, words.tenant, flags.merchant);
      };
      return withAdminDatabase(address, name, act, toCellOf(words.tenant));
    });
    await writeOutput(`${formatRows(rows, flags)}\n`);
  },
});

const reset = defineCommand({
  name: "reset",
  about:
    "Empties a sandbox: batches, coupons, redemptions, events, statements and recorded answers are deleted. Parties, " +
    "merchants, templates, credentials and webhooks stay.",
  words: { tenant },
  flags: { reason: { type: "text", value: "WHY", about: "for the audit log" } },
  settings: keySettings,
  examples: ["ten_acmetest", 'ten_acmetest --reason "next rehearsal"'],
  async run({ words, flags: { reason = null } }) {
    const config = readConfig();
    const address = findAddress(config);
    refuseCodesInArguments(loadMasterKeys(config), [words.tenant, reason ?? ""]);
    const text = "select batches, coupons from admin.reset_sandbox($1, $2)";
    const act = (database: Database) =>
      database.rows<{ batches: number; coupons: string }>(text, [words.tenant, reason]);
    const [found] = await withAdminDatabase(address, name, act, toCellOf(words.tenant));
    await writeOutput(`${words.tenant} is empty: ${found!.batches} batches and ${found!.coupons} coupons are gone\n`);
  },
});

export const command = groupCommands({
  name: "sandbox",
  about: "Makes test cards for a sandbox tenant, or empties it.",
  settings: keySettings,
  commands: [cards, reset],
});
