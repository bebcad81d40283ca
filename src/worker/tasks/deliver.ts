// Delivers events to webhooks.
//
// The tables record which deliveries wait, until when, and who holds the lease of a subscriber (60 s). A job is only a
// wake-up call that names a subscriber. One worker at a time serves a subscriber, so the limit of concurrent requests
// holds across all workers. The lease of a killed worker ends with its session; deliveries that it sent but did not
// record are sent again with the same webhook-id. A worker that loses its session cuts its requests off.
//
// A round leases due deliveries, sends them and records the outcomes in one statement. jobs.lease_deliveries puts
// redemptions before expiries. A round is short, so a redemption that happens meanwhile waits for few requests. Rounds
// repeat for one time slice. Then the next subscriber gets the place, so that slow receivers do not delay the others.
import { randomUUID } from "node:crypto";
import { renderEvent } from "../../formats/event-json.ts";
import type { Logger } from "../../common/log.ts";
import type { MasterKeys } from "../../crypto/keys.ts";
import { open, webhookPurpose } from "../../crypto/seal.ts";
import type { ReconnectingDatabase } from "../../database/reconnecting.ts";
import type { AttemptOutcome, WorkObserver } from "../metrics.ts";
import type { GetWorkerSession } from "../worker-session.ts";
import { noteStuckWork, useStored } from "../stuck-work.ts";
import type { Attempt, Send, Webhook } from "../webhook-sender.ts";

/** Subscribers that one process serves at once. They wait for their receivers and cost almost nothing. */
export const maxSubscribersAtOnce = 32;
// Concurrent requests to one subscriber.
const maxRequestsAtOnce = 4;
// Deliveries per round. After a kill, at most this many are sent again.
const roundSize = 32;
// No request of a round starts later: its other deliveries are leased again, after those that go first.
const roundMs = 500;
// No request starts after the slice. With 15 s for an exchange, that leaves most of the lease unused.
const sliceMs = 2_000;
// How long running requests may continue after the signal to stop.
const graceMs = 2_000;

export type Subscriber = { tenant_id: number; party_id: number };
type Lease = Subscriber & { worker: number; holder: string };

type Delivery = {
  event_id: string;
  external_id: string;
  // The fields of a real event as JSON, or the body of a test event.
  event: string | null;
  test_body: string | null;
  attempt: number;
  url: string;
  /** The secrets that sign, the current one first. */
  sealed_secrets: Uint8Array[];
  // External IDs of tenant and party. The secrets are sealed for this pair.
  tenant: string;
  party: string;
  // Null: a real event.
  test_event_type: string | null;
};
type AttemptRecord = {
  event_id: string;
  test_event_type: string | null;
  attempt: number;
  http_status: number | null;
  error: string | null;
  /** What the subscriber sees of the error. */
  reason: string | null;
  duration_ms: number;
  is_taken: boolean;
  retry_after_seconds: number | null;
  is_gone: boolean;
};
type Names = Pick<Delivery, "tenant" | "party">;
type Parts = {
  database: ReconnectingDatabase;
  keys: MasterKeys;
  send: Send;
  getSession: GetWorkerSession;
  stopping: AbortSignal;
  log: Logger;
  onAttempt?: WorkObserver["attempted"] | undefined;
};

