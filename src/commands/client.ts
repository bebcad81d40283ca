// The signing client: the minimum that a partner has to write. Used by `npm run demo` and by the tests.
import { randomBytes } from "node:crypto";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { sign } from "../crypto/request-signature.ts";

export type ClientOptions = { url: string; accessKey: string; secret: string };
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

export function createClient({ url, accessKey, secret }: ClientOptions): Client {
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
      "x-svc-access-key": accessKey,
      "x-svc-timestamp": signed.timestamp,
      "x-svc-nonce": signed.nonce,
      "x-svc-signature": sign(secret, signed),
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

// 90 random bits. The service refuses texts with a coupon code, and no code has the letter u, so a nonce is never
// refused by chance.
export function newNonce(): string {
  return `u${randomBytes(12).toString("base64url").slice(1)}`;
}

function toBytes(body: unknown): Uint8Array {
  if (body instanceof Uint8Array) return body;
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
}

const senders: Record<string, typeof requestHttp> = { "http:": requestHttp, "https:": requestHttps };

/**
 * Uses node:http and node:https because fetch rewrites the target (dots, escapes), and the signature covers the
 * target as sent.
 */
export function exchange(
  url: string,
  method: string,
  target: string,
  body: Uint8Array,
  headers: Record<string, string>,
): Promise<Reply> {
  const { protocol, hostname, port } = new URL(url);
  const send = senders[protocol];
  if (send === undefined)
    return Promise.reject(new Error(`the URL must begin with http:// or https://, not ${protocol}`));
  return new Promise((resolve, reject) => {
    const host = hostname.replace(/^\[|\]$/g, "");
    const length = body.length > 0 || method === "POST" ? { "content-length": String(body.length) } : {};
    const request = send({ host, port, method, path: target, headers: { ...length, ...headers } }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        const isJson = response.headers["content-type"]?.startsWith("application/json") && text !== "";
        resolve({
          status: response.statusCode!,
          headers: response.headers,
          text,
          json: isJson ? JSON.parse(text) : null,
        });
      });
    });
    request.on("error", reject);
    request.end(body);
  });
}
