// The clients: send the calls of the stories when their time has come, whatever became of those before, and note each answer.
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, type Client, type Reply } from "../../src/commands/client.ts";
import { finalOf, outcomeOf, verdictOf, type Attempt, type Entry, type History } from "./history.ts";
import type { Call, Story } from "./workload.ts";
import { secretOf, tenants, type Variant } from "./tenants.ts";

export type Piles = Record<Variant, { usual: string[]; short: string[] }>;
export type Clients = {
  // Until told to stop. Gives back when nothing is under way any more.
  play(stories: Iterator<Story>, stopping: AbortSignal): Promise<void>;
  // Sends again what nobody knows about, until it is judged. Gives the number of those for which there was no time.
  settle(withinMs: number): Promise<number>;
  send(call: Call): Promise<Attempt | null>;
};

// Four seconds are promised; who waits so long does not wait for an answer but for a proof that there is none.
const noAnswerAfterMs = 10_000;
const paths: Record<Call["kind"], string> = {
  redeem: "/v1/coupons/redeem",
  lock: "/v1/coupons/lock",
  confirm: "/v1/coupons/confirm",
  cancel: "/v1/coupons/cancel",
  void: "/v1/coupons/void",
  query: "/v1/coupons/query",
  reverse: "/v1/redemptions/reverse",
  create_batch: "/v1/batches",
  allocate_batch: "/v1/batches/allocate",
};
const settlersAtOnce = 16;

export function createClients({ url, piles, history }: { url: string; piles: Piles; history: History }): Clients {
  const clients = new Map<string, Client>();
  let underWay = 0;

  function clientOf(accessKey: string): Client {
    const known = clients.get(accessKey) ?? createClient({ url, accessKey, secret: secretOf(accessKey) });
    clients.set(accessKey, known);
    return known;
  }

  // What the call is about has to be known: else a client would not send it.
  function bodyOf(call: Call): Record<string, unknown> | null {
    const { requestId: request_id, merchant, variant, about } = call;
    const pile = piles[variant][call.isShort ? "short" : "usual"];
    const coupon = pile[call.coupon % pile.length];
    const answer = about === null ? null : finalOf(history.entries.get(about) ?? { call, body: {}, attempts: [] });
    const told = answer?.status === 200 ? JSON.parse(answer.text) : null;
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
        return told && { request_id, redemption: told.redemption };
      case "create_batch":
        return { request_id, template: tenants[variant].template, total_count: call.count };
      case "allocate_batch":
        return told && { request_id, batch: told.batch.external_id };
    }
  }

  async function attempt({ call, body, attempts }: Entry): Promise<Attempt> {
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
        .post(paths[call.kind], body, options)
        .catch((error: Error) => error),
      tooLate,
    ]);
    clearTimeout(timer);
    made.endedAt = performance.now();
    if (reply instanceof Error) made.code = "connection lost";
    else if (reply !== null)
      Object.assign(made, { status: reply.status, code: reply.json?.code ?? null, text: reply.text });
    return made;
  }

  async function send(call: Call): Promise<Attempt | null> {
    const body = bodyOf(call);
    if (body === null) return null;
    const entry: Entry = { call, body, attempts: [] };
    history.entries.set(call.requestId, entry);
    const [first] = await Promise.all([attempt(entry), call.again === "at once" ? attempt(entry) : null]);
    if (call.again === "later") {
      await sleep(700);
      await attempt(entry);
    }
    return first;
  }

  async function playOne({ stages, pauses }: Story): Promise<void> {
    underWay += 1;
    for (const [index, calls] of stages.entries()) {
      await sleep(pauses[index]!);
      await Promise.all(calls.map(send));
    }
    underWay -= 1;
  }

  return {
    send,
    async play(stories, stopping) {
      const startAt = performance.now();
      while (!stopping.aborted) {
        const story = stories.next().value as Story;
        const earlyMs = startAt + story.atMs - performance.now();
        if (earlyMs > 1) await sleep(earlyMs);
        void playOne(story);
      }
      while (underWay > 0) await sleep(20);
    },
    async settle(withinMs) {
      const endAt = performance.now() + withinMs;
      const open = [...history.entries.values()].filter(
        (entry) => entry.call.kind !== "query" && outcomeOf(entry) === "unknown",
      );
      const waiting = [...open];
      const settleNext = async (): Promise<void> => {
        for (let entry = waiting.shift(); entry !== undefined; entry = waiting.shift()) {
          while (performance.now() < endAt && verdictOf(await attempt(entry)) === "unknown") await sleep(200);
        }
      };
      await Promise.all(Array.from({ length: settlersAtOnce }, settleNext));
      return open.filter((entry) => outcomeOf(entry) === "unknown").length;
    },
  };
}
