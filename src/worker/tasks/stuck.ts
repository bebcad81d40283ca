// Work that waits because of the rows of one party: tries its events and business days again, and logs what is stuck.
// All other work is retried by its own task, about once a minute.
import type { Logger } from "../../common/log.ts";
import type { ReconnectingDatabase } from "../../database/reconnecting.ts";
import { repeatThrottled } from "../throttle.ts";

// Half a step of the sequencer: a party that catches up takes turns with the others.
const stepSize = 500;

type Stuck = { work: string; tenant: string; party: string; subject: string; reason: string };
// This uses the connection of the sequencer, so the two never wait for each other's locks.
type Parts = {
  sequencer: ReconnectingDatabase;
  database: ReconnectingDatabase;
  log: Logger;
  stopping: AbortSignal;
};

export function createUnsticker({ sequencer, database, log, stopping }: Parts) {
  let known = new Map<string, Stuck>();

  /** Retries each stuck party whose rest is over. */
  const retry = () => {
    const text = "select jobs.try_stuck_work($1) as done";
    const step = async () => (await sequencer.rows<{ done: number }>(text, [stepSize]))[0]!.done;
    return repeatThrottled(step, stopping);
  };

  /** Logs what has become stuck since the last call, and what is no longer stuck. */
  async function logChanges(): Promise<void> {
    const rows = await database.rows<Stuck>("select work, tenant, party, subject, reason from jobs.list_stuck_work()");
    const found = new Map(rows.map((row) => [[row.work, row.tenant, row.party, row.subject].join(" "), { ...row }]));
    for (const [key, stuck] of found)
      if (known.get(key)?.reason !== stuck.reason) log.error(stuck, "work is stuck; only this party waits");
    for (const [key, { work, tenant, party, subject }] of known)
      if (!found.has(key)) log.info({ work, tenant, party, subject }, "work is no longer stuck");
    known = found;
  }

  return { retry, logChanges };
}
