// External IDs are TypeIDs: a prefix, an underscore and a UUIDv7 as 26 characters of lower-case Crockford Base32.
import { randomBytes } from "node:crypto";
import { crockfordPairs } from "./crockford.ts";

const [hyphen, digit0, letterA] = [0x2d, 0x30, 0x61];
const pairs = crockfordPairs.map((pair) => pair.toLowerCase());

/** `now` is in milliseconds since 1970. */
export function newId(prefix: string, now: number = Date.now()): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(now, 0, 6);
  bytes[6] = 0x70 | (bytes[6]! & 0x0f);
  bytes[8] = 0x80 | (bytes[8]! & 0x3f);
  return externalId(prefix, bytes.toString("hex"));
}

/** Does the same as rules.format_id in the database. Takes a UUID as PostgreSQL writes it, with or without hyphens. */
export function externalId(prefix: string, uuid: string): string {
  let text = `${prefix}_`;
  // 26 characters hold 130 bits, so the 128 bits follow two zero bits.
  let [bits, count] = [0, 2];
  for (let index = 0; index < uuid.length; index += 1) {
    const code = uuid.charCodeAt(index);
    if (code === hyphen) continue;
    bits = (bits << 4) | (code < letterA ? code - digit0 : code - letterA + 10);
    count += 4;
    if (count < 10) continue;
    count -= 10;
    text += pairs[bits >> count];
    bits &= (1 << count) - 1;
  }
  return text;
}
