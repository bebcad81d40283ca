// What the groups of commands share that act as coupon_admin and use keys: webhooks and credentials.
import { provideContext, type Command } from "../command-line/command.ts";
import { writeOutput } from "../command-line/output.ts";
import { readConfig } from "../config/config.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import type { Database } from "../database/types.ts";
import { findAddress } from "../embedded/find-address.ts";
import { loadMasterKeys } from "../embedded/load-keys.ts";
import { checkKeys, withAdminDatabase } from "./admin-database.ts";
import { toCellOf } from "./find-cell.ts";
import { refuseCodesInArguments } from "./refuse-codes-in-arguments.ts";

export type Context = { database: Database; keys: MasterKeys };

export const reason = { type: "text", value: "WHY", about: "for the audit log", isRequired: true } as const;

/**
 * Gives each command of the group a connection and the keys, and prints the text that it returns. Behind a router, the
 * connection is to the cell of the command's word `tenant` or `key`.
 */
export const provideAdminContext = (group: Command<Context, string>): Command =>
  provideContext(group, async (run, args, { tenant, key }) => {
    const config = readConfig();
    const address = findAddress(config);
    const keys = loadMasterKeys(config);
    refuseCodesInArguments(keys, args);
    const act = async (database: Database) => {
      await checkKeys(database, keys);
      return run({ database, keys });
    };
    const output = await withAdminDatabase(address, `coupon ${group.name}`, act, toCellOf(tenant ?? key));
    await writeOutput(`${output}\n`);
  });
