// The signature of a request: HMAC-SHA256 over five lines, keyed with the caller's secret.
//
// The target is the bytes from the request line. A router resolves dots and decodes escapes, so its path is not what
// the caller signed.
import { hash, timingSafeEqual } from "node:crypto";
import type { Mac } from "./mac.ts";

const windowSeconds = 300;

export type Signed = { method: string; target: string; timestamp: string; nonce: string; body: Uint8Array };
export type AuthHeaders = { accessKey: string; timestamp: string; nonce: string; signature: string };

/** Encodes as Latin-1, because Node reads a request line that way: one character per byte. */
export function stringToSign({ method, target, timestamp, nonce, body }: Signed): Buffer {
  return Buffer.from(`${method}\n${target}\n${timestamp}\n${nonce}\n${hash("sha256", body)}\n`, "latin1");
}

/** `secret` is a Mac of the secret's UTF-8 bytes. Returns hex digits. */
export const sign = (secret: Mac, signed: Signed): string => secret(stringToSign(signed), "hex");

/** Compares in constant time. `signature` must be hex digits, as readAuthHeaders returns it. */
export function verify(secret: Mac, signed: Signed, signature: string): boolean {
  const expected = Buffer.from(sign(secret, signed), "latin1");
  const given = Buffer.from(signature, "latin1");
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** The headers of a signed request. */
export const authHeaders = {
  "x-svc-access-key": /^[A-Za-z0-9_.~-]{1,128}$/,
  "x-svc-timestamp": /^[0-9]{10}$/,
  "x-svc-nonce": /^[A-Za-z0-9_-]{16,64}$/,
  "x-svc-signature": /^[0-9a-f]{64}$/,
};

/** What each of them must be, for people. */
export const headerForms: Record<keyof typeof authHeaders, string> = {
  "x-svc-access-key": "1 to 128 characters of A-Z a-z 0-9 _ . ~ -",
  "x-svc-timestamp": "exactly 10 digits, the time in Unix seconds",
  "x-svc-nonce": "16 to 64 characters of A-Z a-z 0-9 _ -",
  "x-svc-signature": "64 lower-case hexadecimal digits",
};

export type HeaderIssue = { path: string; message: string };

/**
 * Names each header that is missing or malformed, without its value. Node joins a duplicate header with a comma, which
 * no pattern allows.
 */
export function readAuthHeaders(
  headers: Record<string, string | string[] | undefined>,
): AuthHeaders | { issues: HeaderIssue[] } {
  const issues: HeaderIssue[] = [];
  const read = (name: keyof typeof authHeaders): string => {
    const value = headers[name];
    if (typeof value === "string" && authHeaders[name].test(value)) return value;
    const fault = value === undefined ? "is missing: it must be" : "must be";
    issues.push({ path: name, message: `${fault} ${headerForms[name]}` });
    return "";
  };
  const accessKey = read("x-svc-access-key");
  const timestamp = read("x-svc-timestamp");
  const nonce = read("x-svc-nonce");
  const signature = read("x-svc-signature");
  return issues.length > 0 ? { issues } : { accessKey, timestamp, nonce, signature };
}

export function isInWindow(timestamp: string, nowMs: number): boolean {
  return Math.abs(Math.floor(nowMs / 1000) - Number(timestamp)) <= windowSeconds;
}
