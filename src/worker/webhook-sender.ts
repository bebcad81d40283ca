// One webhook: signed as Standard Webhooks says, sent once, and what came of it. It never throws; what a subscriber
// answers or does not answer is a value. Connections are not kept: each one looks its host up again, and no
// proxy of the environment takes part, which would connect on our behalf past the check of the address.
import { request as requestHttp, type IncomingMessage } from "node:http";
import { request as requestHttps, type RequestOptions } from "node:https";
import type { TcpNetConnectOpts } from "node:net";
import { checkLiteral, createLookup, resolveHost, type AddressRule, type Resolve } from "./address-rule.ts";
import { messageOf } from "../common/program.ts";
import { signWebhook } from "../crypto/webhook-signature.ts";

export type Webhook = { id: string; url: string; body: string; secrets: readonly string[] };

export type Outcome = {
  // Null: no whole answer; error says why.
  httpStatus: number | null;
  error: string | null;
  retryAfterSeconds: number | null;
  durationMs: number;
};
// Null: cut off because we stop. Nobody knows what came of it.
export type Send = (webhook: Webhook, cut?: AbortSignal) => Promise<Outcome | null>;

type Answer = { status: number; retryAfter: string | undefined };
export type SenderOptions = { mayConnect: AddressRule; resolve?: Resolve; timeoutMs?: number };

const maxAnswerBytes = 16 * 1024;
const maxRetryAfterSeconds = 24 * 60 * 60;
// Of "103 Early Hints" and the like, which come before an answer, each with headers of its own.
const maxHints = 8;

// timeoutMs is for the whole exchange: name, connection, TLS, answer, body.
export function createSender({ mayConnect, resolve = resolveHost, timeoutMs = 15_000 }: SenderOptions): Send {
  const lookup = createLookup(mayConnect, resolve);

  return async (webhook, cut) => {
    const startedAt = performance.now();
    const took = (result: Omit<Outcome, "durationMs">): Outcome => ({
      ...result,
      durationMs: Math.round(performance.now() - startedAt),
    });
    try {
      const { status, retryAfter } = await exchange(webhook, cut);
      const isTaken = status >= 200 && status <= 299;
      return took({
        httpStatus: status,
        error: null,
        retryAfterSeconds: isTaken ? null : readRetryAfter(retryAfter, Date.now()),
      });
    } catch (error) {
      if (cut?.aborted) return null;
      return took({ httpStatus: null, error: describe(error), retryAfterSeconds: null });
    }
  };

  function exchange(webhook: Webhook, cut?: AbortSignal): Promise<Answer> {
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
      maxHeaderSize: maxAnswerBytes,
      autoSelectFamilyAttemptTimeout: 2_000,
    };
    return new Promise((resolve, reject) => {
      const request = (url.protocol === "https:" ? requestHttps : requestHttp)(options);
      const end = (settle: () => void) => {
        clearTimeout(timer);
        cut?.removeEventListener("abort", stop);
        settle();
        request.destroy();
      };
      const fail = (error: Error) => end(() => reject(error));
      const stop = () => fail(new Error("cut off"));
      const timer = setTimeout(() => fail(new Error(`no whole answer within ${timeoutMs / 1000} s`)), timeoutMs);
      cut?.addEventListener("abort", stop);
      request.on("error", fail);
      let hints = 0;
      request.on("information", () => {
        hints += 1;
        if (hints > maxHints) fail(new Error("too many interim answers"));
      });
      request.on("upgrade", (_, socket) => {
        socket.destroy();
        fail(new Error("the receiver switched protocols"));
      });
      request.on("response", (response) => {
        read(
          response,
          () => end(() => resolve({ status: response.statusCode!, retryAfter: response.headers["retry-after"] })),
          fail,
        );
      });
      request.end(webhook.body);
    });
  }
}

// What an answer says besides its status is of no use: it is read so that the subscriber can finish, up to the limit.
function read(response: IncomingMessage, done: () => void, fail: (error: Error) => void): void {
  let bytes = 0;
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxAnswerBytes) done();
  });
  response.on("end", done);
  response.on("error", fail);
}

function headersOf({ id, body, secrets }: Webhook): Record<string, string> {
  const timestamp = Math.floor(Date.now() / 1000);
  return {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    "user-agent": "coupon-service",
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": secrets.map((secret) => signWebhook(secret, id, timestamp, body)).join(" "),
  };
}

// Seconds, or a date in one of the three forms of HTTP. Anything else is no wish.
export function readRetryAfter(text: string | undefined, now: number): number | null {
  if (text === undefined) return null;
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.ceil((readHttpDate(text) - now) / 1000);
  return seconds > 0 ? Math.min(seconds, maxRetryAfterSeconds) : null;
}

function readHttpDate(text: string): number {
  if (/^[A-Z][a-z]{2,8}, \d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} GMT$/.test(text)) return Date.parse(text);
  // asctime, which names no zone and means GMT
  if (/^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/.test(text)) return Date.parse(`${text} GMT`);
  return NaN;
}

// For the delivery log. A certificate's names are the other side's text, so nothing but plain characters is taken.
function describe(error: unknown): string {
  return messageOf(error)
    .replace(/[^ -~]/g, "?")
    .slice(0, 200);
}
