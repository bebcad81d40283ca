// npm run credentials -- COMMAND: shows credentials, and replaces one without a pause: rotate, hand over, revoke. Each
// change calls a function of schema admin, which is recorded in the audit table with its reason.
import { randomBytes } from "node:crypto";
import { defineCommand, groupCommands } from "../command-line/command.ts";
import { keySettings } from "../config/settings.ts";
import { credentialPurpose, hashSecret, seal } from "../crypto/seal.ts";
import { newSecret } from "./apply.ts";
import { provideAdminContext, reason, type Context } from "./admin-context.ts";
import { formatJson, formatRows, json } from "./table.ts";

const accessKey = { about: "the access key, ak_…" } as const;
const settings = keySettings;

const list = defineCommand({
  name: "list",
  about:
    "Lists credentials with their party and the hour of their last use, which is known about a minute later. Revoked " +
    "ones are listed too.",
  words: { tenant: { about: "only this tenant, ten_…", isOptional: true } },
  flags: { json },
  settings,
  examples: ["", "ten_acme --json"],
  async run({ words: { tenant = null }, flags }, { database }: Context) {
    const rows = await database.rows(
      `select tenant, party, access_key, created_at, revoked_at, last_used_at
       from report.credential
       where tenant = coalesce($1, tenant)
       order by tenant, party nulls first, created_at, access_key`,
      [tenant],
    );
    if (rows.length === 0 && tenant !== null) throw new Error(`there is no tenant ${tenant} with a credential`);
    return formatRows(rows, flags);
  },
});

const rotate = defineCommand({
  name: "rotate",
  about:
    "Makes a new credential for the same caller and prints it once, as JSON. The old one works until you revoke it, " +
    "so that no till stops.",
  words: { key: accessKey },
  flags: { reason },
  settings,
  examples: ['ak_pos_1 --reason "yearly"'],
  // The database never sees a secret, so this program generates and seals it.
  async run({ words: { key: old }, flags }, { database, keys }: Context) {
    const access_key = `ak_${randomBytes(9).toString("base64url")}`;
    const secret = newSecret();
    const sealed = seal(keys, credentialPurpose(access_key), secret).toString("hex");
    await database.rows("select admin.rotate_credential($1, $2, decode($3, 'hex'), decode($4, 'hex'), $5)", [
      old,
      access_key,
      sealed,
      hashSecret(keys, secret),
      flags.reason,
    ]);
    const note = `${old} still works. Once nobody uses it: coupon credentials revoke ${old} --reason "rotated"`;
    console.error(note);
    return formatJson({ access_key, secret });
  },
});

const revoke = defineCommand({
  name: "revoke",
  about: "Ends a credential for good: its next call is refused.",
  words: { key: accessKey },
  flags: { reason },
  settings,
  examples: ['ak_pos_1 --reason "stolen"'],
  async run({ words: { key }, flags }, { database }: Context) {
    const [row] = await database.rows<{ at: Date }>("select admin.revoke_credential($1, $2) as at", [
      key,
      flags.reason,
    ]);
    return `revoked at ${row!.at.toISOString()}`;
  },
});

/** Each command returns the text to print. */
export const credentials = groupCommands<Context, string>({
  name: "credentials",
  about: "Lists, rotates and revokes credentials. Each change needs a reason and is audited.",
  settings,
  commands: [list, rotate, revoke],
});

export const command = provideAdminContext(credentials);