export function createDeliverer({ database, keys, send, getSession, stopping, log, onAttempt }: Parts) {
  let running = 0;
  const cutting = new AbortController();
  stopping.addEventListener("abort", () => setTimeout(() => cutting.abort(), graceMs).unref());

  /** Returns due subscribers, at most as many as this process has free places. */
  async function listDue(): Promise<Subscriber[]> {
    const free = maxSubscribersAtOnce - running;
    if (free <= 0 || getSession() === null) return [];
    return database.rows<Subscriber>("select tenant_id, party_id from jobs.list_due_webhooks($1)", [free]);
  }

  // After an error the lease is kept on purpose: no worker tries again until it expires.
  async function deliver(subscriber: Subscriber): Promise<void> {
    // Jobs that other processes added arrive here too. If there is no free place, drop this job: it will be added
    // again.
    const session = getSession();
    if (running >= maxSubscribersAtOnce || session === null || stopping.aborted) return;
    running += 1;
    try {
      const lease: Lease = { ...subscriber, worker: session.number, holder: randomUUID() };
      const cut = AbortSignal.any([cutting.signal, session.lost]);
      let deliveries = await leaseDeliveries(database, lease);
      // The slice begins after the lease: a lease that takes longer than the slice would leave no time to send.
      const sliceEnd = performance.now() + sliceMs;
      const isOver = () => performance.now() > sliceEnd || session.lost.aborted || stopping.aborted;
      while (deliveries.length > 0) {
        await record(lease, deliveries[0]!, await sendRound(deliveries, isOver, cut));
        deliveries = isOver() ? [] : await leaseDeliveries(database, lease);
      }
      const params = [lease.tenant_id, lease.party_id, lease.holder];
      await database.rows("select jobs.end_webhook_lease($1, $2, $3)", params);
    } catch (error) {
      await noteStuckWork(database, { work: "webhook", ...subscriber }, error);
      throw error;
    } finally {
      running -= 1;
    }
  }

  // Deliveries that are not sent in this round stay due.
  async function sendRound(deliveries: Delivery[], isOver: () => boolean, cut: AbortSignal): Promise<AttemptRecord[]> {
    const secrets = openSecrets(keys, deliveries[0]!);
    const records: AttemptRecord[] = [];
    const waiting = deliveries.values();
    const roundEnd = performance.now() + roundMs;
    let isRefused = false;
    async function sendInTurn(): Promise<void> {
      for (const delivery of waiting) {
        if (isRefused || isOver() || performance.now() > roundEnd) return;
        const attempt = await send(toWebhook(delivery, secrets), cut);
        if (attempt === null) return;
        const record = toRecord(delivery, attempt);
        isRefused ||= record.is_gone || record.retry_after_seconds !== null;
        records.push(record);
      }
    }
    await Promise.all(Array.from({ length: maxRequestsAtOnce }, sendInTurn));
    return records;
  }

  async function record(lease: Lease, subscriber: Names, records: AttemptRecord[]): Promise<void> {
    if (records.length === 0) return;
    const outcomes = await recordDeliveries(database, lease, records);
    for (const outcome of outcomes) onAttempt?.(outcome);
    logFailures(log, subscriber, records, outcomes);
  }

  return { listDue, deliver };
}

function leaseDeliveries(
  database: ReconnectingDatabase,
  { tenant_id, party_id, worker, holder }: Lease,
): Promise<Delivery[]> {
  return database.rows<Delivery>(
    `select event_id, external_id, event, test_body, attempt, url, sealed_secrets, tenant,
            party, test_event_type
     from jobs.lease_deliveries($1, $2, $3, $4, $5)`,
    [tenant_id, party_id, worker, holder, roundSize],
  );
}

async function recordDeliveries(
  database: ReconnectingDatabase,
  { tenant_id, party_id, holder }: Lease,
  records: AttemptRecord[],
): Promise<AttemptOutcome[]> {
  const rows = await database.rows<{ outcome: AttemptOutcome }>(
    "select outcome from jobs.record_deliveries($1, $2, $3, $4::text::jsonb)",
    [tenant_id, party_id, holder, JSON.stringify(records)],
  );
  return rows.map(({ outcome }) => outcome);
}

// A replaced secret that cannot be opened no longer signs. Otherwise a new secret would not help for 24 h.
function openSecrets(keys: MasterKeys, { tenant, party, sealed_secrets }: Delivery): string[] {
  const openOne = (one: Uint8Array) => useStored(() => open(keys, webhookPurpose(tenant, party), one));
  const [current, ...replaced] = sealed_secrets;
  const opened = replaced.flatMap((one) => {
    try {
      return [openOne(one)];
    } catch {
      return [];
    }
  });
  return [openOne(current!), ...opened];
}

function toWebhook(delivery: Delivery, secrets: string[]): Webhook {
  const { external_id: id, url, event, test_body, test_event_type } = delivery;
  const body = useStored(() => test_body ?? renderEvent(JSON.parse(event!)));
  return { id, url, body, secrets, isTest: test_event_type !== null };
}

function toRecord(
  { event_id, test_event_type, attempt }: Delivery,
  { httpStatus, error, reason, durationMs, retryAfterSeconds }: Attempt,
): AttemptRecord {
  return {
    event_id,
    test_event_type,
    attempt,
    http_status: httpStatus,
    error,
    reason,
    duration_ms: durationMs,
    is_taken: httpStatus !== null && httpStatus >= 200 && httpStatus <= 299,
    retry_after_seconds: retryAfterSeconds,
    is_gone: httpStatus === 410,
  };
}

// One line for a round, so that a backlog does not fill the log. It names no URL, which may hold a token.
function logFailures(
  log: Logger,
  { tenant, party }: Names,
  records: AttemptRecord[],
  outcomes: AttemptOutcome[],
): void {
  const failures = records.filter(({ is_taken }) => !is_taken);
  const last = failures.at(-1);
  if (last === undefined) return;
  const count = (outcome: AttemptOutcome) => outcomes.filter((one) => one === outcome).length;
  const isDisabled = failures.some(({ is_gone }) => is_gone);
  log.warn(
    {
      tenant,
      party,
      failed: failures.length,
      parked: count("parked"),
      error: last.error ?? `HTTP ${last.http_status}`,
      attempt: last.attempt,
      is_test: last.test_event_type !== null,
    },
    isDisabled ? "a webhook answered 410 and is disabled" : "a webhook failed",
  );
}
