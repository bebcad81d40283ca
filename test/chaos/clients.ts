// The clients: they send each call of the workload at its time, whatever happened to earlier calls, and record every
// answer.
import { setTimeout as sleep } from "node:timers/promises";
import type { Client, Reply } from "../support/client.ts";
import { createClient } from "../support/signing-client.ts";
import { pathOf } from "../support/path-of.ts";
import { secretOf } from "../support/tenants.ts";
import { waitUntil } from "../support/wait-until.ts";
import { finalOf, outcomeOf, verdictOf, type Attempt, type Entry, type History } from "./history.ts";
import type { Call, Scenario } from "./workload.ts";
import { tenants, type Variant } from "./tenants.ts";

// Coupon codes.
export type Pools = Record<Variant, { usual: string[]; short: string[] }>;
export type Clients = {
  // Runs until `stopping`, and resolves when no call is pending.
  run(workload: Iterator<Scenario>, stopping: AbortSignal): Promise<void>;
  // Retries every call with an unknown outcome until the outcome is known. Returns how many are still unknown.
  settle(withinMs: number): Promise<number>;
};
// mostPending: how many scenarios may be under way at once. Otherwise a machine that is too slow for the rate of the
// workload would never answer again.
type Parts = { url: string; pools: Pools; history: History; mostPending: number };

// The service promises an answer within 4 s. After 10 s we take it that none will come.
const noAnswerAfterMs = 10_000;
const resendAfterMs = 700;
const settlersAtOnce = 16;

export function createClients(parts: Parts): Clients {
  const { history, mostPending } = parts;
  const send = createSender(parts);
  let pending = 0;

  async function sendCall(call: Call): Promise<void> {
    const body = bodyOf(call, parts);
    if (body === null) return;
    const entry: Entry = { call, body, attempts: [] };
    history.entries.set(call.requestId, entry);
    await Promise.all([send(entry), call.again === "at once" ? send(entry) : null]);
    if (call.again === "later") {
      await sleep(resendAfterMs);
      await send(entry);
    }
  }

  async function runScenario({ steps, pauses }: Scenario): Promise<void> {
    pending += 1;
    for (const [index, calls] of steps.entries()) {
      await sleep(pauses[index]!);
      await Promise.all(calls.map(sendCall));
    }
    pending -= 1;
  }

  return {
    async run(workload, stopping) {
      const startAt = performance.now();
      while (!stopping.aborted) {
        const scenario = workload.next().value as Scenario;
        const earlyMs = startAt + scenario.atMs - performance.now();
        if (earlyMs > 1) await sleep(earlyMs);
        await waitUntil("the end of a scenario", () => pending < mostPending);
        void runScenario(scenario);
      }
      await waitUntil("the answers to the last calls", () => pending === 0);
    },
    async settle(withinMs) {
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

// Sends a call once more, and records the attempt.
function createSender({ url, history }: Parts): (entry: Entry) => Promise<Attempt> {
  const clients = new Map<string, Client>();
  const clientOf = (accessKey: string): Client => {
    const known = clients.get(accessKey) ?? createClient({ url, accessKey, secret: secretOf(accessKey) });
    clients.set(accessKey, known);
    return known;
  };
  return async ({ call, body, attempts }) => {
    const made: Attempt = { sentAt: performance.now(), endedAt: Infinity, status: null, code: "no answer", text: "" };
    attempts.push(made);
    history.attempts.push(made);
    const options =
      call.idempotencyKey === null || call.kind === "query" ? {} : { idempotencyKey: call.idempotencyKey };
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), noAnswerAfterMs);
    });
    const reply: Reply | Error | null = await Promise.race([
      clientOf(call.accessKey)
        .post(pathOf(call.kind), body, options)
        .catch((error: Error) => error),
      tooLate,
    ]);
    clearTimeout(timer);
    made.endedAt = performance.now();
    if (reply instanceof Error) made.code = "connection lost";
    else if (reply !== null)
      Object.assign(made, { status: reply.status, code: reply.json?.code ?? null, text: reply.text });
    return made;
  };
}

// Null when the call depends on an answer that the client does not have.
function bodyOf(call: Call, { pools, history }: Parts): Record<string, unknown> | null {
  const { requestId: request_id, merchant, variant, about } = call;
  const pool = pools[variant][call.isShort ? "short" : "usual"];
  const coupon = pool[call.coupon % pool.length];
  const earlier = about === null ? undefined : history.entries.get(about);
  const answer = earlier === undefined ? null : finalOf(earlier);
  const known = answer?.status === 200 ? JSON.parse(answer.text) : null;
  switch (call.kind) {
    case "redeem":
    case "lock":
      return { request_id, coupon, merchant, order_amount: 20 + (call.coupon % 100) };
    case "confirm":
      return { request_id, coupon, merchant, lock_request_id: about };
    case "cancel":
      return { request_id, coupon, lock_request_id: about };
    case "void":
      return { request_id, coupon, merchant };
    case "query":
      return { coupon, merchant };
    case "reverse":
      return known && { request_id, redemption: known.redemption };
    case "create_batch":
      return { request_id, template: tenants[variant].template, total_count: call.count };
    case "allocate_batch":
      return known && { request_id, batch: known.batch.external_id };
  }
}
