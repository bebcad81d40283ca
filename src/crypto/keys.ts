// The master keys, and the sub keys derived from them. They live in the process environment (or, beside the embedded
// server, in a file of mode 0600) and never in the database.
//
// COUPON_MASTER_KEY is `<base64 of 32 bytes>` (version 1), or a list `2:<base64>,1:<base64>` with the current key first.
// A version is one Crockford character and stands at the front of each code, so an old key stays in the list for as
// long as codes or sealed secrets made with it are in use.
import { createSecretKey, hkdfSync, randomBytes, type KeyObject } from "node:crypto";
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { crockfordAlphabet } from "../common/crockford.ts";
import { ConfigError } from "../common/config.ts";
import type { Address } from "../common/database-address.ts";

// One purpose, one key: what leaks about one says nothing about another.
export type SubKeys = { master: KeyObject; tag: KeyObject; lookup: KeyObject; seal: KeyObject; request: KeyObject };
export type MasterKeys = {
  current: string;
  // The version that hashes request bodies and secrets: the oldest, because a new current key must not make
  // the retry of an earlier request look like a different body.
  oldest: string;
  versions: ReadonlyMap<string, SubKeys>;
};

export function parseMasterKeys(text: string): MasterKeys {
  const versions = new Map<string, SubKeys>();
  const entries = text.split(",").map((entry) => entry.trim());
  for (const entry of entries) {
    const colon = entry.indexOf(":");
    if (colon === -1 && entries.length > 1)
      throw new ConfigError("COUPON_MASTER_KEY: in a list each key needs its version, as 2:<base64>,1:<base64>");
    const version = colon === -1 ? "1" : entry.slice(0, colon);
    if (version.length !== 1 || !crockfordAlphabet.includes(version))
      throw new ConfigError(`COUPON_MASTER_KEY: a version is one of ${crockfordAlphabet}`);
    if (versions.has(version)) throw new ConfigError(`COUPON_MASTER_KEY: version ${version} stands there twice`);
    versions.set(version, deriveSubKeys(decodeKey(entry.slice(colon + 1))));
  }
  const names = [...versions.keys()];
  return { current: names[0]!, oldest: names.at(-1)!, versions };
}

// From the setting; beside the embedded server, from a file made once.
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
  // A version is no secret; it is the first character of a code and the first byte of a sealed text.
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
  // Buffer.from skips what it does not know: only a text that comes back as it was is base64.
  if (bytes.length !== 32 || bytes.toString("base64").replace(/=+$/, "") !== text.replace(/=+$/, "")) {
    throw new ConfigError("COUPON_MASTER_KEY: each key is the base64 of exactly 32 bytes (openssl rand -base64 32)");
  }
  return bytes;
}

// Written whole beside its place and then linked: of several processes that start at once one wins, the others read
// its key, and a crash leaves no half a key behind.
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
