// npm run webhooks -- COMMAND: shows deliveries and lets an operator act on them. Each change calls a function of
// schema admin, which you can also call in psql, and is recorded in the audit table with its reason.
import { defineCommand, groupCommands } from "../command-line/command.ts";
import { timestamp } from "../formats/field-types.ts";
import { keySettings } from "../config/settings.ts";
import { hashSecret, seal, webhookPurpose } from "../crypto/seal.ts";
import { newWebhookSecret } from "../crypto/webhook-signature.ts";
import { provideAdminContext, reason, type Context } from "./admin-context.ts";
import { formatRows, json } from "./table.ts";
import { party, tenant } from "./webhook-context.ts";
import { listen } from "./webhook-listener.ts";
import { test } from "./webhook-test.ts";

const anyTenant = { about: "only this tenant", isOptional: true } as const;
const anyParty = { about: "only this party of the tenant", isOptional: true } as const;
const limit = { type: "count", value: "N", about: "at most this many rows", default: 100 } as const;
const settings = keySettings;

const status = defineCommand({
  name: "status",
  about: "Shows the state of deliveries to each subscriber in numbers.",
  words: { tenant: anyTenant, party: anyParty },
  flags: { json },
  settings,
  examples: ["", "ten_acme pty_maker --json"],
  async run({ words, flags }, { database }: Context) {
    await refuseUnknown(database, words);
    return formatRows(
      await database.rows(
        `select tenant, party, health, waiting::int, failing::int, parked::int, oldest_waiting_at,
                attempts_24h::int, failures_24h::int, round(p95_ms_24h) as p95_ms_24h, last_attempt_at,
                last_failure_at, last_error, u.url
         from report.webhook_health
         join admin.list_webhooks() u using (tenant, party)
         where tenant = coalesce($1, tenant) and party = coalesce($2, party)
         order by tenant, party`,
        [words.tenant ?? null, words.party ?? null],
      ),
      flags,
    );
  },
});

const parked = defineCommand({
  name: "parked",
  about: "Lists parked deliveries, oldest first. They were given up after their last attempt.",
  words: { tenant: anyTenant, party: anyParty },
  flags: { limit, json },
  settings,
  examples: ["ten_acme --limit 20"],
  async run({ words, flags }, { database }: Context) {
    await refuseUnknown(database, words);
    return formatRows(
      await database.rows(
        `select tenant, party, event, event_type, recorded_at, attempt_count as attempts, parked_at, last_error
         from report.delivery
         where status = 'PARKED' and tenant = coalesce($1, tenant) and party = coalesce($2, party)
         order by recorded_at, event
         limit $3`,
        [words.tenant ?? null, words.party ?? null, flags.limit],
      ),
      flags,
    );
  },
});

const log = defineCommand({
  name: "log",
  about: "Shows attempts of the last 30 days, newest first.",
  words: { tenant, party },
  flags: { limit, json },
  settings,
  examples: ["ten_acme pty_maker --limit 20"],
  async run({ words, flags }, { database }: Context) {
    await refuseUnknown(database, words);
    return formatRows(
      await database.rows(
        `select attempted_at, coalesce(event, test_event) as event, attempt, http_status, duration_ms, error,
                test_event_type as test
         from report.delivery_attempt
         where tenant = $1 and party = $2
         order by attempted_at desc, event
         limit $3`,
        [words.tenant, words.party, flags.limit],
      ),
      flags,
    );
  },
});

/** An empty list would look as if there were no deliveries. */
async function refuseUnknown(
  database: Context["database"],
  { tenant = null, party = null }: { tenant?: string | null | undefined; party?: string | null | undefined },
): Promise<void> {
  const rows = await database.rows(
    "select from admin.list_webhooks() where tenant = coalesce($1, tenant) and party = coalesce($2, party) limit 1",
    [tenant, party],
  );
  if (rows.length > 0 || tenant === null) return;
  const [known] = await database.rows("select from report.tenant where tenant = $1", [tenant]);
  if (known === undefined) throw new Error(`there is no tenant ${tenant}`);
  if (party !== null) throw new Error(`tenant ${tenant} has no party ${party} with a webhook`);
}

