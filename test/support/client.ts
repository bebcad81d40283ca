// How tests send requests: signed, or unsigned and malformed ones that the service must refuse. Each is sent once, and
// whatever comes back is checked against the API description. clients/typescript is the client of integrators.
import { once } from "node:events";
import { globalAgent, request as send, type IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import type { Test } from "tap";
import { newNonce, signedHeaders, type Credential } from "../../clients/typescript/src/signature.ts";
import { exchange as exchangeOnce } from "../../clients/typescript/src/transport.ts";
import { checkDescribed } from "./described-answers.ts";
import { waitFor } from "./wait-until.ts";

export type CallOptions = {
  headers?: Record<string, string>;
  nonce?: string;
  timestamp?: string;
  idempotencyKey?: string;
};
export type Reply = { status: number; headers: Record<string, string | string[] | undefined>; text: string; json: any };
export type Client = {
  /** Sends a string or bytes unchanged, anything else as JSON. */
  post(target: string, body: unknown, options?: CallOptions): Promise<Reply>;
  get(target: string, options?: CallOptions): Promise<Reply>;
  head(target: string, options?: CallOptions): Promise<Reply>;
};
type Call = (method: string, target: string, body: Uint8Array, options?: CallOptions) => Promise<Reply>;

/** The raw client: it can also sign wrong. */
export function createClient({ url, ...credential }: Credential & { url: string }): Client {
  return toClient((method, target, body, { headers, idempotencyKey, ...options } = {}) =>
    exchange(url, method, target, body, {
      ...sign(credential, method, target, body, options),
      ...(method === "POST" && { "content-type": "application/json" }),
      ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
      ...headers,
    }),
  );
}

export const toClient = (call: Call): Client => ({
  post: (target, body, options) => call("POST", target, toBytes(body), options),
  get: (target, options) => call("GET", target, Buffer.alloc(0), options),
  head: (target, options) => call("HEAD", target, Buffer.alloc(0), options),
});

function toBytes(body: unknown): Uint8Array {
  if (body instanceof Uint8Array) return body;
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
}

const sign = (
  credential: Credential,
  method: string,
  target: string,
  body: Uint8Array,
  { timestamp = String(Math.floor(Date.now() / 1000)), nonce = newNonce() }: CallOptions = {},
): Record<string, string> => signedHeaders(credential, { method, target, body, timestamp, nonce });

/** Sends a request once. Rejects if the API description lacks the answer. */
async function exchange(
  url: string,
  method: string,
  target: string,
  body: Uint8Array,
  headers: Record<string, string>,
): Promise<Reply> {
  const { status, headers: received, text } = await exchangeOnce({ url, method, target, body, headers });
  const isJson = received["content-type"]?.startsWith("application/json") && text !== "";
  const reply = { status, headers: received, text, json: isJson ? JSON.parse(text) : null };
  checkDescribed(url, { method, target, accessKey: headers["x-svc-access-key"] }, reply);
  return reply;
}

/** Starts a signed download and leaves the body to the test. */
export function openDownload(request: Credential & { url: string; path: string }): Promise<IncomingMessage> {
  const { url, path, ...credential } = request;
  const { hostname: host, port } = new URL(url);
  const headers = sign(credential, "GET", path, Buffer.alloc(0));
  return new Promise((resolve, reject) => send({ host, port, path, headers }, resolve).on("error", reject).end());
}

// A server that stops waits for the next request of a connection that was used a moment ago.
export function closeIdleConnections(): void {
  for (const socket of Object.values(globalAgent.freeSockets).flat()) socket?.destroy();
}

// A call waits for a row for 2 s and then gives up, without an effect. A busy machine may let it wait for longer: then
// it is sent again.
export const mostTries = 5;
const givingUp = ["UNAVAILABLE", "REQUEST_IN_PROGRESS"];

export function hasGivenUp(answer: unknown, codes = givingUp): boolean {
  const { json } = (answer ?? {}) as Partial<Reply>;
  return codes.includes(json?.code as string);
}

export const isReplay = ({ headers }: Reply): boolean => headers["idempotent-replayed"] === "true";

// codes: the answers after which the call is sent again.
export async function sendPatiently<T>(call: () => Promise<T>, codes = givingUp): Promise<T> {
  let sentAt = performance.now();
  let answer = await call();
  for (let tries = 1; tries < mostTries; tries += 1) {
    if (!hasGivenUp(answer, codes) || performance.now() - sentAt < 2_000) break;
    sentAt = performance.now();
    answer = await call();
  }
  return answer;
}

// Returns the body of a 200, and throws on any other status. The body has a request_id.
export async function postOk(by: Client, path: string, body: object): Promise<any> {
  const answer = await sendPatiently(() => by.post(path, body));
  if (answer.status !== 200) throw new Error(`${path}: ${answer.text}`);
  return answer.json;
}

// Sends one request as given, unsigned.
export async function sendPlain(
  url: string,
  method: string,
  target: string,
  headers: Record<string, string> = {},
  body: string | Uint8Array = "",
): Promise<Reply> {
  return exchange(url, method, target, Buffer.from(body), headers);
}

// Sends bytes as given on a new connection. Returns everything that comes back until the connection closes.
export async function sendBytes(url: string, bytes: string | Uint8Array): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(bytes);
  return text(socket);
}

export type Connection = {
  socket: Socket;
  received(): string;
  /** end, error and close, as they came. */
  events: string[];
};

// A connection, and everything that arrives on it. It stays open when the server ends its side.
export async function openConnection(t: Pick<Test, "teardown">, url: string): Promise<Connection> {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  t.teardown(() => socket.destroy());
  let received = "";
  const events: string[] = [];
  socket.on("data", (chunk) => (received += chunk));
  for (const event of ["end", "error", "close"]) socket.on(event, () => events.push(event));
  await waitFor("a connection", once(socket, "connect"));
  return { socket, received: () => received, events };
}
