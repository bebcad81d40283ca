// The service must read the HMAC secrets of credentials and webhooks again, so it stores them sealed:
//
//     key version (1 byte) · nonce (12) · AES-256-GCM ciphertext · tag (16)
//
// The seal covers the purpose, so a sealed secret that is copied to the row of another credential does not open.
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { subKeysOf, type MasterKeys } from "./keys.ts";

const nonceBytes = 12;
const tagBytes = 16;

export const credentialPurpose = (accessKey: string) => `credential ${accessKey}`;
export const webhookPurpose = (tenant: string, party: string) => `webhook ${tenant} ${party}`;

export function seal(keys: MasterKeys, purpose: string, text: string): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", subKeysOf(keys, keys.current).seal, nonce);
  const version = Buffer.from(keys.current, "latin1");
  cipher.setAAD(Buffer.concat([version, Buffer.from(purpose)]));
  return Buffer.concat([version, nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
}

/** Throws if the text was changed, or was sealed with another key or for another purpose. */
export function open(keys: MasterKeys, purpose: string, sealed: Uint8Array): string {
  const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
  if (bytes.length < 1 + nonceBytes + tagBytes) throw new Error("a sealed secret is too short");
  const version = bytes.subarray(0, 1);
  const key = subKeysOf(keys, version.toString("latin1")).seal;
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(1, 1 + nonceBytes), { authTagLength: tagBytes });
  decipher.setAAD(Buffer.concat([version, Buffer.from(purpose)]));
  decipher.setAuthTag(bytes.subarray(-tagBytes));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(1 + nonceBytes, -tagBytes)), decipher.final()]).toString(
      "utf8",
    );
  } catch {
    throw new Error(
      "a sealed secret does not open: it was changed, or COUPON_MASTER_KEY is not the key that sealed it",
    );
  }
}

/**
 * The database stores this hash, so that it can compare a secret with the stored one without opening it. `version`
 * chooses another key of the list, for a secret that was stored under that key.
 */
export function hashSecret(keys: MasterKeys, secret: string, version = keys.current): string {
  return subKeysOf(keys, version).request(secret, "hex");
}
