// External ids in the TypeID form: prefix, underscore, the 26 characters of a UUIDv7 in lower-case Crockford Base32.
import { randomBytes } from "node:crypto";

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";

export function newId(prefix: string, now: number = Date.now()): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(now, 0, 6);
  bytes[6] = 0x70 | (bytes[6]! & 0x0f);
  bytes[8] = 0x80 | (bytes[8]! & 0x3f);
  let bits = bytes.readBigUInt64BE(0) * 2n ** 64n + bytes.readBigUInt64BE(8);
  let text = "";
  for (let index = 0; index < 26; index += 1) {
    text = alphabet[Number(bits & 31n)] + text;
    bits >>= 5n;
  }
  return `${prefix}_${text}`;
}
