// npm run webhooks -- COMMAND: shows deliveries and lets an operator act on them. Each change calls a function of
// schema admin, which you can also call in psql, and is recorded in the audit table with its reason.
import { parseArgs } from "node:util";
import { readConfig } from "../common/config.ts";
import { timestamp } from "../common/fields.ts";
import { checkKeys, withAdminDatabase } from "./admin-database.ts";
import type { Database } from "../database/types.ts";
import { findAddress } from "../embedded/find-address.ts";
import { loadMasterKeys } from "../embedded/load-keys.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import { isProgram, runProgram } from "../common/program.ts";
import { hashSecret, seal, webhookPurpose } from "../crypto/seal.ts";
import { newWebhookSecret } from "../crypto/webhook-signature.ts";

const usage = `usage: npm run --silent webhooks -- COMMAND
  status [TENANT [PARTY]]                     deliveries to each subscriber in numbers
  parked [TENANT [PARTY]] [--limit N]         parked deliveries, oldest first
  log TENANT PARTY [--limit N]                attempts of the last 30 days, newest first
  replay TENANT evt_… --reason WHY            send one event again, with the same webhook-id
  replay TENANT PARTY FROM TO --reason WHY    events from FROM until TO (2026-01-31T00:00:00Z)
  replay TENANT PARTY --parked --reason WHY   all parked deliveries
  rotate TENANT PARTY --reason WHY            print a new secret once; the old one also signs for 24 h
  enable TENANT PARTY --reason WHY            deliver again after a 410 or a disable
  disable TENANT PARTY --reason WHY           stop delivering and park waiting deliveries`;

type Flags = { reason: string; isParked: boolean; limit: number };
type Context = { database: Database; keys: MasterKeys };
type Command = (context: Context, names: string[], flags: Flags) => Promise<string>;

const commands: Record<string, Command> = {
  async status({ database }, names) {
    const [tenant, party] = take(names, 0, 2);
    return table(
      await database.rows(
        `select tenant, party, health, waiting, failing, parked, oldest_waiting_at, attempts_24h, failures_24h,
                round(p95_ms_24h) as p95_ms_24h, last_attempt_at, url
         from report.webhook_health
         where tenant = coalesce($1, tenant) and party = coalesce($2, party)
         order by tenant, party`,
        [tenant ?? null, party ?? null],
      ),
    );
  },

  async parked({ database }, names, { limit }) {
    const [tenant, party] = take(names, 0, 2);
    return table(
      await database.rows(
        `select tenant, party, event, event_type, recorded_at, attempt_count as attempts, parked_at, last_error
         from report.delivery
         where status = 'PARKED' and tenant = coalesce($1, tenant) and party = coalesce($2, party)
         order by recorded_at, event
         limit $3`,
        [tenant ?? null, party ?? null, limit],
      ),
    );
  },

  async log({ database }, names, { limit }) {
    return table(
      await database.rows(
        `select attempted_at, event, attempt, http_status, duration_ms, error
         from report.delivery_attempt
         where tenant = $1 and party = $2
         order by attempted_at desc, event
         limit $3`,
        [...take(names, 2, 2), limit],
      ),
    );
  },

  async replay({ database }, names, { reason, isParked }) {
    const [tenant, target, from, to] = take(names, 2, 4);
    const replay = async (sql: string, ...more: string[]) => {
      const [row] = await database.rows<{ count: number }>(sql, [tenant, target, ...more, reason]);
      return `${row!.count} to be sent again`;
    };
    if (target!.startsWith("evt_") && names.length === 2 && !isParked) {
      await database.rows("select admin.replay_event($1, $2, $3)", [tenant, target, reason]);
      return "1 to be sent again";
    }
    if (names.length === 2 && isParked) return replay("select admin.replay_parked($1, $2, $3) as count");
    if (names.length !== 4 || isParked) throw new Error(usage);
    return replay(
      "select admin.replay_range($1, $2, $3::text::timestamptz, $4::text::timestamptz, $5) as count",
      readTime(from!),
      readTime(to!),
    );
  },

  // The database never sees a secret, so this program generates and seals it.
  async rotate({ database, keys }, names, { reason }) {
    const [tenant, party] = take(names, 2, 2) as [string, string];
    const secret = newWebhookSecret();
    const sealed = seal(keys, webhookPurpose(tenant, party), secret).toString("hex");
    await database.rows("select admin.set_webhook_secret($1, $2, decode($3, 'hex'), decode($4, 'hex'), $5)", [
      tenant,
      party,
      sealed,
      hashSecret(keys, secret),
      reason,
    ]);
    return secret;
  },

  async enable({ database }, names, { reason }) {
    await database.rows("select admin.enable_webhook($1, $2, $3)", [...take(names, 2, 2), reason]);
    return "enabled: new events are delivered; use replay for parked events and events from the meantime";
  },

  async disable({ database }, names, { reason }) {
    await database.rows("select admin.disable_webhook($1, $2, $3)", [...take(names, 2, 2), reason]);
    return "disabled";
  },
};

/** Returns the text to print. */
export async function runCommand(context: Context, args: string[]): Promise<string> {
  const { command, names, flags } = readArguments(args);
  return command(context, names, flags);
}

function take(names: string[], min: number, max: number): string[] {
  if (names.length < min || names.length > max) throw new Error(usage);
  return names;
}

function readTime(text: string): string {
  const parsed = timestamp.safeParse(text);
  if (!parsed.success) throw new Error(`${text}: ${parsed.error.issues[0]!.message}`);
  return text;
}

// A plain table. Cells may quote a receiver, so control characters are replaced: a terminal might execute them.
function table(rows: Record<string, unknown>[]): string {
  if (rows.length === 0) return "none";
  const cells = [Object.keys(rows[0]!), ...rows.map((row) => Object.values(row).map(show))];
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((line) => line[column]!.length)));
  return cells
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function show(value: unknown): string {
  if (value === null) return "-";
  return (value instanceof Date ? value.toISOString() : String(value)).replace(/\p{C}/gu, "?");
}

function readArguments(args: string[]) {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        reason: { type: "string", default: "" },
        parked: { type: "boolean", default: false },
        limit: { type: "string", default: "100" },
      },
    });
    const limit = Number(values.limit);
    const [name = "", ...names] = positionals;
    if (!Number.isInteger(limit) || limit < 1 || !Object.hasOwn(commands, name)) throw new Error(usage);
    return { command: commands[name]!, names, flags: { reason: values.reason, isParked: values.parked, limit } };
  } catch {
    throw new Error(usage);
  }
}

if (isProgram(import.meta)) {
  await runProgram(async () => {
    const config = readConfig();
    const address = findAddress(config);
    const keys = loadMasterKeys(config);
    const output = await withAdminDatabase(address, "coupon webhooks", async (database) => {
      await checkKeys(database, keys);
      return runCommand({ database, keys }, process.argv.slice(2));
    });
    console.log(output);
  });
}
