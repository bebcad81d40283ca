// Sends a call to the service, over HTTP or straight to the gate.
//
// Half a million calls are too many for HTTP. So most runs go straight to the gate, as a process of the service does:
// reading by the route (shape, code, body hash), groups, lanes, gate.perform. That leaves out Node's HTTP server, h3
// and the signature; one run in five includes them.
import { randomBytes } from "node:crypto";
import { createLog } from "../../src/common/log.ts";
import { newId } from "../../src/common/id.ts";
import { Unavailable } from "../../src/common/unavailable.ts";
import { Problem, toAnswer, toProblem } from "../../src/http/problem.ts";
import { connect } from "../../src/database/connect.ts";
import { connectionCount } from "../../src/gate/connections.ts";
import { createGate, type CredentialRow, type Gate } from "../../src/gate/gate.ts";
import { parseInput, readCall } from "../../src/http/read-call.ts";
import { routes } from "../../src/http/routes/table.ts";
import type { Running, Teardown } from "../support/service.ts";
import type { Call, Reply } from "./call.ts";
import type { Setup } from "./kinds.ts";

// Longer than in the service: a run goes on after a pause of the machine.
const answerWithinMs = 60_000;
const reads = ["get_batch", "get_request"];

/** Sends a call over HTTP or to the gate. `body` is the text of the call. */
export type Send = (call: Call, body: string, isOverHttp: boolean) => Promise<Reply>;

export async function createSender(t: Teardown, service: Running, setup: Setup): Promise<Send> {
  const gate = createGate({
    log: createLog("silent"),
    hungAfterMs: 2 * answerWithinMs,
    connect: () =>
      connect(service.address, {
        role: "coupon_api",
        name: "coupon model",
        max: connectionCount,
        statementTimeoutMs: answerWithinMs,
        lockTimeoutMs: answerWithinMs,
      }),
  });
  t.teardown(() => gate.end());
  const credentials = new Map<string, CredentialRow>();
  for (const { accessKey } of setup.callers)
    credentials.set(accessKey, (await gate.findCredential(accessKey, performance.now() + 5_000, true))!);
  return (call, body, isOverHttp) =>
    isOverHttp
      ? sendOverHttp(service, call, body)
      : sendToGate(service, gate, credentials.get(call.by.accessKey)!, setup, call, body);
}

async function sendOverHttp(service: Running, call: Call, body: string): Promise<Reply> {
  const { path, method } = routes.find(({ operation }) => operation === call.operation)!;
  const client = service.as(call.by.accessKey);
  const target = path.replace(/\{(\w+)\}/, (_, name: string) => encodeURIComponent(call.values[name] as string));
  const { status, text, json, headers } =
    method === "GET"
      ? await client.get(target)
      : await client.post(target, body, call.key === null ? {} : { idempotencyKey: call.key });
  return { status, text, json, isReplay: headers["idempotent-replayed"] === "true" };
}

async function sendToGate(
  { keys }: Running,
  gate: Gate,
  { tenant_id, credential_id }: CredentialRow,
  { variant }: Setup,
  call: Call,
  body: string,
): Promise<Reply> {
  const route = routes.find(({ operation }) => operation === call.operation)!;
  const bytes = Buffer.from(reads.includes(call.operation) ? "" : body);
  const input = parseInput(bytes, keys);
  const requestId = (route.method === "POST" ? input.requestId : null) ?? newId("req");
  // As the path contains them.
  const segments = Object.fromEntries(
    [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => [
      name,
      encodeURIComponent(call.values[name] as string),
    ]),
  );
  const idempotencyKeys = call.key === null ? [] : [call.key];
  try {
    const reading = readCall(route, variant, { query: "", segments, idempotencyKeys, body: bytes, input }, keys);
    const nonce = randomBytes(12).toString("base64url");
    const request = { credential_id, nonce, request_id: requestId, ...reading };
    const outcome = await gate.perform(tenant_id, request, performance.now() + answerWithinMs);
    const { status, body: text, isReplay } = outcome;
    return { status, text, isReplay, json: JSON.parse(text) };
  } catch (error) {
    if (!(error instanceof Problem || error instanceof Unavailable)) throw error;
    const { status, body: text } = toAnswer(toProblem(error), requestId);
    return { status, text, isReplay: false, json: JSON.parse(text) };
  }
}
