// Handles every request, in this order: head, route, size, content type, signature, operation.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream as WebStream } from "node:stream/web";
import { createAuthenticator, type Caller } from "./authenticate.ts";
import { isJson, readBody } from "./body.ts";
import { createExports } from "./codes-download.ts";
import { defaultLimits, type Limits } from "../config/config.ts";
import { defaultConsoleUrl } from "../config/console.ts";
import { accessKey } from "../formats/field-types.ts";
import { newId } from "../formats/id.ts";
import type { Logger } from "../common/log.ts";
import { containsCode } from "../crypto/find-code.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import type { CredentialUses } from "../gate/credential-uses.ts";
import type { Gate } from "../gate/gate.ts";
import type { Handler } from "./listener.ts";
import type { Observer } from "./metrics.ts";
import { createOpenRequests, type AppLoad } from "./open-requests.ts";
import { createOperator } from "./operation.ts";
import type { Page } from "./page.ts";
import { createProbes, probeNames, type Readiness } from "./probes.ts";
import { jsonHeaders, Problem, toAnswer, toProblem, type Answer } from "./problem.ts";
import { createLimiter, type Limiter } from "./rate-limiter.ts";
import { parseInput } from "./read-call.ts";
import { checkHead } from "./request-head.ts";
import type { Route } from "./route.ts";
import { createMatcher, splitTarget } from "./router.ts";
import { noteAuthenticated } from "../server/turns.ts";

export type AppParts = {
  routes: readonly Route[];
  gate: Gate;
  uses?: Pick<CredentialUses, "mark">;
  keys: MasterKeys;
  log: Logger;
  limits?: Limits;
  load?: AppLoad;
  observer?: Observer;
  readiness: Readiness;
  /** Where browsers reach the console. */
  consoleUrl?: string;
  /** Served without a signature, like the health checks. */
  pages?: readonly Page[];
};

// A request with its answer. reason: of a refusal, for the log.
type Handled = {
  operation: string | null;
  requestId: string;
  caller: Caller | null;
  answer: Answer;
  reason?: string | undefined;
};

// Clients are promised an answer within 4 s. The remaining time is for writing the answer, even on a busy machine.
const answerWithinMs = 3_500;

export function createApp(parts: AppParts): Handler {
  const { log, limits = defaultLimits, observer } = parts;
  const limiter = createLimiter(limits, observer?.refused);
  const handle = createHandle(parts, limiter);

  return async function respond(request, response) {
    const startedAt = performance.now();
    const handled = await handle(request);
    const { operation, requestId, caller, answer } = handled;
    const durationMs = performance.now() - startedAt;
    // Health checks arrive every few seconds, so successful ones are logged only at debug level.
    const isNews = answer.status !== 200 || !probeNames.has(operation ?? "");
    log[isNews ? "info" : "debug"](describe(request.headers, handled, durationMs, parts.keys));
    observer?.answered(operation, answer.status, answer.code, durationMs / 1_000);
    const declined = findUnrecorded(handled);
    if (declined !== null) observer?.declined(declined, caller?.credential.accessKey ?? null);
    const limitFields = caller === null ? null : limiter.fields(caller.credential.accessKey);
    send(response, answer, { ...jsonHeaders, "x-request-id": toHeader(requestId), ...limitFields, ...answer.headers });
  };
}

// Head and body leave in one write.
function send(response: ServerResponse, { status, body }: Answer, headers: Record<string, string>): void {
  if (body instanceof ReadableStream) {
    response.writeHead(status, headers);
    // Whatever ends one of the two ends the other; download.ts logs what it may.
    void pipeline(Readable.fromWeb(body as WebStream), response).catch(() => {});
    return;
  }
  const length = Buffer.byteLength(body);
  // A HEAD or a 304 has no body, and may state the length of what it leaves out.
  if (length > 0) headers["content-length"] = String(length);
  response.writeHead(status, headers).end(body, length === body.length ? "latin1" : "utf8");
}

