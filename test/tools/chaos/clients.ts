// The clients, and the history of what they sent and which answers they got. A call may be sent many times under its
// request_id; all its final answers must be the same bytes. Times are on the clock of performance.now().
import { setTimeout as sleep } from "node:timers/promises";
import { pathOf } from "../../support/path-of.ts";
import { createClient, isReplay } from "../../support/client.ts";
import { secretOf } from "../../support/tenants.ts";
import type { Call, Scenario } from "./workload.ts";

// endedAt: Infinity while the attempt runs.
export type Attempt = {
  sentAt: number;
  endedAt: number;
  status: number | null;
  code: string | null;
  text: string;
  isReplay: boolean;
};
// ok and refused are final. unprocessed: the call never reached a decision. unknown: it may have taken effect.
export type Verdict = "ok" | "refused" | "unprocessed" | "unknown";
export type Entry = { call: Call; body: Record<string, unknown>; attempts: Attempt[] };
// startedAt: what the clock of the machine showed at 0.
export type History = { entries: Map<string, Entry>; attempts: Attempt[]; startedAt: number };

const notFinal = new Set(["IDEMPOTENCY_KEY_REUSED", "COUPON_CODE_INVALID", "ROUTE_NOT_FOUND"]);
// The service promises an answer within 4 s. After 10 s we take it that none will come.
const noAnswerAfterMs = 10_000;
const settlersAtOnce = 16;
const steadyCount = 50;

export function verdictOf({ status, code }: Attempt): Verdict {
  if (status === 200) return "ok";
  if (code === "REQUEST_IN_PROGRESS" || status === null || status === 429 || status >= 500) return "unknown";
  return [404, 409, 422].includes(status) && !notFinal.has(code ?? "") ? "refused" : "unprocessed";
}

export const isFinal = (attempt: Attempt): boolean => ["ok", "refused"].includes(verdictOf(attempt));

export const finalOf = ({ attempts }: Entry): Attempt | null => attempts.find(isFinal) ?? null;

// An unprocessed retry proves nothing about an earlier attempt that may have taken effect.
export function outcomeOf(entry: Entry): Verdict {
  const final = finalOf(entry);
  if (final !== null) return verdictOf(final);
  return entry.attempts.some((attempt) => verdictOf(attempt) === "unknown") ? "unknown" : "unprocessed";
}

// Calls are served again when the latest fifty attempts since then have a known outcome. Returns after how many
// milliseconds the first of them was answered, or null if they are not served yet.
export function servedAfter({ attempts }: History, since: number): number | null {
  const ended = attempts
    .filter(({ sentAt, endedAt }) => sentAt >= since && endedAt < Infinity)
    .sort((a, b) => a.endedAt - b.endedAt);
  const served = ended.slice(ended.findLastIndex((attempt) => verdictOf(attempt) === "unknown") + 1);
  return served.length < steadyCount ? null : served[0]!.endedAt - since;
}

export type Clients = ReturnType<typeof startClients>;

// Each client performs one scenario after the other, whatever happens.
export function startClients(url: string, workload: Iterator<Scenario>, count: number, history: History) {
  const send = createSender(url, history);
  let isStopping = false;

  async function sendCall(call: Call): Promise<void> {
    const body = bodyOf(call, history);
    if (body === null) return;
    const entry: Entry = { call, body, attempts: [] };
    history.entries.set(call.requestId, entry);
    await Promise.all([send(entry), call.again === "at once" ? send(entry) : null]);
    if (call.again === "later") await send(entry);
  }

  async function runClient(): Promise<void> {
    while (!isStopping) {
      const { steps, pauseMs } = workload.next().value as Scenario;
      for (const calls of steps) {
        await sleep(pauseMs());
        await Promise.all(calls.map(sendCall));
      }
    }
  }

  const running = Promise.all(Array.from({ length: count }, runClient));
  return {
    /** Stops after the scenarios that have begun. */
    async stop() {
      isStopping = true;
      await running;
    },
    /** Retries every call with an unknown outcome until the outcome is known. Returns how many are still unknown. */
    async settle(withinMs: number) {
      const endAt = performance.now() + withinMs;
      const open = [...history.entries.values()].filter(
        (entry) => entry.call.kind !== "query" && outcomeOf(entry) === "unknown",
      );
      const waiting = [...open];
      const settleNext = async (): Promise<void> => {
        for (let entry = waiting.shift(); entry !== undefined; entry = waiting.shift()) {
          while (performance.now() < endAt && verdictOf(await send(entry)) === "unknown") await sleep(200);
        }
      };
      await Promise.all(Array.from({ length: settlersAtOnce }, settleNext));
      return open.filter((entry) => outcomeOf(entry) === "unknown").length;
    },
  };
}

// Null when the call depends on an answer that the client does not have.
function bodyOf({ requestId, kind, values, needs }: Call, { entries }: History): Record<string, unknown> | null {
  const body = { request_id: requestId, ...values };
  if (needs === null) return body;
  const earlier = entries.get(needs);
  const answer = earlier === undefined ? null : finalOf(earlier);
  if (answer?.status !== 200) return null;
  const { redemption, batch } = JSON.parse(answer.text);
  return { ...body, ...(kind === "reverse" ? { redemption } : { batch: batch.external_id }) };
}

// Sends a call once more, and records the attempt.
function createSender(url: string, history: History): (entry: Entry) => Promise<Attempt> {
  return async ({ call: { accessKey, kind, idempotencyKey }, body, attempts }) => {
    const client = createClient({ url, accessKey, secret: secretOf(accessKey) });
    const attempt: Attempt = {
      sentAt: performance.now(),
      endedAt: Infinity,
      status: null,
      code: "no answer",
      text: "",
      isReplay: false,
    };
    attempts.push(attempt);
    history.attempts.push(attempt);
    const options = idempotencyKey === null || kind === "query" ? {} : { idempotencyKey };
    const answer = client.post(pathOf(kind), body, options).catch((error: Error) => error);
    const reply = await Promise.race([answer, sleep(noAnswerAfterMs, null, { ref: false })]);
    attempt.endedAt = performance.now();
    if (reply instanceof Error) attempt.code = "connection lost";
    else if (reply !== null)
      Object.assign(attempt, {
        status: reply.status,
        code: reply.json?.code ?? null,
        text: reply.text,
        isReplay: isReplay(reply),
      });
    return attempt;
  };
}
