// Signs webhooks as Standard Webhooks specifies (https://www.standardwebhooks.com). Receivers verify them with
// clients/typescript.
import { createHmac, randomBytes } from "node:crypto";

const secretPrefix = "whsec_";

export function newWebhookSecret(): string {
  return `${secretPrefix}${randomBytes(32).toString("base64")}`;
}

/** Returns one signature for the header webhook-signature. `timestamp` is in seconds. */
export function signWebhook(secret: string, id: string, timestamp: number, body: string | Uint8Array): string {
  const key = Buffer.from(secret.slice(secretPrefix.length), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`;
}
