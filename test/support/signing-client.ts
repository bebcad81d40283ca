// The raw client of the tests: it signs a request, sends it once, and returns whatever comes back. It can also sign
// wrong. clients/typescript is the client of integrators.
import { newNonce, signedHeaders, type Credential } from "../../clients/typescript/src/signature.ts";
import { exchange as exchangeOnce } from "../../clients/typescript/src/transport.ts";
import { checkDescribed } from "./described-answers.ts";

export type ClientOptions = Credential & { url: string };
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

export function createClient({ url, ...credential }: ClientOptions): Client {
  function call(
    method: string,
    target: string,
    body: Uint8Array,
    { headers, nonce, timestamp, idempotencyKey }: CallOptions = {},
  ): Promise<Reply> {
    const signed = {
      method,
      target,
      body,
      timestamp: timestamp ?? String(Math.floor(Date.now() / 1000)),
      nonce: nonce ?? newNonce(),
    };
    return exchange(url, method, target, body, {
      ...signedHeaders(credential, signed),
      ...(method === "POST" && { "content-type": "application/json" }),
      ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
      ...headers,
    });
  }

  return {
    post: (target, body, options) => call("POST", target, toBytes(body), options),
    get: (target, options) => call("GET", target, Buffer.alloc(0), options),
    head: (target, options) => call("HEAD", target, Buffer.alloc(0), options),
  };
}

export function toBytes(body: unknown): Uint8Array {
  if (body instanceof Uint8Array) return body;
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
}

/** Sends a request once. Rejects if the API description lacks the answer. */
export async function exchange(
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
