// The demo tenants. demo-tenants.json declares them. Their secrets are generated on the first start and kept in
// DATA_DIR/demo.json, readable by its owner only: `npm run demo` and the call that `npm start` prints sign with them.
import { randomBytes } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { MasterKeys } from "../crypto/keys.ts";
import type { Database } from "../database/types.ts";
import { apply } from "./apply.ts";
import document from "./demo-tenants.json" with { type: "json" };

export type DemoSecrets = Record<string, string>;

export function demoFile(dataDir: string): string {
  return join(dataDir, "demo.json");
}

export async function readDemoSecrets(dataDir: string): Promise<DemoSecrets | null> {
  try {
    return JSON.parse(await readFile(demoFile(dataDir), "utf8")) as DemoSecrets;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/**
 * Loads the demo tenants into a database without tenants. Returns whether it did. Writes the file first, so that after
 * a kill in between, the next start applies the same secrets.
 */
export async function loadDemoTenants(database: Database, keys: MasterKeys, dataDir: string): Promise<boolean> {
  const [state] = await database.rows<{ has_tenants: boolean }>("select admin.has_tenants() as has_tenants", []);
  if (state?.has_tenants) return false;
  const secrets = (await readDemoSecrets(dataDir)) ?? (await writeDemoSecrets(dataDir));
  const tenants = document.tenants.map((tenant) => ({
    ...tenant,
    credentials: tenant.credentials.map((credential) => ({ ...credential, secret: secrets[credential.access_key] })),
  }));
  await apply(database, keys, { tenants });
  return true;
}

async function writeDemoSecrets(dataDir: string): Promise<DemoSecrets> {
  const accessKeys = document.tenants.flatMap((tenant) =>
    tenant.credentials.map((credential) => credential.access_key),
  );
  const secrets = Object.fromEntries(accessKeys.map((accessKey) => [accessKey, randomBytes(32).toString("base64url")]));
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const draft = `${demoFile(dataDir)}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 });
  await rename(draft, demoFile(dataDir));
  return secrets;
}
