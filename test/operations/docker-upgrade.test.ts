// Upgrade, backup and restore, as docs/docker.md shows them, on a real engine. Skipped where none runs.
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import { sendPlain } from "../support/client.ts";
import { findMissing, openDeployment, readSection, type Deployment } from "../support/docker.ts";
import { waitUntil } from "../support/wait-until.ts";

const section = (title: string, index = 0): string => readSection(title, "bash")[index]!;
const psql = (sql: string): string => `docker compose exec -T database psql -U tool coupon -Atc "${sql}"`;
const isReady = async (url: string): Promise<boolean> =>
  (await sendPlain(url, "GET", "/readyz").catch(() => ({ status: 0 }))).status === 200;

t.test(
  "a failed migration leaves the old version serving; a backup is restored",
  { skip: findMissing("postgres:18", "node:24-slim"), timeout: 900_000 },
  async (t) => {
    const deployment = await openDeployment(t);
    await deployment.runOk(section("Start"));
    await waitUntil("the service", () => isReady(deployment.url));
    await checkUpgrade(t, deployment);
    await checkRestore(t, deployment);
  },
);

async function checkUpgrade(t: Test, deployment: Deployment): Promise<void> {
  const serveOf = async () => (await deployment.list()).filter(({ service }) => service === "serve");
  const before = await serveOf();
  const file = path.join(deployment.folder, "db/code/api/lock.sql");
  const text = readFileSync(file, "utf8");
  writeFileSync(file, `${text}select 1 / 0;\n`);
  appendFileSync(path.join(deployment.folder, "src/serve.ts"), "// The next version.\n");
  const failed = await deployment.run(section("Upgrade"));
  t.equal(failed.code, 1);
  t.match(failed.stdout + failed.stderr, /lock\.sql.*division by zero/);
  t.strictSame(
    (await serveOf()).map(({ id }) => id),
    before.map(({ id }) => id),
    "the old program keeps running",
  );
  t.ok(await isReady(deployment.url));

  writeFileSync(file, `${text}-- The next version.\n`);
  await deployment.runOk(section("Upgrade"));
  await waitUntil("the new program", () => isReady(deployment.url));
  const after = await serveOf();
  t.equal(after.length, 1);
  t.not(after[0]!.id, before[0]!.id);
}

async function checkRestore(t: Test, deployment: Deployment): Promise<void> {
  const apply = (id: string): Promise<string> =>
    deployment.runOk(
      "docker compose run --rm -T tool apply -",
      JSON.stringify({ tenants: [{ id, name: id, variant: "A" }] }),
    );
  const list = (): Promise<string> => deployment.runOk(psql("select target from report.audit order by audit_id"));
  await apply("ten_saved");
  const saved = await list();
  await deployment.runOk(section("Back up"));
  await apply("ten_lost");
  t.equal(await list(), `${saved}ten_lost\n`);
  await deployment.runOk(section("Restore"));
  t.equal(await list(), saved);
  t.match(await deployment.runOk(section("Restore", 1)), /\(0 rows\)/);
  await deployment.runOk(section("Restore", 2));
  await waitUntil("the restored service", () => isReady(deployment.url));
}
