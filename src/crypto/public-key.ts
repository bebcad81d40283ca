// Files that only one party can read: the format of the program age (age-encryption.org/v1), for an X25519 key.
import type { Encrypter } from "age-encryption";

const pattern = /^age1[02-9ac-hj-np-z]{58}$/;

/** Whether age can encrypt to this key. Other kinds of keys (age1pq1…, age1yubikey1…, ssh-…) do not count. */
export async function isPublicKey(text: string): Promise<boolean> {
  if (!pattern.test(text)) return false;
  try {
    // Finds a wrong checksum, and a point that makes no secret.
    await (await encrypterFor(text)).encrypt("");
    return true;
  } catch {
    return false;
  }
}

/**
 * Encrypts as the result is read: at most three chunks of 64 KiB are in memory. `size` of the result says how long the
 * file of so many bytes is. Its last chunk is marked, so a reader notices if the end is missing.
 */
export async function encryptTo(publicKey: string, file: ReadableStream<Uint8Array>) {
  return (await encrypterFor(publicKey)).encrypt(file);
}

/**
 * Loads the package: few commands need it, and the others start in two thirds of the time. A program that serves tills
 * calls this when it starts, so no till waits for it later.
 */
export const loadEncryption = () => import("age-encryption");

async function encrypterFor(publicKey: string): Promise<Encrypter> {
  const { Encrypter } = await loadEncryption();
  const encrypter = new Encrypter();
  encrypter.addRecipient(publicKey);
  return encrypter;
}
