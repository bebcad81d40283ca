// Recognizes the master keys that a database was used with. The database keeps a fingerprint of each version: 128 bits
// of an HMAC under a key that is derived from the master key for this purpose alone. It tells whether a key is the
// same, and does not help to find the key.
import { ConfigError } from "../config/config.ts";
import type { MasterKeys } from "./keys.ts";

/**
 * A row of rules.register_keys. DIFFERS: the database was used with another key of that version. MISSING: the
 * program lacks a version that codes or secrets still need.
 */
export type KeyProblem = { version: string; problem: "DIFFERS" | "MISSING" };

/** Returns the parameter of rules.register_keys: a JSON object that maps each version to its fingerprint in hex. */
export function fingerprintKeys({ versions }: MasterKeys): string {
  const fingerprints = [...versions].map(([version, { fingerprint }]) => [
    version,
    fingerprint(version, "hex").slice(0, 32),
  ]);
  return JSON.stringify(Object.fromEntries(fingerprints));
}

/**
 * Makes the check of a program that asks again while it runs. Once no version was missing, the check allows one to be
 * missing: a rotation may have added it later.
 */
export function createKeyReview(keys: MasterKeys): (problems: KeyProblem[]) => void {
  let mayLack = false;
  return (problems) => {
    refuseWrongKeys(keys, problems, { mayLack });
    mayLack = true;
  };
}

/** Throws a ConfigError that names the first wrong or missing version. */
export function refuseWrongKeys({ source }: MasterKeys, problems: KeyProblem[], { mayLack = false } = {}): void {
  const found = problems.find(({ problem }) => problem === "DIFFERS" || !mayLack);
  if (found === undefined) return;
  throw new ConfigError(
    found.problem === "DIFFERS"
      ? `${source}: key ${found.version} is not the one this database was used with`
      : `${source}: key ${found.version} is missing, but codes or secrets in this database were made with it`,
  );
}
