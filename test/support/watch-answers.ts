// Every answer that a test gets is checked against the API description, see described-answers.ts. Answers of a service
// in the test's process are checked as they are sent, whoever asked. Answers of a program are checked where the test
// receives them.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Test } from "tap";
import type { Variant } from "../../src/gate/gate.ts";
import type { Listening } from "../../src/http/listener.ts";
import { findUndescribed, type Answered } from "./described-answers.ts";

type Provisioned = { tenants?: { variant: Variant; credentials?: { access_key: string }[] }[] };
type Received = Answered & { request: { method: string; target: string } };

const variants = new Map<string, Variant>();
const watched = new Set<string>();

/** Remembers the variant of each credential of a provisioning file. */
export function noteCredentials(file: unknown): void {
  for (const { variant, credentials = [] } of (file as Provisioned | null)?.tenants ?? [])
    for (const { access_key } of credentials) variants.set(access_key, variant);
}

/** Throws if a program sent an answer that its description lacks. Other servers of tests send no x-request-id. */
export function checkReceived(url: string, accessKey: string | undefined, received: Received): void {
  if (watched.has(url) || received.headers["x-request-id"] === undefined) return;
  const wrong = findUndescribed(variants.get(accessKey ?? "") ?? null, received);
  if (wrong !== null) throw new Error(`not in docs/openapi: ${wrong}`);
}

/** `isForeign`: an answer that the service did not make. */
export function watchAnswers(
  t: Pick<Test, "teardown">,
  listening: Listening,
  isForeign: (answered: Pick<Answered, "status">) => boolean = () => false,
): Listening {
  const found: string[] = [];
  watched.add(listening.url);
  t.teardown(() => {
    // An error in a teardown fails the test.
    if (found.length > 0) throw new Error(`answers that are not in docs/openapi:\n${found.join("\n")}`);
  });
  const check = (request: IncomingMessage, answered: Omit<Received, "request">): void => {
    if (isForeign(answered)) return;
    const accessKey = request.headers["x-svc-access-key"];
    const variant = (typeof accessKey === "string" && variants.get(accessKey)) || null;
    const received = { ...answered, request: { method: request.method!, target: request.url! } };
    const wrong = findUndescribed(variant, received);
    if (wrong !== null && found.length < 3) found.push(wrong);
  };
  return {
    ...listening,
    serve: (service) =>
      listening.serve({
        ...service,
        handler(request, response) {
          record(response, (answered) => check(request, answered));
          return service.handler(request, response);
        },
      }),
  };
}

// Keeps what is written to a response. Only JSON is needed whole.
function record(response: ServerResponse, onSent: (answered: Omit<Received, "request">) => void): void {
  const pieces: Buffer[] = [];
  let headers: Record<string, unknown> = {};
  const { writeHead, write, end } = response;
  response.writeHead = function writeHeadAndKeep(this: ServerResponse, ...args: unknown[]) {
    headers = toRecord(args.at(-1));
    return Reflect.apply(writeHead, this, args) as ServerResponse;
  } as typeof writeHead;
  const keep = (piece: unknown) => {
    const isJson = String(headers["content-type"]).startsWith("application/json");
    if (isJson && (typeof piece === "string" || piece instanceof Uint8Array)) pieces.push(Buffer.from(piece));
  };
  response.write = function writeAndKeep(this: ServerResponse, ...args: unknown[]) {
    keep(args[0]);
    return Reflect.apply(write, this, args) as boolean;
  } as typeof write;
  response.end = function endAndKeep(this: ServerResponse, ...args: unknown[]) {
    keep(args[0]);
    return Reflect.apply(end, this, args) as ServerResponse;
  } as typeof end;
  // `close` and not `finish`: a client may be gone before the answer is sent.
  response.once("close", () => {
    if (response.headersSent && response.writableEnded)
      onSent({ status: response.statusCode, headers, text: Buffer.concat(pieces).toString("utf8") });
  });
}

function toRecord(headers: unknown): Record<string, unknown> {
  if (!Array.isArray(headers)) return typeof headers === "object" ? { ...headers } : {};
  const pairs = Array.from({ length: headers.length / 2 }, (_, index) => headers.slice(2 * index, 2 * index + 2));
  return Object.fromEntries(pairs) as Record<string, unknown>;
}