function createHandle(parts: AppParts, limiter: Limiter) {
  const { routes, gate, uses, keys, log, limits = defaultLimits, load = { openRequests: 0 }, observer } = parts;
  const open = createOpenRequests(limits.openRequests, load, () => observer?.refused("open_requests"));
  const authenticate = createAuthenticator({ gate, keys });
  const onRefused = () => observer?.refused("exports");
  const exports = createExports({ gate, keys, log, most: limits.exports, onRefused });
  const operate = createOperator({
    gate,
    keys,
    log,
    limiter,
    exports,
    consoleUrl: parts.consoleUrl ?? defaultConsoleUrl,
  });
  const match = createMatcher<Route | Page>([...routes, ...createProbes(parts.readiness), ...(parts.pages ?? [])]);

  // These variables keep what is known about the request when a step refuses it.
  return async function handle(request: IncomingMessage): Promise<Handled> {
    let operation: string | null = null;
    let requestId: string | null = null;
    let caller: Caller | null = null;
    let isOpen = false;
    try {
      checkHead(request);
      const { path, query } = splitTarget(request.url!);
      const { route, segments } = match(request.method!, path);
      operation = route.operation;
      if ("respond" in route)
        return { operation, requestId: newId("req"), caller, answer: await route.respond(request) };

      const body = await readBody(request, limits.bodyBytes);
      const input = parseInput(body, keys);
      requestId = (route.method === "POST" ? input.requestId : null) ?? newId("req");
      if (route.method === "POST" && !isJson(request)) throw new Problem("UNSUPPORTED_MEDIA_TYPE");
      // A request counts once it is fully received, so slow senders block no one.
      open.add();
      isOpen = true;
      const deadline = performance.now() + answerWithinMs;
      const signed = { method: request.method!, target: request.url!, headers: request.headers, body };
      caller = await authenticate(signed, deadline);
      uses?.mark(caller.credential);
      noteAuthenticated(request.socket);
      open.assign(caller.credential.tenantId);
      const received = { route, segments, query, body, input, caller, requestId, deadline };
      return { operation, requestId, caller, answer: await operate(request, received) };
    } catch (error) {
      requestId ??= newId("req");
      const problem = toProblem(error);
      if (problem.code === "INTERNAL_ERROR") log.error({ request_id: requestId, err: error }, "request failed");
      return { operation, requestId, caller, answer: toAnswer(problem, requestId), reason: problem.reason };
    } finally {
      if (isOpen) open.remove(caller?.credential.tenantId);
    }
  };
}

/** Why a 401, a 429 or the answer to an unknown code was given: neither leaves a trace in the database. */
function findUnrecorded({ answer: { status, code, resource, body } }: Handled): string | null {
  if (code === "RATE_LIMITED") return `limit_of_${readDetails<{ limit: string }>(body).limit}`;
  if (status === 401) return code!.toLowerCase();
  if (code === "COUPON_CODE_INVALID") return "invalid_code";
  // A write records this refusal, but a query does not.
  return code === "NOT_FOUND" && resource === "coupon" ? "unknown_code" : null;
}

// Header values are printable ASCII without spaces at the ends, so other characters are percent-encoded.
function toHeader(text: string): string {
  return text.replace(/[^ -~]|^ +| +$/gu, encodeURIComponent);
}

// Why the database gave a 401: an unknown key has been refused before.
const reasonsOfDatabase: Record<string, string> = { UNAUTHENTICATED: "revoked", NONCE_REUSED: "nonce" };

function describe(headers: IncomingHttpHeaders, handled: Handled, durationMs: number, keys: MasterKeys) {
  const { requestId, operation, caller, answer, reason } = handled;
  return {
    request_id: requestId,
    operation,
    status: answer.status,
    code: answer.code,
    duration_ms: Math.round(durationMs * 100) / 100,
    access_key: caller?.credential.accessKey,
    tenant_id: caller?.credential.tenantId,
    is_replay: answer.headers?.["idempotent-replayed"] === "true" || undefined,
    reason: reason ?? reasonsOfDatabase[answer.code ?? ""],
    paths: answer.code === "INVALID_REQUEST" || reason === "malformed" ? listPaths(answer.body) : undefined,
    claimed_access_key: answer.status === 401 && caller === null ? readClaim(headers, keys) : undefined,
    // What a proxy or the caller calls this request in its own log.
    x_request_id: readTrace(headers["x-request-id"], /^[!-~]{1,128}$/, keys),
    traceparent: readTrace(headers["traceparent"], /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/, keys),
  };
}

// Which fields of a 400, or headers of a 401, are wrong. Their values and their unusual names are in no answer.
function listPaths(body: Answer["body"]): string[] {
  return readDetails<{ issues: { path: string }[] }>(body).issues.map(({ path }) => path);
}

const readDetails = <Details>(body: Answer["body"]) => (JSON.parse(String(body)) as { details: Details }).details;

// The access key of a request that is not signed, so anyone may have sent it. Only what can be one: a secret in the
// wrong header must not be logged, nor a code.
function readClaim(headers: IncomingHttpHeaders, keys: MasterKeys): string | undefined {
  const { success, data } = accessKey.safeParse(headers["x-svc-access-key"]);
  return success && !containsCode(keys, data) ? data : undefined;
}

// No code may be logged, not even by chance.
function readTrace(text: unknown, pattern: RegExp, keys: MasterKeys): string | undefined {
  return typeof text === "string" && pattern.test(text) && !containsCode(keys, text) ? text : undefined;
}
