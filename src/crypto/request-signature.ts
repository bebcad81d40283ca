// The signature of a request: HMAC-SHA256, keyed with the secret, over five lines.
//
// The target is the one of the request line, byte for byte: what a router makes of it (dots resolved, escapes
// decoded) is not what the caller signed.
import { createHmac, hash, timingSafeEqual } from "node:crypto";

export const windowSeconds = 300;

export type Signed = { method: string; target: string; timestamp: string; nonce: string; body: Uint8Array };
export type AuthHeaders = { accessKey: string; timestamp: string; nonce: string; signature: string };

// Latin-1, because that is how node reads a request line: one character a byte.
export function stringToSign({ method, target, timestamp, nonce, body }: Signed): Buffer {
  return Buffer.from(`${method}\n${target}\n${timestamp}\n${nonce}\n${hash("sha256", body)}\n`, "latin1");
}

export function sign(secret: string, signed: Signed): string {
  return createHmac("sha256", secret).update(stringToSign(signed)).digest("hex");
}

// Constant time. The signature must be 64 lower-case hex digits, which readAuthHeaders sees to.
export function verify(secret: string, signed: Signed, signature: string): boolean {
  const expected = createHmac("sha256", secret).update(stringToSign(signed)).digest();
  const given = Buffer.from(signature, "hex");
  return given.length === expected.length && timingSafeEqual(given, expected);
}

// Null when one is missing or malformed. A header sent twice arrives joined by a comma, which no pattern lets through.
export function readAuthHeaders(headers: Record<string, string | string[] | undefined>): AuthHeaders | null {
  const read = (name: string, pattern: RegExp) => {
    const value = headers[name];
    return typeof value === "string" && pattern.test(value) ? value : null;
  };
  const accessKey = read("x-svc-access-key", /^[A-Za-z0-9_.~-]{1,128}$/);
  const timestamp = read("x-svc-timestamp", /^[0-9]{10}$/);
  const nonce = read("x-svc-nonce", /^[A-Za-z0-9_-]{16,64}$/);
  const signature = read("x-svc-signature", /^[0-9a-f]{64}$/);
  if (accessKey === null || timestamp === null || nonce === null || signature === null) return null;
  return { accessKey, timestamp, nonce, signature };
}

export function isInWindow(timestamp: string, nowMs: number): boolean {
  return Math.abs(Math.floor(nowMs / 1000) - Number(timestamp)) <= windowSeconds;
}
