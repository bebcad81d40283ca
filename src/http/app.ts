// Handles every request, in this order: route, size, content type, operation. h3 carries requests and answers; the raw
// target and the raw bytes come from node.
import { H3, HTTPResponse, requestWithURL, toNodeHandler } from "h3";
import type { IncomingMessage } from "node:http";
import { isJson, readBody } from "./body.ts";
import { defaultLimits, type Limits } from "../common/config.ts";
import { newId } from "../common/id.ts";
import type { Logger } from "../common/log.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import type { Gate } from "../gate/gate.ts";
import type { Handler } from "./listener.ts";
import type { Observer } from "./metrics.ts";
import { createOpenRequests, type AppLoad } from "./open-requests.ts";
import { createOperator, type Exchange } from "./operation.ts";
import type { Page } from "./page.ts";
import { createProbes, probeNames, type Readiness } from "./probes.ts";
import { invalid, jsonHeaders, Problem, toAnswer, toProblem, type Answer } from "./problem.ts";
import { createLimiter } from "./rate-limiter.ts";
import { parseInput } from "./read-call.ts";
import type { Route } from "./route.ts";
import { createMatcher, splitTarget } from "./router.ts";

export type AppParts = {
  routes: readonly Route[];
  gate: Gate;
  keys: MasterKeys;
  log: Logger;
  limits?: Limits;
  load?: AppLoad;
  observer?: Observer;
  readiness: Readiness;
  /** Beside the health checks. */
  pages?: readonly Page[];
};

export function createApp(parts: AppParts): Handler {
  const { routes, gate, keys, log, limits = defaultLimits, load = { openRequests: 0 }, observer } = parts;
  const limiter = createLimiter(limits, observer?.refused);
  const open = createOpenRequests(limits.openRequests, load, () => observer?.refused("open_requests"));
  const operate = createOperator({ gate, keys, log, limiter, open });
  const match = createMatcher<Route | Page>([...routes, ...createProbes(parts.readiness), ...(parts.pages ?? [])]);

  async function answer(request: IncomingMessage, exchange: Exchange): Promise<Answer> {
    // RFC 9112 requires a 400 here. Node would send it without a body.
    if (request.headers.host === undefined && request.httpVersion === "1.1")
      throw invalid([{ path: "host", message: "the header is required" }]);
    const { path, query } = splitTarget(request.url!);
    const { route, segments } = match(request.method!, path);
    exchange.operation = route.operation;
    if ("respond" in route) return route.respond(request);

    const body = await readBody(request, limits.bodyBytes);
    exchange.body = body;
    if (route.method === "POST" && !isJson(request)) throw new Problem("UNSUPPORTED_MEDIA_TYPE");

    // A request counts once it is fully received, so slow senders block no one.
    open.add();
    try {
      return await operate(request, exchange, { route, segments, query, body });
    } finally {
      open.remove(exchange.caller?.credential.tenantId);
    }
  }

  async function respond(request: IncomingMessage): Promise<HTTPResponse> {
    const startedAt = performance.now();
    const exchange: Exchange = { requestId: null, operation: null, body: null, caller: null };
    let found: Answer;
    let reason: string | undefined;
    try {
      found = await answer(request, exchange);
      exchange.requestId ??= newId("req");
    } catch (error) {
      exchange.requestId ??= nameRequest(exchange.body, keys);
      const problem = toProblem(error);
      if (problem.code === "INTERNAL_ERROR")
        log.error({ request_id: exchange.requestId, err: error }, "request failed");
      found = toAnswer(problem, exchange.requestId);
      reason = problem.reason;
    }
    const durationMs = performance.now() - startedAt;
    // Health checks arrive every few seconds, so successful ones are logged only at debug level.
    const isNews = found.status !== 200 || !probeNames.has(exchange.operation ?? "");
    log[isNews ? "info" : "debug"]({ ...describe(exchange, found, durationMs), reason });
    observer?.answered(exchange.operation, found.status, found.code, durationMs / 1_000);
    const limitFields = exchange.caller === null ? null : limiter.fields(exchange.caller.credential.accessKey);
    return new HTTPResponse(found.body, {
      status: found.status,
      headers: {
        ...jsonHeaders,
        ...(request.method === "HEAD" && lengthOf(found.body)),
        "x-request-id": toHeader(exchange.requestId),
        ...limitFields,
        ...found.headers,
      },
    });
  }

  const app = new H3({ silent: true }).use((event) => respond(event.runtime!.node!.req as IncomingMessage));
  // h3 makes a URL of each target and its Host, and throws where they make none, outside its handling of errors. Routes
  // are matched against the raw target, so h3 gets a URL that always works.
  const fetch = app.fetch.bind(app);
  app.fetch = (request) => fetch(requestWithURL(request, "http://localhost/"));
  return toNodeHandler(app) as Handler;
}

// The request_id of an answer that comes before the body is parsed.
function nameRequest(body: Uint8Array | null, keys: MasterKeys): string {
  return (body === null ? null : parseInput(body, keys).requestId) ?? newId("req");
}

// The answer to a HEAD has the length of the body that it leaves out.
function lengthOf(body: Answer["body"]): Record<string, string> {
  return body instanceof ReadableStream || body.length === 0
    ? {}
    : { "content-length": String(Buffer.byteLength(body)) };
}

// Header values are printable ASCII without spaces at the ends, so other characters are percent-encoded.
function toHeader(text: string): string {
  return text.replace(/[^ -~]|^ +| +$/gu, encodeURIComponent);
}

function describe({ requestId, operation, caller }: Exchange, { status, code, headers }: Answer, durationMs: number) {
  return {
    request_id: requestId,
    operation,
    status,
    code,
    duration_ms: Math.round(durationMs * 100) / 100,
    access_key: caller?.credential.accessKey,
    tenant_id: caller?.credential.tenantId,
    is_replay: headers?.["idempotent-replayed"] === "true" || undefined,
  };
}
