// Delivers events to webhooks.
//
// The tables are the truth: what waits, until when it waits, and who works for a subscriber until when (a lease of
// 60 s). A job is only a wake-up call that names a subscriber. One worker a subscriber, so the limit of requests at
// once holds across all of them. Whoever is killed leaves a lease that runs out; what it had sent and not
// recorded is sent again under the same webhook-id.
//
// A round is: claim what is due, send, record what came of it in one statement. Rounds go on for a slice; then the
// subscriber gives its place back, so that those who answer slowly do not keep the others waiting.
import { randomUUID } from "node:crypto";
import type { MasterKeys } from "../../crypto/keys.ts";
import { open, webhookPurpose } from "../../crypto/seal.ts";
import type { SteadyDatabase } from "../../database/reconnecting.ts";
import type { AttemptOutcome, WorkObserver } from "../metrics.ts";
import type { Outcome, Send } from "../webhook-sender.ts";

// Requests at once to one subscriber.
const atOnce = 4;
// A kill in the middle sends at most so many again.
const roundSize = 32;
// Nothing is begun after the slice: with the 15 s of an exchange that is far from the lease's end.
const sliceMs = 2_000;
// After the signal to stop what is under way may end in this time.
const graceMs = 2_000;
// Subscribers served at once by one process. They wait for their receivers and cost next to nothing.
export const deliveryPlaces = 32;

export type Subscriber = { tenant_id: number; party_id: number };

type Delivery = {
  event_id: string;
  external_id: string;
  body: string;
  attempt: number;
  url: string;
  sealed_secret: Uint8Array;
  sealed_previous_secret: Uint8Array | null;
  // External ids: they are part of the purpose that the secrets were sealed for.
  tenant: string;
  party: string;
};
type Result = {
  event_id: string;
  attempt: number;
  http_status: number | null;
  error: string | null;
  duration_ms: number;
  is_taken: boolean;
  retry_after_seconds: number | null;
  is_gone: boolean;
};
type Options = {
  database: SteadyDatabase;
  keys: MasterKeys;
  send: Send;
  stopping: AbortSignal;
  onAttempt?: WorkObserver["attempted"] | undefined;
};

export function createDeliverer({ database, keys, send, stopping, onAttempt }: Options) {
  let running = 0;
  const cutting = new AbortController();
  stopping.addEventListener("abort", () => setTimeout(() => cutting.abort(), graceMs).unref());

  // Subscribers for the places that are free here.
  async function listDue(): Promise<Subscriber[]> {
    if (running >= deliveryPlaces) return [];
    return database.rows<Subscriber>("select tenant_id, party_id from jobs.list_due_webhooks($1)", [
      deliveryPlaces - running,
    ]);
  }

  // On an error the lease is kept on purpose: it is the pause before the next attempt.
  async function deliver(subscriber: Subscriber): Promise<void> {
    // Another process's wake-up calls come here too. This one was for nothing, it will be repeated.
    if (running >= deliveryPlaces || stopping.aborted) return;
    running += 1;
    try {
      const holder = randomUUID();
      let deliveries = await claim(subscriber, holder);
      const sliceEnd = performance.now() + sliceMs;
      const isOver = () => performance.now() > sliceEnd || stopping.aborted;
      while (deliveries.length > 0) {
        await record(subscriber, await sendRound(deliveries, isOver));
        deliveries = isOver() ? [] : await claim(subscriber, holder);
      }
      await database.rows("select jobs.release_webhook($1, $2, $3)", [
        subscriber.tenant_id,
        subscriber.party_id,
        holder,
      ]);
    } finally {
      running -= 1;
    }
  }

  function claim({ tenant_id, party_id }: Subscriber, holder: string): Promise<Delivery[]> {
    return database.rows<Delivery>(
      `select event_id, external_id, body, attempt, url, sealed_secret, sealed_previous_secret, tenant, party
       from jobs.claim_deliveries($1, $2, $3, $4)`,
      [tenant_id, party_id, holder, roundSize],
    );
  }

  // What is not begun any more stays due as it was.
  async function sendRound(deliveries: Delivery[], isOver: () => boolean): Promise<Result[]> {
    const secrets = openSecrets(deliveries[0]!);
    const results: Result[] = [];
    const waiting = [...deliveries];
    let isUnwanted = false;
    async function lane(): Promise<void> {
      while (!isUnwanted && !isOver()) {
        const delivery = waiting.shift();
        if (delivery === undefined) return;
        const { external_id: id, url, body } = delivery;
        const outcome = await send({ id, url, body, secrets }, cutting.signal);
        if (outcome === null) return;
        const result = judge(delivery, outcome);
        isUnwanted ||= result.is_gone || result.retry_after_seconds !== null;
        results.push(result);
      }
    }
    await Promise.all(Array.from({ length: atOnce }, lane));
    return results;
  }

  function openSecrets({ tenant, party, sealed_secret, sealed_previous_secret }: Delivery): string[] {
    const sealed = sealed_previous_secret === null ? [sealed_secret] : [sealed_secret, sealed_previous_secret];
    return sealed.map((one) => open(keys, webhookPurpose(tenant, party), one));
  }

  async function record({ tenant_id, party_id }: Subscriber, results: Result[]): Promise<void> {
    if (results.length === 0) return;
    const recorded = await database.rows<{ outcome: AttemptOutcome }>(
      "select outcome from jobs.record_deliveries($1, $2, $3::text::jsonb)",
      [tenant_id, party_id, JSON.stringify(results)],
    );
    for (const { outcome } of recorded) onAttempt?.(outcome);
  }

  return { listDue, deliver };
}

function judge({ event_id, attempt }: Delivery, { httpStatus, error, durationMs, retryAfterSeconds }: Outcome): Result {
  return {
    event_id,
    attempt,
    http_status: httpStatus,
    error,
    duration_ms: durationMs,
    is_taken: httpStatus !== null && httpStatus >= 200 && httpStatus <= 299,
    retry_after_seconds: retryAfterSeconds,
    is_gone: httpStatus === 410,
  };
}
