// Coupon codes: 16 characters of Crockford Base32.
//
//     character  1      key version
//                2-12   body, 55 bits: truncated HMAC(batch key, attempt and coupon number)
//                13-16  tag, 20 bits: truncated HMAC(tag key, version and body), the offline signature
//
// The tag reveals a mistyped or invented code without asking the database. The database has only the keyed lookup hash
// of a code. With 55 bits, two coupon numbers can get the same code. The lookup hash is unique, so minting notices and
// derives another code with the next attempt.
import { deriveKey, subKeysOf, type MasterKeys } from "./keys.ts";
import { crockfordAlphabet, crockfordPairs } from "../formats/crockford.ts";
import { createMac, type Mac } from "./mac.ts";

const codePattern = /^[0-9A-HJKMNP-TV-Z]{16}$/;
const bodyEnd = 12;
export const isAscii = /^[\0-\x7f]*$/;

/**
 * What a code may contain without a meaning: blanks, control and invisible characters, and dashes of every kind, which
 * scanners and keyboards add. Japanese keyboards write the long vowel sign for a hyphen. Unicode does not count the
 * Braille blank as a blank.
 */
export const fillers = /[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Dash}\u30fc\uff70\u2800]/gu;
const fullWidth = /[\uff01-\uff5e]/g;

/**
 * Returns the code in upper case, without fillers, with 0 for O and 1 for I and L, and with plain letters for
 * full-width ones. Returns null if `text` is not a code.
 */
export function normalizeCode(text: string): string | null {
  if (codePattern.test(text)) return text;
  // Accepts up to 64 characters, so even a separator after each character is fine.
  if (text.length < 16 || text.length > 64) return null;
  const code = likeCode(isAscii.test(text) ? text : toPlain(text));
  return codePattern.test(code) ? code : null;
}

function toPlain(text: string): string {
  const plain = text.replace(fullWidth, (sign) => String.fromCharCode(sign.charCodeAt(0) - 0xfee0));
  return plain.replace(fillers, "");
}

// Normalizes any text. Uses a table, because it runs for every request.
function likeCode(text: string): string {
  let read = "";
  for (let index = 0; index < text.length; index += 1) read += readAs[text.charCodeAt(index)] ?? text[index]!;
  return read;
}

// Index: ASCII code.
// equivalent mutant (literal 128): character 128 stays as it is, as if it were not in the table
const readAs = Array.from({ length: 128 }, (_, code) => {
  const letter = String.fromCharCode(code).toUpperCase();
  if (letter.replace(fillers, "") === "") return "";
  return letter === "O" ? "0" : letter === "I" || letter === "L" ? "1" : letter;
});

/** Whether we made this code: its key version is known and its tag is right. Takes a normalized code. */
export function checkCode(keys: MasterKeys, code: string): boolean {
  const subKeys = keys.versions.get(code[0]!);
  if (subKeys === undefined) return false;
  const expected = makeTag(subKeys.tag, code.slice(0, bodyEnd));
  // Compares all four characters, so that the time does not depend on the first difference.
  let difference = code.length ^ 16;
  for (let index = 0; index < expected.length; index += 1) {
    difference |= expected.charCodeAt(index) ^ code.charCodeAt(bodyEnd + index);
  }
  return difference === 0;
}

/** Returns what the database stores for a code: 128 bits of a keyed hash, written as a UUID. */
export function lookupHash(keys: MasterKeys, code: string): string {
  const hex = subKeysOf(keys, code[0]!).lookup(code, "hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}

/** Without the salt of a batch, its codes can never be derived again, not even with the master key. */
export function batchKey(keys: MasterKeys, version: string, salt: Uint8Array): Mac {
  return createMac(deriveKey(subKeysOf(keys, version).master, salt, "coupon/batch"));
}

/** `attempt` starts at 0 and goes up by one each time the code of a number is already in use. */
export function makeCode(keys: MasterKeys, version: string, key: Mac, number: number, attempt = 0): string {
  counter.writeUInt32BE(attempt, 0);
  counter.writeUInt32BE(number, 4);
  const digest = key(counter, "binary");
  // Takes the 55 bits in two steps, because bit operations are limited to 32: 30 bits are 6 characters, 25 bits 5.
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

// Reused for each code, which is safe because makeCode is synchronous. The upper half is the attempt.
const counter = Buffer.alloc(8);

function makeTag(key: Mac, head: string): string {
  const bits = bitsAt(key(head, "binary"), 0);
  return pair(bits, 22) + pair(bits, 12);
}

// A digest as text costs half as much as one as a buffer, and minting makes three per coupon.
function bitsAt(digest: string, at: number): number {
  return (
    (digest.charCodeAt(at) << 24) |
    (digest.charCodeAt(at + 1) << 16) |
    (digest.charCodeAt(at + 2) << 8) |
    digest.charCodeAt(at + 3)
  );
}

// Returns two characters.
function pair(bits: number, shift: number): string {
  return crockfordPairs[(bits >>> shift) & 1023]!;
}
