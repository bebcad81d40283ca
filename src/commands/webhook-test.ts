// npm run webhooks -- test: a test event, and what became of it.
import { setTimeout } from "node:timers/promises";
import { defineCommand } from "../command-line/command.ts";
import { eventTypes } from "../formats/event-types.ts";
import { keySettings } from "../config/settings.ts";
import type { Database } from "../database/types.ts";
import type { Context } from "./admin-context.ts";
import { party, tenant } from "./webhook-context.ts";

type Attempt = { http_status: number | null; error: string | null; duration_ms: number };

export const test = defineCommand({
  name: "test",
  about: "Sends a signed test event and waits for its attempt. Feed, ledger and statements do not change.",
  words: { tenant, party, type: { about: "default: coupon.redeemed", isOptional: true, choices: eventTypes } },
  settings: keySettings,
  examples: ["ten_acme pty_maker", "ten_acme pty_maker batch.generated"],
  exitCodes: "0 the receiver took it, 1 failed",
  async run({ words }, { database }: Context) {
    const type = words.type ?? "coupon.redeemed";
    const text = "select admin.test_webhook($1, $2, $3) as event";
    const [sent] = await database.rows<{ event: string }>(text, [words.tenant, words.party, type]);
    return waitForAttempt(database, words, sent!.event);
  },
});

// An attempt takes at most 15 s, and begins when the worker has a place for this subscriber. The index of attempts is
// by party and time.
async function waitForAttempt(
  database: Database,
  { tenant, party }: { tenant: string; party: string },
  event: string,
): Promise<string> {
  const text = `select http_status, error, duration_ms from report.delivery_attempt
    where tenant = $1 and party = $2 and attempted_at > now() - interval '5 minutes' and test_event = $3`;
  for (let round = 0; round < 150; round += 1) {
    const [attempt] = await database.rows<Attempt>(text, [tenant, party, event]);
    if (attempt === undefined) {
      await setTimeout(200);
      continue;
    }
    const { http_status, error, duration_ms } = attempt;
    const outcome = `${event}: ${error ?? `HTTP ${http_status}`} after ${duration_ms} ms`;
    if (http_status === null || http_status < 200 || http_status > 299) throw new Error(outcome);
    return outcome;
  }
  throw new Error(`${event} still waits after 30 s: is \`npm run work\` running, and is the webhook paused?`);
}
