// npm run apply is provisioning: it creates or updates everything that FILE declares, all or nothing. Applying a file
// twice changes nothing. It prints JSON, with the secrets that this run generated; no later run can show them again.
// Secrets are sealed here, so the database never sees one.
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { defineCommand } from "../command-line/command.ts";
import { ConfigError, readConfig } from "../config/config.ts";
import { writeOutput } from "../command-line/output.ts";
import { withProgress } from "../command-line/progress.ts";
import { keySettings } from "../config/settings.ts";
import { createCodeFinder } from "../crypto/find-code.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import { isPublicKey } from "../crypto/public-key.ts";
import { credentialPurpose, hashSecret, seal, webhookPurpose } from "../crypto/seal.ts";
import { newWebhookSecret } from "../crypto/webhook-signature.ts";
import { sqlDetail, sqlState } from "../database/connect.ts";
import type { Database } from "../database/types.ts";
import { findAddress } from "../embedded/find-address.ts";
import { loadMasterKeys } from "../embedded/load-keys.ts";
import { listCodes } from "../http/code-places.ts";
import type { Issue } from "../http/problem.ts";
import { JsonError, parseJson } from "../http/strict-json.ts";
import { checkKeys, withAdminDatabase } from "./admin-database.ts";
import { refuseCodesInArguments } from "./refuse-codes-in-arguments.ts";
import type { Route } from "./find-cell.ts";
import { placeTenants } from "./place-tenants.ts";
import { ApplyError, readProvisioning, type Provisioning } from "./provisioning.ts";

export type Applied = {
  is_dry_run: boolean;
  changed: number;
  tenants: unknown[];
  /** Each changed object with its changed fields, old and new, as the audit log has them. */
  changes: unknown[];
  /** Stores, terminals and delegates of merchants, and merchants of templates. */
  removals: unknown[];
  /** Access keys in the file that stay revoked. */
  revoked_credentials: string[];
  generated_secrets: {
    /** A dry run makes no secret: it shows null. */
    credentials: { access_key: string; secret: string | null }[];
    webhooks: { tenant: string; party: string; secret: string | null }[];
  };
};

export type ApplyOptions = { reason?: string | null; isDryRun?: boolean; allowsRemovals?: boolean };

export async function apply(
  database: Database,
  keys: MasterKeys,
  file: unknown,
  options: ApplyOptions = {},
): Promise<Applied> {
  const { isDryRun = false } = options;
  const parsed = readProvisioning(file);
  refuseCodes(keys, file);
  await refusePublicKeys(parsed);
  const { document, generated } = sealSecrets(keys, parsed);
  const stored = await store(database, document, options);
  const secretOf = (purpose: string) => (isDryRun ? null : generated.get(purpose)!);
  // If the credential already exists, its old secret stays and the generated one is dropped.
  return {
    is_dry_run: isDryRun,
    changed: stored.changed,
    tenants: stored.tenants,
    changes: stored.changes,
    removals: stored.removals,
    revoked_credentials: stored.revoked_credentials,
    generated_secrets: {
      credentials: stored.credentials_kept_generated.map((access_key) => ({
        access_key,
        secret: secretOf(credentialPurpose(access_key)),
      })),
      webhooks: stored.webhooks_kept_generated.map(({ tenant, party }) => ({
        tenant,
        party,
        secret: secretOf(webhookPurpose(tenant, party)),
      })),
    },
  };
}

type Stored = Pick<Applied, "changed" | "tenants" | "changes" | "removals" | "revoked_credentials"> & {
  credentials_kept_generated: string[];
  webhooks_kept_generated: { tenant: string; party: string }[];
};

// Requests must not contain a code, so an ID that looks like one could never be used. Other texts would store the code.
// A secret is only stored sealed, so it is not searched.
function refuseCodes(keys: MasterKeys, file: unknown): void {
  const isSecret = (path: string) => path.endsWith(".secret");
  const issues = listCodes(createCodeFinder(keys, Infinity), [{ path: "", value: file }], isSecret);
  if (issues.length > 0) throw new ApplyError(issues);
}

// The key may be well-formed and mistyped. Then no one could read what is encrypted to it.
async function refusePublicKeys({ tenants }: Provisioning): Promise<void> {
  const issues: Issue[] = [];
  for (const [tenantIndex, { parties }] of tenants.entries())
    for (const [index, { public_key }] of parties.entries())
      if (typeof public_key === "string" && !(await isPublicKey(public_key)))
        issues.push({
          path: `tenants.${tenantIndex}.parties.${index}.public_key`,
          message: "must be an X25519 key of age, as age-keygen prints it: age1 and 58 more characters",
        });
  if (issues.length > 0) throw new ApplyError(issues);
}

