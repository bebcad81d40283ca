// Signs requests: HMAC-SHA256 over five lines, keyed with the secret. docs/integrate.md describes it.
import { createHash, createHmac, randomBytes } from "node:crypto";

export type Credential = { accessKey: string; secret: string };
export type Signed = { method: string; target: string; timestamp: string; nonce: string; body: Uint8Array };

/** Encodes as Latin-1, because Node sends a request line that way. */
export function sign(secret: string, { method, target, timestamp, nonce, body }: Signed): string {
  const bodyHash = createHash("sha256").update(body).digest("hex");
  const lines = `${method}\n${target}\n${timestamp}\n${nonce}\n${bodyHash}\n`;
  return createHmac("sha256", secret).update(lines, "latin1").digest("hex");
}

/** The four headers of a request. */
export function signedHeaders({ accessKey, secret }: Credential, signed: Signed): Record<string, string> {
  return {
    "x-svc-access-key": accessKey,
    "x-svc-timestamp": signed.timestamp,
    "x-svc-nonce": signed.nonce,
    "x-svc-signature": sign(secret, signed),
  };
}

/** At least 90 random bits, see `newRequestId`. */
export function newNonce(): string {
  return `u${randomBytes(12).toString("base64url").slice(1)}`;
}

/**
 * A new `request_id`. The service refuses a text that contains a coupon code. No code has the letter `u`, and this text
 * has one at least every 16 characters, so it is never refused by chance.
 */
export function newRequestId(): string {
  return `u${randomBytes(6).toString("hex")}u${randomBytes(6).toString("hex")}`;
}
