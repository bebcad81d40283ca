// Sends one webhook once, signed according to Standard Webhooks, and returns the outcome. Sending never throws: even a
// missing response is a value. Connections are not reused, so each one resolves its host again. Proxies from the
// environment are ignored: they would connect on our behalf and bypass the check of the address.
import { request as requestHttp, type ClientRequest, type IncomingMessage } from "node:http";
import { request as requestHttps, type RequestOptions } from "node:https";
import type { LookupFunction, TcpNetConnectOpts } from "node:net";
import { signWebhook } from "../crypto/webhook-signature.ts";
import { AttemptFailure, describeFailure, findReason } from "./attempt-failure.ts";
import { checkLiteral, createLookup, resolveHost, type AddressRule, type Resolve } from "./address-rule.ts";

export type Webhook = {
  id: string;
  url: string;
  body: string;
  secrets: readonly string[];
  /** Whether to mark the webhook as a test, so that the receiver ignores its content. */
  isTest?: boolean;
};

export type Attempt = {
  /** Null: no complete response. `error` tells the operator why, `reason` the subscriber. */
  httpStatus: number | null;
  error: string | null;
  reason: string | null;
  retryAfterSeconds: number | null;
  durationMs: number;
};
/** Returns null if `cut` ended the exchange because the program stops: the end is unknown. */
export type Send = (webhook: Webhook, cut?: AbortSignal) => Promise<Attempt | null>;

/** `timeoutMs` covers the whole exchange: DNS, connection, TLS, response, body. */
export type SenderOptions = { mayConnect: AddressRule; resolve?: Resolve; timeoutMs?: number };

type Response = { status: number; retryAfter: string | undefined };
type Exchange = { timeoutMs: number; cut: AbortSignal | undefined };

const maxResponseBytes = 16 * 1024;
const maxRetryAfterSeconds = 24 * 60 * 60;
// Interim responses such as "103 Early Hints" precede the response, each with its own headers.
const maxInterimResponses = 8;

export function createSender({ mayConnect, resolve = resolveHost, timeoutMs = 15_000 }: SenderOptions): Send {
  const lookup = createLookup(mayConnect, resolve);

  return async (webhook, cut) => {
    const startedAt = performance.now();
    const withDuration = (attempt: Omit<Attempt, "durationMs">): Attempt => ({
      ...attempt,
      durationMs: Math.round(performance.now() - startedAt),
    });
    try {
      const request = openRequest(webhook, mayConnect, lookup);
      const { status, retryAfter } = await exchange(request, webhook.body, { timeoutMs, cut });
      const isTaken = status >= 200 && status <= 299;
      return withDuration({
        httpStatus: status,
        error: null,
        reason: null,
        retryAfterSeconds: isTaken ? null : readRetryAfter(retryAfter, Date.now()),
      });
    } catch (error) {
      if (cut?.aborted) return null;
      const failure = { error: describeFailure(error), reason: findReason(error) };
      return withDuration({ httpStatus: null, ...failure, retryAfterSeconds: null });
    }
  };
}

function openRequest(webhook: Webhook, mayConnect: AddressRule, lookup: LookupFunction): ClientRequest {
  const url = new URL(webhook.url);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  checkLiteral(mayConnect, host);
  const options: RequestOptions & Pick<TcpNetConnectOpts, "autoSelectFamilyAttemptTimeout"> = {
    method: "POST",
    host,
    port: url.port,
    path: `${url.pathname}${url.search}`,
    headers: headersOf(webhook),
    lookup,
    agent: false,
    maxHeaderSize: maxResponseBytes,
    autoSelectFamilyAttemptTimeout: 2_000,
  };
  return (url.protocol === "https:" ? requestHttps : requestHttp)(options);
}

function exchange(request: ClientRequest, body: string, { timeoutMs, cut }: Exchange): Promise<Response> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      clearTimeout(timer);
      cut?.removeEventListener("abort", stop);
      settle();
      request.destroy();
    };
    const fail = (error: Error) => end(() => reject(error));
    const stop = () => fail(new Error("cut off"));
    const timer = setTimeout(
      () => fail(new AttemptFailure(`no complete response within ${timeoutMs / 1000} s`)),
      timeoutMs,
    );
    cut?.addEventListener("abort", stop);
    request.on("error", fail);
    let interimResponses = 0;
    request.on("information", () => {
      interimResponses += 1;
      if (interimResponses > maxInterimResponses) fail(new AttemptFailure("too many interim responses"));
    });
    request.on("upgrade", (_, socket) => {
      socket.destroy();
      fail(new AttemptFailure("the receiver switched protocols"));
    });
    request.on("response", (response) => {
      const { statusCode, headers } = response;
      drain(response, () => end(() => resolve({ status: statusCode!, retryAfter: headers["retry-after"] })), fail);
    });
    request.end(body);
  });
}

// Reads the response body up to a limit and ignores it, so that the subscriber can finish sending.
function drain(response: IncomingMessage, done: () => void, fail: (error: Error) => void): void {
  let bytes = 0;
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxResponseBytes) done();
  });
  response.on("end", done);
  response.on("error", fail);
}

function headersOf({ id, body, secrets, isTest = false }: Webhook): Record<string, string> {
  const timestamp = Math.floor(Date.now() / 1000);
  return {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    "user-agent": "coupon-service",
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": secrets.map((secret) => signWebhook(secret, id, timestamp, body)).join(" "),
    ...(isTest && { "webhook-test": "true" }),
  };
}

/** Reads seconds, or a date in one of HTTP's three forms. Returns null for anything else. */
export function readRetryAfter(text: string | undefined, now: number): number | null {
  if (text === undefined) return null;
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.ceil((readHttpDate(text) - now) / 1000);
  return seconds > 0 ? Math.min(seconds, maxRetryAfterSeconds) : null;
}

function readHttpDate(text: string): number {
  if (/^[A-Z][a-z]{2,8}, \d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} GMT$/.test(text)) return Date.parse(text);
  // asctime names no zone and means GMT.
  if (/^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/.test(text)) return Date.parse(`${text} GMT`);
  return NaN;
}