async function store(database: Database, document: unknown, options: ApplyOptions): Promise<Stored> {
  const { reason = null, isDryRun = false, allowsRemovals = false } = options;
  try {
    const [row] = await database.rows<{ answer: string }>(
      "select admin.apply($1::text::jsonb, $2, $3, $4)::text as answer",
      [JSON.stringify(document), reason, isDryRun, allowsRemovals],
    );
    return JSON.parse(row!.answer) as Stored;
  } catch (error) {
    // The database refused the file. The detail lists its issues, with the same kind of paths.
    if (sqlState(error) !== "CP400") throw error;
    const detail = sqlDetail(error);
    // Without a detail, the reason was refused.
    throw detail === null ? error : new ApplyError(JSON.parse(detail) as Issue[]);
  }
}

// Returns the file with all secrets sealed, and the secrets generated here by purpose.
function sealSecrets(keys: MasterKeys, file: Provisioning) {
  const generated = new Map<string, string>();
  const sealed = (purpose: string, given: string | undefined, generate: () => string) => {
    const secret = given ?? generate();
    if (given === undefined) generated.set(purpose, secret);
    return {
      sealed_secret: seal(keys, purpose, secret).toString("hex"),
      secret_hash: hashSecret(keys, secret),
      other_hashes: keys.others.map((version) => hashSecret(keys, secret, version)),
      is_generated: given === undefined,
    };
  };
  const tenants = file.tenants.map((tenant) => ({
    ...tenant,
    parties: tenant.parties.map((party) => ({
      ...party,
      webhook: party.webhook && {
        url: party.webhook.url,
        expand: party.webhook.expand,
        event_types: party.webhook.event_types,
        ...sealed(webhookPurpose(tenant.id, party.id), party.webhook.secret, newWebhookSecret),
      },
    })),
    credentials: tenant.credentials.map(({ secret, ...credential }) => ({
      ...credential,
      ...sealed(credentialPurpose(credential.access_key), secret, newSecret),
    })),
  }));
  return { document: { tenants }, generated };
}

export const newSecret = (): string => randomBytes(32).toString("base64url");

async function readDocument(file: string): Promise<unknown> {
  const bytes = file === "-" ? await buffer(process.stdin) : await readFile(file);
  try {
    return parseJson(bytes);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new Error(`${file}: ${error.message}`);
  }
}

export const command = defineCommand({
  name: "apply",
  about:
    "Creates and updates the tenants, parties, merchants, templates and credentials that a JSON file declares, all " +
    "or nothing. Applying the same file again changes nothing. It prints JSON with the generated secrets: no later " +
    "run can show them again. The audit log has each changed field, old and new. A file that would remove more than " +
    "ten stores, terminals, delegates or merchants of templates is refused. docs/operate.md, Provisioning, explains " +
    "the file.",
  words: { file: { about: "the JSON file; - reads standard input" } },
  flags: {
    reason: { type: "text", value: "WHY", about: "for the audit log" },
    "dry-run": { type: "switch", about: "prints what would change, and writes nothing" },
    "allow-removals": { type: "switch", about: "allows to remove more than ten things of a kind" },
    cell: { type: "count", value: "N", about: "behind a router: the cell for tenants that are new" },
  },
  settings: keySettings,
  examples: ["file.json --dry-run", 'file.json --reason "new store"', "- < file.json"],
  async run({ words: { file }, flags }) {
    const { reason = null, "dry-run": isDryRun, "allow-removals": allowsRemovals } = flags;
    const config = readConfig();
    const document = await readDocument(file);
    const address = findAddress(config);
    const keys = loadMasterKeys(config);
    refuseCodesInArguments(keys, [reason ?? ""]);
    const place = placeTenants(readProvisioning(document), flags.cell);
    let isRouted = false;
    const route: Route = (cells, act) => {
      isRouted = true;
      return place(cells, act);
    };
    const applied = await withProgress(async (progress) => {
      progress.show(`${isDryRun ? "trying" : "applying"} ${file === "-" ? "standard input" : file}`);
      const act = async (database: Database) => {
        if (flags.cell !== undefined && !isRouted)
          throw new ConfigError("--cell is for a router, and DATABASE_URL is a cell");
        await checkKeys(database, keys);
        return apply(database, keys, document, { reason, isDryRun, allowsRemovals });
      };
      return withAdminDatabase(address, "coupon apply", act, route);
    });
    for (const accessKey of applied.revoked_credentials)
      console.error(`${accessKey} is revoked, and stays so: create a new credential`);
    if (isDryRun) console.error("a dry run: nothing was written");
    await writeOutput(`${JSON.stringify(applied, null, 2)}\n`);
  },
});
