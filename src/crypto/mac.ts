// HMAC-SHA256 (RFC 2104), made of two hashes. Node's createHmac takes twice as long: it makes an object for each
// message, which the garbage collector must then remove.
import { hash } from "node:crypto";

/** The key cannot be read from it, not even by logging it. */
export type Mac = (message: string | Uint8Array, encoding: "hex" | "binary") => string;

const blockBytes = 64;
const digestBytes = 32;

export function createMac(key: string | Uint8Array): Mac {
  const bytes = Buffer.from(key);
  const block = Buffer.concat([bytes.length > blockBytes ? hash("sha256", bytes, "buffer") : bytes], blockBytes);
  const inner = block.map((byte) => byte ^ 0x36);
  const outer = Buffer.concat([block.map((byte) => byte ^ 0x5c)], blockBytes + digestBytes);
  return (message, encoding) => {
    const bytes = Buffer.concat([inner, typeof message === "string" ? Buffer.from(message) : message]);
    outer.write(hash("sha256", bytes, "binary"), blockBytes, "binary");
    return hash("sha256", outer, encoding);
  };
}
