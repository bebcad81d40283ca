// Coupon codes: 16 characters of Crockford Base32.
//
//     character  1      key version
//                2-12   body, 55 bits: truncated HMAC(batch key, attempt and coupon number)
//                13-16  tag, 20 bits: truncated HMAC(tag key, version and body), the offline signature
//
// The tag lets a mistyped or invented code be refused without the database; the database knows a code only by
// its keyed lookup hash. Two numbers can meet in one code (55 bits): the lookup hash is unique, so minting sees it
// and draws the code of that number again with the next attempt.
import { createHmac, type KeyObject } from "node:crypto";
import { deriveKey, subKeysOf, type MasterKeys } from "./keys.ts";
import { crockfordAlphabet, crockfordPairs } from "../common/crockford.ts";

const codePattern = /^[0-9A-HJKMNP-TV-Z]{16}$/;
const bodyEnd = 12;

// Upper case, without hyphens and spaces, the look-alikes O, I and L read as 0 and 1. Null: no code at all.
export function normalizeCode(text: string): string | null {
  if (codePattern.test(text)) return text;
  // Groups of one with a separator each are still a code; beyond that nobody types.
  if (text.length < 16 || text.length > 64) return null;
  const code = likeCode(text);
  return codePattern.test(code) ? code : null;
}

// Whether a text spells this code, alone or among other words ("lock-…"). Takes a normalized code.
export function spells(text: string, code: string): boolean {
  return text.length >= 16 && likeCode(text).includes(code);
}

// Read as a code is, whatever else it says. By a table, because every free text of a request is looked at.
function likeCode(text: string): string {
  let read = "";
  for (let index = 0; index < text.length; index += 1) read += readAs[text.charCodeAt(index)] ?? text[index]!;
  return read;
}

// By ASCII code.
const readAs = Array.from({ length: 128 }, (_, code) => {
  const letter = String.fromCharCode(code).toUpperCase();
  return letter === "-" || letter === " " ? "" : letter === "O" ? "0" : letter === "I" || letter === "L" ? "1" : letter;
});

// Whether we made this code: known key version, right tag. Takes a normalized code.
export function checkCode(keys: MasterKeys, code: string): boolean {
  const subKeys = keys.versions.get(code[0]!);
  if (subKeys === undefined) return false;
  const expected = makeTag(subKeys.tag, code.slice(0, bodyEnd));
  // All four characters are looked at, whatever the first ones are.
  let difference = code.length ^ 16;
  for (let index = 0; index < expected.length; index += 1) {
    difference |= expected.charCodeAt(index) ^ code.charCodeAt(bodyEnd + index);
  }
  return difference === 0;
}

// What the database knows of a code: 128 bits of a keyed hash, written as a uuid.
export function lookupHash(keys: MasterKeys, code: string): string {
  const hex = createHmac("sha256", subKeysOf(keys, code[0]!).lookup).update(code).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}

// Without the batch's salt its codes cannot be derived again, not even by who has the master key.
export function batchKey(keys: MasterKeys, version: string, salt: Uint8Array): KeyObject {
  return deriveKey(subKeysOf(keys, version).master, salt, "coupon/batch");
}

// `attempt` counts up when the code of a number was taken already.
export function makeCode(keys: MasterKeys, version: string, key: KeyObject, number: number, attempt = 0): string {
  counter.writeUInt32BE(attempt, 0);
  counter.writeUInt32BE(number, 4);
  const digest = createHmac("sha256", key).update(counter).digest("binary");
  // The first 55 bits in two steps, as bit operations have 32: 30 are 6 characters, the 25 behind them are 5.
  const left = bitsAt(digest, 0);
  const right = (left << 30) | (bitsAt(digest, 4) >>> 2);
  const head =
    version +
    pair(left, 22) +
    pair(left, 12) +
    pair(left, 2) +
    pair(right, 22) +
    pair(right, 12) +
    crockfordAlphabet[(right >>> 7) & 31];
  return head + makeTag(subKeysOf(keys, version).tag, head);
}

// Used again for each code: nothing waits between writing and reading it. The upper half is the attempt.
const counter = Buffer.alloc(8);

function makeTag(key: KeyObject, head: string): string {
  const bits = bitsAt(createHmac("sha256", key).update(head).digest("binary"), 0);
  return pair(bits, 22) + pair(bits, 12);
}

// A digest as text costs half of one as a buffer: minting makes three a coupon.
function bitsAt(digest: string, at: number): number {
  return (
    (digest.charCodeAt(at) << 24) |
    (digest.charCodeAt(at + 1) << 16) |
    (digest.charCodeAt(at + 2) << 8) |
    digest.charCodeAt(at + 3)
  );
}

// Two characters at a time.
function pair(bits: number, shift: number): string {
  return crockfordPairs[(bits >>> shift) & 1023]!;
}
