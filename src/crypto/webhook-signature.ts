// Signs and verifies webhooks as Standard Webhooks specifies (https://www.standardwebhooks.com).
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

const secretPrefix = "whsec_";

export function newWebhookSecret(): string {
  return `${secretPrefix}${randomBytes(32).toString("base64")}`;
}

/** Returns one signature for the header webhook-signature. `timestamp` is in seconds. */
export function signWebhook(secret: string, id: string, timestamp: number, body: string | Uint8Array): string {
  const key = Buffer.from(secret.slice(secretPrefix.length), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`;
}

const toleranceSeconds = 300;

export type ReceivedWebhook = { id: string; timestamp: string; signature: string; body: Uint8Array };

/**
 * What is wrong with a webhook that was received; null: one of the secrets signed it, within the tolerance. Compares in
 * constant time.
 */
export function refuseWebhook(secrets: readonly string[], received: ReceivedWebhook, nowMs: number): string | null {
  const { id, timestamp, signature, body } = received;
  if (id === "" || signature === "" || !/^\d{1,12}$/.test(timestamp)) return "a header is missing or malformed";
  if (Math.abs(Math.floor(nowMs / 1000) - Number(timestamp)) > toleranceSeconds)
    return `the timestamp is more than ${toleranceSeconds} s off`;
  const expected = secrets.map((secret) => Buffer.from(signWebhook(secret, id, Number(timestamp), body)));
  const given = signature.split(" ").map((one) => Buffer.from(one));
  const isSigned = given.some((one) =>
    expected.some((each) => each.length === one.length && timingSafeEqual(each, one)),
  );
  return isSigned ? null : "no signature is right: another secret, or a changed body";
}
