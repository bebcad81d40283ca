// A standby: what only reads works, what writes says why it does not, and a promotion makes serve ready.
import { spawn } from "node:child_process";
import { chownSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { openSession } from "../../src/database/connect.ts";
import { dataFolder, findHome } from "../../src/embedded/data-directory.ts";
import { startEmbedded } from "../../src/embedded/server.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { sendPlain } from "../support/client.ts";
import { root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";
import { environmentOf, resultOf } from "../support/program.ts";
import { scenario } from "../support/scenario.ts";
import { quickSettings } from "../support/temporary-server.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";
import { tenants } from "../support/tenants.ts";
import { waitUntil } from "../support/wait-until.ts";

t.test("commands that read work on a standby, the others name the primary, and /readyz is 503", async (t) => {
  const folder = path.join(useTemporaryFolder(t, "coupon-standby-"), "data");
  const primary = await startEmbedded(folder, quickSettings);
  await migrate(primary.address);
  const [tenant, ...others] = structuredClone(tenants) as [any, ...any[]];
  tenant.parties[0].webhook = { url: "https://example.com/hook" };
  const file = { tenants: [tenant, ...others] };
  const service = await scenario(t, { http: true, file, on: { address: primary.address } });
  const isReady = async () => (await sendPlain(service.url, "GET", "/readyz")).status === 200;
  await waitUntil("the primary to be ready", isReady);
  await primary.stop();

  const signal = path.join(dataFolder(findHome(folder)!), "standby.signal");
  writeFileSync(signal, "");
  const { uid, gid } = statSync(path.dirname(signal));
  chownSync(signal, uid, gid);
  const standby = await startEmbedded(folder, quickSettings);
  t.teardown(() => standby.stop());
  const run = (...args: string[]) =>
    resultOf(spawn("bin/coupon", args, { cwd: root, env: { PATH: process.env["PATH"], ...environmentOf(service) } }));
  const works: [command: string, stdout: RegExp][] = [
    ["webhooks status", /ten_a +pty_a +healthy/],
    ["webhooks log ten_a pty_a", /^none\n$/],
    ["webhooks parked", /^none\n$/],
    ["statements list", /^none\n$/],
    ["statements verify", /^0 statements checked/],
    ["migrate --status", /^applied +001-schemas/],
  ];
  for (const [command, stdout] of works) fits(t, await run(...command.split(" ")), { code: 0, stdout, stderr: "" });
  const stderr = "DATABASE_URL is a standby, which takes no writes: run this command on the primary\n";
  for (const command of ["check", "codes bat_none", "webhooks enable ten_a pty_a --reason why"])
    t.strictSame(await run(...command.split(" ")), { code: 1, stdout: "", stderr }, command);
  t.notOk(await isReady());
  await waitUntil("the reason in the log", () =>
    service.log.some(({ reason }) => reason === "the database takes no writes: it is a standby"),
  );

  const session = openSession(standby.address, { name: "coupon test" });
  await session.rows("select pg_promote()");
  await session.end();
  await waitUntil("the promoted standby to be ready", isReady);
});
