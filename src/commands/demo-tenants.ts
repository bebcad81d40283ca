// The demo tenants. demo-tenants.json declares them. Their secrets are generated on the first start and kept in
// DATA_DIR/demo.json, readable by its owner only: `npm run demo` and the call that `npm start` prints sign with them.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { MasterKeys } from "../crypto/keys.ts";
import type { Database } from "../database/types.ts";
import { ConfigError } from "../config/config.ts";
import { makeDataDir } from "../embedded/data-directory.ts";
import { makeSecretFile, readSecretFile } from "../embedded/trust.ts";
import { apply } from "./apply.ts";
import document from "./demo-tenants.json" with { type: "json" };

export type DemoSecrets = Record<string, string>;

export function demoFile(dataDir: string): string {
  return join(dataDir, "demo.json");
}

export function readDemoSecrets(dataDir: string): DemoSecrets | null {
  const file = demoFile(dataDir);
  const text = readSecretFile(file);
  if (text === null) return null;
  try {
    return JSON.parse(text) as DemoSecrets;
  } catch {
    // JSON.parse quotes a part of the text, which may be a secret.
    throw new ConfigError(`${file} is not JSON`);
  }
}

/**
 * Loads the demo tenants into a database without tenants. Returns whether it did. Writes the file first, so that after
 * a kill in between, the next start applies the same secrets.
 */
export async function loadDemoTenants(database: Database, keys: MasterKeys, dataDir: string): Promise<boolean> {
  const [state] = await database.rows<{ has_tenants: boolean }>("select admin.has_tenants() as has_tenants", []);
  if (state?.has_tenants) return false;
  const secrets = readDemoSecrets(dataDir) ?? makeDemoSecrets(dataDir);
  const tenants = document.tenants.map((tenant) => ({
    ...tenant,
    credentials: tenant.credentials.map((credential) => ({ ...credential, secret: secrets[credential.access_key] })),
  }));
  await apply(database, keys, { tenants });
  return true;
}

function makeDemoSecrets(dataDir: string): DemoSecrets {
  const accessKeys = document.tenants.flatMap((tenant) =>
    tenant.credentials.map((credential) => credential.access_key),
  );
  const secrets = Object.fromEntries(accessKeys.map((accessKey) => [accessKey, randomBytes(32).toString("base64url")]));
  makeDataDir(dataDir);
  makeSecretFile(demoFile(dataDir), `${JSON.stringify(secrets, null, 2)}\n`);
  return readDemoSecrets(dataDir)!;
}
