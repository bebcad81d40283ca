// The database that scenario() clones: migrated, with the usual tenants. Applying them takes a seventh of a second of
// CPU, and hundreds of scenarios begin with them.
import { randomBytes } from "node:crypto";
import { apply } from "../../src/commands/apply.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import { connect } from "../../src/database/connect.ts";
import { addressOf, asAdmin, type Run } from "./database.ts";
import { document } from "./tenants.ts";

export async function makeUsualTemplate({ server, prefix, template: from }: Run): Promise<NonNullable<Run["usual"]>> {
  const template = `${prefix}usual`;
  await asAdmin(server, (admin) => admin.rows(`create database "${template}" template "${from}" strategy file_copy`));
  const masterKeyText = randomBytes(32).toString("base64");
  const admin = connect(addressOf(server, template), { name: "coupon test", role: "coupon_admin", max: 1 });
  await apply(admin, parseMasterKeys(masterKeyText), document).finally(() => admin.end());
  return { template, masterKeyText };
}
