// The master keys, and the keys derived from them. They are in the process environment and never in the database. With
// the embedded server they may be in a file of mode 0600 instead.
//
// COUPON_MASTER_KEY is `<base64 of 32 bytes>` (version 1), or a list `2:<base64>,1:<base64>` with the current key
// first. A version is one Crockford character. Each code begins with the version of its key. Keep an old key in the
// list while codes or sealed secrets made with it are in use.
import { createSecretKey, hkdfSync, randomBytes, type KeyObject } from "node:crypto";
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { crockfordAlphabet } from "../common/crockford.ts";
import { ConfigError } from "../common/config.ts";
import type { Address } from "../common/database-address.ts";

/**
 * One derived key per purpose, so that a leak of one of them reveals nothing about the others. `master` is the master
 * key itself, from which the keys of batches are derived.
 */
export type SubKeys = { master: KeyObject; tag: KeyObject; lookup: KeyObject; seal: KeyObject; request: KeyObject };
export type MasterKeys = {
  current: string;
  /**
   * The version that hashes request bodies and secrets. It is the oldest, so that a retry has the same hash as the
   * original request even if the current key has changed in between.
   */
  oldest: string;
  versions: ReadonlyMap<string, SubKeys>;
};

export function parseMasterKeys(text: string): MasterKeys {
  const versions = new Map<string, SubKeys>();
  const entries = text.split(",").map((entry) => entry.trim());
  for (const entry of entries) {
    const colon = entry.indexOf(":");
    if (colon === -1 && entries.length > 1)
      throw new ConfigError("COUPON_MASTER_KEY: in a list, each key needs a version, such as 2:<base64>,1:<base64>");
    const version = colon === -1 ? "1" : entry.slice(0, colon);
    if (version.length !== 1 || !crockfordAlphabet.includes(version))
      throw new ConfigError(`COUPON_MASTER_KEY: a version is one character of ${crockfordAlphabet}`);
    if (versions.has(version)) throw new ConfigError(`COUPON_MASTER_KEY: version ${version} is listed twice`);
    versions.set(version, deriveSubKeys(decodeKey(entry.slice(colon + 1))));
  }
  const names = [...versions.keys()];
  return { current: names[0]!, oldest: names.at(-1)!, versions };
}

/** Reads the keys from the setting. With the embedded server and no setting, reads or creates a key file. */
export function loadMasterKeys(config: {
  masterKeyText: string | null;
  address: Address | null;
  dataDir: string;
}): MasterKeys {
  if (config.masterKeyText !== null) return parseMasterKeys(config.masterKeyText);
  if (config.address !== null)
    throw new ConfigError(
      "COUPON_MASTER_KEY is required with DATABASE_URL: 32 random bytes in base64 (openssl rand -base64 32)",
    );
  return parseMasterKeys(readOrMakeKeyFile(config.dataDir));
}

export function subKeysOf(keys: MasterKeys, version: string): SubKeys {
  const subKeys = keys.versions.get(version);
  // The message may name the version: it is no secret, since every code begins with it.
  if (subKeys === undefined) throw new Error(`COUPON_MASTER_KEY has no key of version ${version}`);
  return subKeys;
}

export function deriveKey(key: KeyObject | Uint8Array, salt: Uint8Array, label: string): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync("sha256", key, salt, label, 32)));
}

function deriveSubKeys(bytes: Buffer): SubKeys {
  const none = Buffer.alloc(0);
  const derive = (label: string) => deriveKey(bytes, none, `coupon/${label}`);
  return {
    master: createSecretKey(bytes),
    tag: derive("tag"),
    lookup: derive("lookup"),
    seal: derive("seal"),
    request: derive("request"),
  };
}

function decodeKey(text: string): Buffer {
  const bytes = Buffer.from(text, "base64");
  // Buffer.from skips characters that are not base64, so only a text that encodes back to itself is base64.
  if (bytes.length !== 32 || bytes.toString("base64").replace(/=+$/, "") !== text.replace(/=+$/, "")) {
    throw new ConfigError("COUPON_MASTER_KEY: each key is the base64 of exactly 32 bytes (openssl rand -base64 32)");
  }
  return bytes;
}

// Writes a temporary file and links it into place. If several processes start at once, one wins and the others read its
// key. A crash never leaves half a key.
function readOrMakeKeyFile(dataDir: string): string {
  const path = join(dataDir, "master.key");
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  mkdirSync(dataDir, { recursive: true });
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    const file = openSync(draft, "wx", 0o600);
    writeSync(file, `${randomBytes(32).toString("base64")}\n`);
    fsyncSync(file);
    closeSync(file);
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return readFileSync(path, "utf8").trim();
}
