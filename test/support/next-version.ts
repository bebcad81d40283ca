// Makes a next version that follows docs/database.md, "Change the schema": a copy of the checkout with three more
// migrations, the second of them online, and changed functions. One function of schema rules gets another argument, and
// one function that the worker calls gets another name.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { change, copyCheckout } from "./copy.ts";

const migrations: Record<string, { isOnline?: boolean; text: string }> = {
  "101-channel": {
    text: `alter table core.coupon add column note text;
alter table core.redemption add column channel text not null default 'till';
alter table core.redemption add constraint channel_is_known check (channel in ('till', 'web')) not valid;
`,
  },
  "102-channel-index": {
    isOnline: true,
    text: "create index concurrently if not exists redemption_by_channel on core.redemption (channel, started_at);\n",
  },
  "103-channel-checked": { text: "alter table core.redemption validate constraint channel_is_known;\n" },
};

export function makeNextVersion(): { folder: string; migrations: string[]; remove(): void } {
  const folder = copyCheckout();
  for (const [name, { isOnline = false, text }] of Object.entries(migrations)) {
    const file = path.join(folder, "db/migrations", name);
    writeFileSync(`${file}.sql`, text);
    writeFileSync(
      `${file}.ts`,
      `import { sqlMigration } from "../../src/migration/sql-migration.ts";
${isOnline ? "export const isOnline = true;\n" : ""}export const { up, down } = sqlMigration(import.meta.url);
`,
    );
  }
  const call = "rules.find_lock(p_call, coupon_id)";
  change(folder, [
    {
      file: "db/code/rules/redemption/find_lock.sql",
      find: "p_call core.call, p_coupon_id uuid)",
      replace: "p_call core.call, p_coupon_id uuid, p_now timestamptz)",
    },
    {
      file: "db/code/rules/redemption/hold_lock.sql",
      find: call,
      replace: call.replace(")", ", clock_timestamp())"),
    },
    { file: "src/worker/batch-jobs.ts", find: "jobs.end_batch_lease(", replace: "jobs.drop_batch_lease(" },
  ]);
  const old = path.join(folder, "db/code/jobs/end_batch_lease.sql");
  writeFileSync(
    path.join(folder, "db/code/jobs/drop_batch_lease.sql"),
    readFileSync(old, "utf8").replaceAll("end_batch_lease", "drop_batch_lease"),
  );
  rmSync(old);
  return {
    folder,
    migrations: Object.keys(migrations),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
