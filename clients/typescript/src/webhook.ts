// Verifies webhooks as Standard Webhooks specifies (https://www.standardwebhooks.com).
import { createHmac, timingSafeEqual } from "node:crypto";
import { parse, WebhookError } from "./errors.ts";
import type { WebhookEvent } from "./generated/errors-and-events.ts";

export type WebhookRequest = {
  /** `whsec_…`. While a secret is replaced, the old and the new one. */
  secret: string | readonly string[];
  /** Of node:http, or of a fetch Request. */
  headers: Headers | Record<string, string | string[] | undefined>;
  /** The raw body, as it arrived. */
  body: Uint8Array | string;
  /** How old or new a webhook may be; 300 by default. */
  toleranceSeconds?: number;
  /** In milliseconds; by default the clock. */
  now?: number;
};

export type Webhook = {
  /** The same in every attempt: drop those that you have seen. */
  id: string;
  /** A test event: do nothing but answer 2xx. */
  isTest: boolean;
  event: WebhookEvent;
};

/** Throws a WebhookError if the webhook is not from the service, or too old. */
export function verifyWebhook({
  secret,
  headers,
  body,
  toleranceSeconds = 300,
  now = Date.now(),
}: WebhookRequest): Webhook {
  const missing = ["webhook-id", "webhook-timestamp", "webhook-signature"].find(
    (name) => readHeader(headers, name) === "",
  );
  if (missing !== undefined) throw new WebhookError(`the webhook has no ${missing}`);
  const id = readHeader(headers, "webhook-id");
  const timestamp = readHeader(headers, "webhook-timestamp");
  const given = readHeader(headers, "webhook-signature").split(" ");
  const secrets = typeof secret === "string" ? [secret] : secret;
  const genuine = secrets.map((one) => signWebhook(one, id, timestamp, body));
  // Every pair is compared, and as text: base64 has several spellings of the same bytes.
  const matches = genuine.flatMap((signature) => given.map((other) => isEqual(signature, other)));
  if (!matches.includes(true)) throw new WebhookError("no signature of the webhook is right");
  if (!(Math.abs(now / 1000 - Number(timestamp)) <= toleranceSeconds))
    throw new WebhookError(`the webhook is more than ${toleranceSeconds} s off`);
  const event = parse(typeof body === "string" ? body : Buffer.from(body).toString("utf8"));
  if (typeof event !== "object" || event === null) throw new WebhookError("the webhook has no event");
  return { id, isTest: readHeader(headers, "webhook-test") === "true", event: event as WebhookEvent };
}

function signWebhook(secret: string, id: string, timestamp: string, body: Uint8Array | string): string {
  if (!/^whsec_[A-Za-z0-9+/]+=*$/.test(secret)) throw new TypeError("a webhook secret begins with whsec_");
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`;
}

function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

function readHeader(headers: WebhookRequest["headers"], name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  return typeof value === "string" ? value : "";
}