const replay = defineCommand({
  name: "replay",
  about:
    "Sends events again, with the same webhook-id. It sends one event, those from FROM until TO, or all parked ones.",
  forms: ["TENANT EVENT --reason WHY", "TENANT PARTY FROM TO --reason WHY", "TENANT PARTY --parked --reason WHY"],
  words: {
    tenant,
    target: { about: "EVENT, evt_…, or PARTY, pty_…" },
    from: { about: "a time such as 2026-01-31T00:00:00Z", isOptional: true },
    to: { about: "a later time", isOptional: true },
  },
  flags: { parked: { type: "switch", about: "all parked deliveries of the party" }, reason },
  settings,
  examples: ['ten_acme evt_… --reason "receiver lost it"', 'ten_acme pty_maker --parked --reason "receiver is back"'],
  refuse({ words: { target, from, to }, flags }) {
    const isEvent = target.startsWith("evt_");
    const isRange = from !== undefined && to !== undefined;
    if (isRange && (isEvent || flags.parked)) return "FROM and TO belong to a PARTY, without --parked";
    if (isRange) return refuseTime(from) ?? refuseTime(to);
    if (from !== undefined) return "TO is missing";
    return isEvent === flags.parked ? "name an EVENT, or a PARTY with FROM and TO or with --parked" : null;
  },
  async run({ words, flags }, { database }: Context) {
    const { target, from, to } = words;
    const send = async (sql: string, ...more: string[]): Promise<string> => {
      const [row] = await database.rows<{ count: number }>(sql, [words.tenant, target, ...more, flags.reason]);
      return `${row!.count} to be sent again`;
    };
    if (flags.parked) return send("select admin.replay_parked($1, $2, $3) as count");
    if (from === undefined || to === undefined) return send("select 1 as count from admin.replay_event($1, $2, $3)");
    return send(
      "select admin.replay_range($1, $2, $3::text::timestamptz, $4::text::timestamptz, $5) as count",
      from,
      to,
    );
  },
});

const rotate = defineCommand({
  name: "rotate",
  about: "Prints a new secret once; the old one also signs for 24 hours.",
  words: { tenant, party },
  flags: { reason },
  settings,
  examples: ['ten_acme pty_maker --reason "secret leaked"'],
  // The database never sees a secret, so this program generates and seals it.
  async run({ words, flags }, { database, keys }: Context) {
    const secret = newWebhookSecret();
    const sealed = seal(keys, webhookPurpose(words.tenant, words.party), secret).toString("hex");
    await database.rows("select admin.set_webhook_secret($1, $2, decode($3, 'hex'), decode($4, 'hex'), $5)", [
      words.tenant,
      words.party,
      sealed,
      hashSecret(keys, secret),
      flags.reason,
    ]);
    return secret;
  },
});

const enable = defineCommand({
  name: "enable",
  about: "Resumes deliveries of new events after a 410 or a disable. Use replay for the events in between.",
  words: { tenant, party },
  flags: { reason },
  settings,
  examples: ['ten_acme pty_maker --reason "receiver is back"'],
  async run({ words, flags }, { database }: Context) {
    await database.rows("select admin.enable_webhook($1, $2, $3)", [words.tenant, words.party, flags.reason]);
    return "enabled: new events are delivered; use replay for parked events and those in between";
  },
});

const disable = defineCommand({
  name: "disable",
  about: "Stops delivering and parks waiting deliveries.",
  words: { tenant, party },
  flags: { reason },
  settings,
  examples: ['ten_acme pty_maker --reason "their wish"'],
  async run({ words, flags }, { database }: Context) {
    await database.rows("select admin.disable_webhook($1, $2, $3)", [words.tenant, words.party, flags.reason]);
    return "disabled";
  },
});

/** Each command returns the text to print. */
export const webhooks = groupCommands<Context, string>({
  name: "webhooks",
  about: "Shows and repairs webhook deliveries. Each change needs a reason and is audited.",
  settings,
  commands: [status, parked, log, replay, rotate, enable, disable, test],
});

function refuseTime(text: string): string | null {
  const { error } = timestamp.safeParse(text);
  return error === undefined ? null : `${text}: ${error.issues[0]!.message}`;
}

const withDatabase = provideAdminContext(webhooks);

export const command = { ...withDatabase, commands: [...withDatabase.commands, listen] };
