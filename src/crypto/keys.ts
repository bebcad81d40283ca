// The master keys, and the keys derived from them. They are in the process environment and never in the database. With
// the embedded server they may be in a file of mode 0600 instead.
//
// COUPON_MASTER_KEY is `<base64 of 32 bytes>` (version 1), or a list `2:<base64>,1:<base64>` with the current key
// first. A version is one Crockford character. Each code begins with the version of its key. Keep an old key in the
// list while codes or sealed secrets made with it are in use.
import { createSecretKey, hkdfSync, type KeyObject } from "node:crypto";
import { crockfordAlphabet } from "../formats/crockford.ts";
import { ConfigError } from "../config/config.ts";
import { createMac, type Mac } from "./mac.ts";

/**
 * One derived key per purpose, so that a leak of one of them reveals nothing about the others. `master` is the master
 * key itself, from which the keys of batches are derived.
 */
export type SubKeys = {
  master: KeyObject;
  tag: Mac;
  lookup: Mac;
  seal: KeyObject;
  request: Mac;
  portal: Mac;
  fingerprint: Mac;
};
export type MasterKeys = {
  /** Where the keys come from, for messages: the setting or a file. */
  source: string;
  current: string;
  /** The other versions. What they hashed and sealed is still valid. */
  others: string[];
  versions: ReadonlyMap<string, SubKeys>;
};

export function parseMasterKeys(text: string, source = "COUPON_MASTER_KEY"): MasterKeys {
  const versions = new Map<string, SubKeys>();
  const entries = text.split(",").map((entry) => entry.trim());
  for (const entry of entries) {
    const colon = entry.indexOf(":");
    if (colon === -1 && entries.length > 1)
      throw new ConfigError(`${source}: in a list, each key needs a version, such as 2:<base64>,1:<base64>`);
    const version = colon === -1 ? "1" : entry.slice(0, colon);
    if (version.length !== 1 || !crockfordAlphabet.includes(version))
      throw new ConfigError(`${source}: a version is one character of ${crockfordAlphabet}`);
    if (versions.has(version)) throw new ConfigError(`${source}: version ${version} is listed twice`);
    versions.set(version, deriveSubKeys(decodeKey(entry.slice(colon + 1), source)));
  }
  const [current, ...others] = versions.keys();
  return { source, current: current!, others, versions };
}

export function subKeysOf(keys: MasterKeys, version: string): SubKeys {
  const subKeys = keys.versions.get(version);
  // The message may name the version: it is not secret, because every code begins with it.
  if (subKeys === undefined) throw new Error(`${keys.source} has no key of version ${version}`);
  return subKeys;
}

export function deriveKey(key: KeyObject | Uint8Array, salt: Uint8Array, label: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", key, salt, label, 32));
}

function deriveSubKeys(bytes: Buffer): SubKeys {
  const none = Buffer.alloc(0);
  const derive = (label: string) => deriveKey(bytes, none, `coupon/${label}`);
  return {
    master: createSecretKey(bytes),
    tag: createMac(derive("tag")),
    lookup: createMac(derive("lookup")),
    seal: createSecretKey(derive("seal")),
    request: createMac(derive("request")),
    portal: createMac(derive("portal")),
    fingerprint: createMac(derive("fingerprint")),
  };
}

function decodeKey(text: string, source: string): Buffer {
  const bytes = Buffer.from(text, "base64");
  // Buffer.from skips characters that are not base64, so only a text that encodes back to itself is base64.
  if (bytes.length !== 32 || bytes.toString("base64").replace(/=+$/, "") !== text.replace(/=+$/, "")) {
    throw new ConfigError(`${source}: each key is the base64 of exactly 32 bytes (openssl rand -base64 32)`);
  }
  return bytes;
}
