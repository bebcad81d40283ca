// Sends a call until it is decided: signed anew each time, with the same request_id.
import type { Agent, IncomingMessage } from "node:http";
import { parse, readRefusal, RefusedError, UnansweredError, type CouponError, type Refusal } from "./errors.ts";
import { isOpenAfter, isRepeatable, readRetryAfter, waitBefore } from "./retry.ts";
import { newNonce, signedHeaders, type Credential } from "./signature.ts";
import { exchange, type Reply } from "./transport.ts";

export type CallOptions = {
  /** Ends the call with the signal's reason. A write may have taken effect. */
  signal?: AbortSignal;
  /** An alias for the `request_id` of a write: a repeat with the same alias gets the first answer again. */
  idempotencyKey?: string;
};

export type SenderOptions = {
  /** For one attempt; 10,000 by default. In a download: for its start, and for each wait for bytes. */
  timeoutMs: number;
  /** The most times that a call is sent; 5 by default. */
  attempts: number;
  /** If the service asks to wait longer, the call throws its refusal instead; 30,000 by default. */
  longestWaitMs: number;
  /** Called for each answer, for logs and metrics. */
  onReply?: ((reply: ReplyInfo) => void) | undefined;
};

export type ReplyInfo = {
  operation: string;
  /** 1 for the first one. */
  attempt: number;
  status: number;
  /** Yours, or one that the service made. Null if the answer is not from the service. */
  requestId: string | null;
  /** The service repeated its recorded answer. */
  isReplay: boolean;
};

export type Endpoint = Credential & { url: string; agent: Agent };
export type Call = CallOptions & {
  operation: string;
  method: string;
  target: string;
  body?: unknown;
  isStreamed?: boolean;
};
// `stream` is the body of a download.
type Decided = { answer: unknown; stream: IncomingMessage | null };
type Failed = { error: CouponError; isRepeatable: boolean; retryAfterMs: number | null };
export type Sender = (call: Call) => Promise<Decided>;

export function createSender({ endpoint, options }: { endpoint: Endpoint; options: SenderOptions }): Sender {
  const clock = { offsetMs: 0 };
  return async function send(call) {
    const body = Buffer.from(call.body === undefined ? "" : JSON.stringify(call.body));
    let isOpen = false;
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await sendOnce(endpoint, options, { ...call, body, attempt, clock });
      if (!("error" in outcome)) return outcome;
      const { error, isRepeatable, retryAfterMs } = outcome;
      isOpen = isOpenAfter(error, isOpen);
      if (error instanceof RefusedError) error.mayHaveTakenEffect = isOpen;
      if (!isRepeatable || attempt >= options.attempts || (retryAfterMs ?? 0) > options.longestWaitMs) throw error;
      await waitBefore(attempt + 1, retryAfterMs, call.signal);
    }
  };
}

// clock: how far the clock of the service is ahead of ours, as soon as the service has told its time.
type Attempt = Call & { body: Uint8Array; attempt: number; clock: { offsetMs: number } };

async function sendOnce(endpoint: Endpoint, options: SenderOptions, sent: Attempt): Promise<Decided | Failed> {
  const { operation, method, target, body, isStreamed, idempotencyKey, signal, attempt, clock } = sent;
  const { url, agent } = endpoint;
  const timestamp = String(Math.floor((Date.now() + clock.offsetMs) / 1000));
  const headers = {
    ...signedHeaders(endpoint, { method, target, timestamp, nonce: newNonce(), body }),
    ...(method === "POST" && { "content-type": "application/json" }),
    // The service reads UTF-8. Node writes each character of a header as one byte.
    ...(idempotencyKey !== undefined && { "idempotency-key": Buffer.from(idempotencyKey).toString("latin1") }),
  };
  let reply: Reply;
  try {
    const { timeoutMs } = options;
    reply = await exchange({ url, method, target, headers, body, agent, timeoutMs, signal }, isStreamed);
  } catch (cause) {
    signal?.throwIfAborted();
    // Node refuses what cannot be a header, such as an idempotency-key with a line break.
    if (cause instanceof TypeError) throw cause;
    // The cause has probably ended the idle connections too, so the repeat must not use one of them.
    for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy();
    return { error: new UnansweredError(operation, null, cause), isRepeatable: true, retryAfterMs: null };
  }
  options.onReply?.({
    operation,
    attempt,
    status: reply.status,
    requestId: (reply.headers["x-request-id"] as string | undefined) ?? null,
    isReplay: reply.headers["idempotent-replayed"] === "true",
  });
  return judge(operation, reply, (refusal) => followClock(clock, refusal));
}

function judge(operation: string, reply: Reply, onRefusal: (refusal: Refusal) => void): Decided | Failed {
  const { status, headers, text, stream } = reply;
  const answer = stream === null ? parse(text) : {};
  // Every answer is an object.
  if (status === 200 && typeof answer === "object" && answer !== null && !Array.isArray(answer))
    return { answer, stream };
  const refusal = status === 200 ? null : readRefusal(status, text);
  const retryAfterMs = readRetryAfter(headers);
  // Proxies answer for the service with 5xx. Repeating does not help with other answers that are not from the service,
  // except a broken one of status 200.
  if (refusal === null)
    return {
      error: new UnansweredError(operation, status),
      isRepeatable: status === 200 || isRepeatable(status, null),
      retryAfterMs,
    };
  onRefusal(refusal);
  return {
    error: new RefusedError(operation, refusal, retryAfterMs),
    isRepeatable: isRepeatable(status, refusal),
    retryAfterMs,
  };
}

/** A till with a wrong clock works: the service tells its time. */
function followClock(clock: { offsetMs: number }, { code, details }: Refusal): void {
  if (code !== "TIMESTAMP_OUT_OF_WINDOW") return;
  const serverTime = Date.parse(String((details as { server_time?: unknown } | null)?.server_time));
  if (!Number.isNaN(serverTime)) clock.offsetMs = serverTime - Date.now();
}
