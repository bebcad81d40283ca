// Every request goes through here, in this order: route, size, type, signature, limits of the credential, shape, code,
// database. h3 carries requests and answers; the raw target and raw bytes come from node.
import { H3, HTTPResponse } from "h3";
import type { IncomingMessage } from "node:http";
import { createAuthenticator, type Caller } from "./authenticate.ts";
import { isJson, readBody } from "./body.ts";
import { defaultLimits, type Limits } from "../common/config.ts";
import { openDownload } from "./download.ts";
import type { Gate, StatementFile } from "../gate/gate.ts";
import { newId } from "../common/id.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import { beforeDeadline } from "../gate/lane.ts";
import { createLimiter } from "./rate-limiter.ts";
import type { Logger } from "../common/log.ts";
import type { Observer } from "./metrics.ts";
import { invalid, Problem, toAnswer, unavailable, type Answer } from "../common/problem.ts";
import { findRequestId, parseInput, readCall, type Reading } from "./read-call.ts";
import type { Route } from "./route.ts";
import { createMatcher } from "./router.ts";

// The promised 4 s, less what it takes to write the answer, also of a machine that has much to do.
const answerWithinMs = 3_500;
const readyWithinMs = 1_500;

export type AppParts = {
  routes: readonly Route[];
  gate: Gate;
  keys: MasterKeys;
  log: Logger;
  limits?: Limits;
  load?: AppLoad;
  observer?: Observer;
  readiness: (deadline: number) => Promise<boolean>;
};

// Requests that are worked on: counted here, shown by whoever gave it.
export type AppLoad = { openRequests: number };

// What is known of a request so far; its log line when it is answered.
type Exchange = { requestId: string | null; operation: string | null; body: Uint8Array | null; caller: Caller | null };
type Received = { route: Route; segments: Record<string, string>; body: Buffer };
type Probe = { operation: "healthz" | "readyz"; method: "GET"; path: string };

const probes: readonly Probe[] = [
  { operation: "healthz", method: "GET", path: "/healthz" },
  { operation: "readyz", method: "GET", path: "/readyz" },
];

