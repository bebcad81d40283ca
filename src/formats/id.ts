// External IDs are TypeIDs: a prefix, an underscore and a UUIDv7 as 26 characters of lower-case Crockford Base32.
import { randomBytes } from "node:crypto";
import { crockfordAlphabet } from "./crockford.ts";

const hyphen = 0x2d;
const alphabet = Buffer.from(crockfordAlphabet.toLowerCase());
// The value of each hexadecimal digit, by its character code.
const digits = new Uint8Array(128);
for (let value = 0; value < 16; value += 1) digits[value.toString(16).charCodeAt(0)] = value;
// Building a string of single characters would take twice as long.
const written = Buffer.alloc(26);

/** `now` is in milliseconds since 1970. */
export function newId(prefix: string, now: number = Date.now()): string {
  return externalId(prefix, now.toString(16).padStart(12, "0") + drawTails(1).toString("hex"));
}

const tailSize = 10;

/** Returns the last ten bytes of `count` UUIDv7s, which begin with the version. The bytes before are the time. */
export function drawTails(count: number): Buffer {
  const tails = randomBytes(count * tailSize);
  for (let at = 0; at < tails.length; at += tailSize) {
    tails[at] = 0x70 | (tails[at]! & 0x0f);
    tails[at + 2] = 0x80 | (tails[at + 2]! & 0x3f);
  }
  return tails;
}

/** Does the same as rules.format_id in the database. Takes a UUID as PostgreSQL writes it, with or without hyphens. */
export function externalId(prefix: string, uuid: string): string {
  // 26 characters hold 130 bits, so the 128 bits follow two zero bits.
  let [bits, count, at] = [0, 2, 0];
  for (let index = 0; index < uuid.length; index += 1) {
    const code = uuid.charCodeAt(index);
    if (code === hyphen) continue;
    bits = (bits << 4) | digits[code]!;
    count += 4;
    if (count < 5) continue;
    count -= 5;
    written[at] = alphabet[bits >> count]!;
    at += 1;
    bits &= (1 << count) - 1;
  }
  return `${prefix}_${written.toString("latin1", 0, at)}`;
}