export function createApp({
  routes,
  gate,
  keys,
  log,
  readiness,
  limits = defaultLimits,
  load = { openRequests: 0 },
  observer,
}: AppParts): H3 {
  const authenticate = createAuthenticator({ gate, keys });
  const limiter = createLimiter(limits, observer?.refused);
  const match = createMatcher<Route | Probe>([...routes, ...probes]);

  async function answer(request: IncomingMessage, exchange: Exchange): Promise<Answer> {
    const method = request.method!;
    const target = request.url!;
    // Nobody can tell for whom such a request is; node would refuse it without a body.
    if (request.headers.host === undefined && request.httpVersion === "1.1")
      throw invalid([{ path: "host", message: "the header is required" }]);
    const { route, segments } = match(method, target.split("?", 1)[0]!);
    exchange.operation = route.operation;
    if (!("schema" in route)) return probe(route);

    const body = await readBody(request, limits.bodyBytes);
    exchange.body = body;
    if (method === "POST" && !isJson(request)) throw new Problem("UNSUPPORTED_MEDIA_TYPE");

    // From here on a request takes at most answerWithinMs: who sends slowly is not counted, and keeps nobody out.
    if (load.openRequests >= limits.openRequests) {
      observer?.refused("open_requests");
      throw unavailable(new Error("too many requests at once"));
    }
    load.openRequests += 1;
    try {
      return await carryOut(request, exchange, { route, segments, body });
    } finally {
      load.openRequests -= 1;
    }
  }

  async function carryOut(
    request: IncomingMessage,
    exchange: Exchange,
    { route, segments, body }: Received,
  ): Promise<Answer> {
    const method = request.method!;
    const target = request.url!;
    const deadline = performance.now() + answerWithinMs;
    const caller = await authenticate({ method, target, headers: request.headers, body }, deadline);
    exchange.caller = caller;
    const { credential } = caller;
    const { accessKey, tenantId } = credential;
    const input = parseInput(body);
    const requestId = (method === "POST" ? findRequestId(input) : null) ?? newId("req");
    exchange.requestId = requestId;
    const base = { credential_id: credential.credentialId, nonce: caller.nonce, request_id: requestId };

    let isBlind = false;
    let reading: Reading;
    try {
      isBlind = limiter.admit(accessKey, route.reveals);
      const query = target.slice(target.split("?", 1)[0]!.length);
      const idempotencyKeys = request.headersDistinct["idempotency-key"] ?? [];
      reading = readCall(route, credential.variant, { query, segments, idempotencyKeys, body, input }, keys);
    } catch (error) {
      // A nonce is decided before limits and the shape of a body, so it is spent before the refusal is sent.
      if (!(error instanceof Problem)) throw error;
      const earlier = await gate.spendNonce(tenantId, base, deadline);
      if (earlier !== null) return earlier;
      limiter.tell(accessKey, route.reveals, isBlind, error);
      throw error;
    }
    const outcome = await gate.perform(tenantId, { ...base, ...reading }, deadline, route);
    limiter.tell(accessKey, route.reveals, isBlind, outcome);
    if (route.isDownload && outcome.status === 200) {
      const file = JSON.parse(outcome.body) as StatementFile;
      const opened = { ifNoneMatch: request.headers["if-none-match"], deadline, pageWithinMs: answerWithinMs };
      return openDownload({ gate, log, requestId }, file, opened);
    }
    return outcome.isReplay ? { ...outcome, headers: { "idempotent-replayed": "true" } } : outcome;
  }

  async function probe({ operation }: Probe): Promise<Answer> {
    if (operation === "readyz") {
      const deadline = performance.now() + readyWithinMs;
      const isReady = await beforeDeadline(readiness(deadline), deadline).catch((error: unknown) => {
        throw unavailable(error);
      });
      if (!isReady)
        throw unavailable(new Error("the database has another version than this program: run the migrations"));
    }
    return { status: 200, code: null, body: '{"ok":true}' };
  }

  async function exchangeOnce(request: IncomingMessage): Promise<HTTPResponse> {
    const startedAt = performance.now();
    const exchange: Exchange = { requestId: null, operation: null, body: null, caller: null };
    let given: Answer;
    let reason: string | undefined;
    try {
      given = await answer(request, exchange);
    } catch (error) {
      exchange.requestId ??= (exchange.body === null ? null : findRequestId(parseInput(exchange.body))) ?? newId("req");
      given = toAnswer(error, exchange.requestId);
      if (error instanceof Problem) reason = describeCause(error.cause);
      else log.error({ request_id: exchange.requestId, err: error }, "request failed");
    }
    exchange.requestId ??= newId("req");
    // A health check asks every few seconds: what went well is no news.
    const isNews = given.status !== 200 || probes.every(({ operation }) => operation !== exchange.operation);
    const durationMs = performance.now() - startedAt;
    const line = describe(exchange, given, durationMs);
    log[isNews ? "info" : "debug"]({ ...line, reason });
    observer?.answered(line.operation, line.status, line.code, durationMs / 1_000);
    const fields = exchange.caller === null ? null : limiter.fields(exchange.caller.credential.accessKey);
    return new HTTPResponse(given.body, {
      status: given.status,
      headers: { ...baseHeaders, "x-request-id": toHeader(exchange.requestId), ...fields, ...given.headers },
    });
  }

  // Malformed escapes are our 404, not h3's 400: the raw path decides.
  const app = new H3({ silent: true, allowMalformedURL: true });
  app.use((event) => exchangeOnce(event.runtime!.node!.req as IncomingMessage));
  return app;
}

const baseHeaders = { "content-type": "application/json; charset=utf-8", "cache-control": "no-store" };

// A header is ASCII, without blanks at its ends: what of an id lies beyond goes out percent-encoded.
function toHeader(text: string): string {
  return text.replace(/[^ -~]|^ +| +$/gu, encodeURIComponent);
}

// Why there was no answer: the driver's or the server's words, which hold no values for these errors.
function describeCause(cause: unknown): string | undefined {
  return cause instanceof Error ? cause.message : undefined;
}

function describe(exchange: Exchange, given: Answer, durationMs: number) {
  return {
    request_id: exchange.requestId,
    operation: exchange.operation,
    status: given.status,
    code: given.code,
    duration_ms: Math.round(durationMs * 100) / 100,
    access_key: exchange.caller?.credential.accessKey,
    tenant_id: exchange.caller?.credential.tenantId,
    is_replay: given.headers?.["idempotent-replayed"] === "true" || undefined,
  };
}
