// A standby that is away: no answer is ok that it lacks. A standby: what only reads works, what writes says why it does
// not, and a promotion makes serve ready.
import { spawn } from "node:child_process";
import { chownSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { connect, openSession } from "../../src/database/connect.ts";
import { dataFolder, findHome } from "../../src/embedded/data-directory.ts";
import { startEmbedded } from "../../src/embedded/server.ts";
import { migrate } from "../../src/migration/migrate.ts";
import type { Coupon } from "../support/caller.ts";
import { sendPlain } from "../support/client.ts";
import { root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";
import { environmentOf, resultOf } from "../support/program.ts";
import { scenario } from "../support/scenario.ts";
import { quickSettings } from "../support/temporary-server.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";
import { tenants } from "../support/tenants.ts";
import { waitUntil } from "../support/wait-until.ts";

const folder = path.join(useTemporaryFolder(t, "coupon-standby-"), "data");
const primary = await startEmbedded(folder, quickSettings);
await migrate(primary.address);
const [tenant, ...others] = structuredClone(tenants) as [any, ...any[]];
tenant.parties[0].webhook = { url: "https://example.com/hook" };
const file = { tenants: [tenant, ...others] };
const service = await scenario(t, { http: true, file, on: { address: primary.address } });
const isReady = async () => (await sendPlain(service.url, "GET", "/readyz")).status === 200;
await waitUntil("the primary to be ready", isReady);

const psql = openSession(primary.address, { name: "psql", settings: { synchronous_commit: "local" } });
// With the name of a standby that never comes, each commit waits for it.
async function setStandby(name: string): Promise<void> {
  await psql.run(`alter system set synchronous_standby_names = '${name}'`);
  await psql.rows("select pg_reload_conf()");
  // Another session has read the file when its commits wait, or no longer do.
  await waitUntil("the setting", async () => {
    const session = openSession(primary.address, { name: "coupon test" });
    const [row] = await session.rows<{ name: string }>("select current_setting('synchronous_standby_names') as name");
    await session.end();
    return row!.name === name;
  });
}
const countWaiting = async () => (await psql.rows("select from pg_stat_activity where wait_event = 'SyncRep'")).length;
// Ends the waits of all commits until there is an answer.
async function whileEnding<T>(how: "cancel" | "terminate", answer: Promise<T>): Promise<T> {
  let isAnswered = false;
  const answered = answer.finally(() => (isAnswered = true));
  const text = `select pg_${how}_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`;
  await waitUntil("an answer", async () => isAnswered || (await psql.rows(text), false));
  return answered;
}

t.test("a commit whose wait for the standby is cancelled is an error, and so is the one behind it", async (t) => {
  await psql.run("create table public.written (number int)");
  await setStandby("nobody");
  t.teardown(() => setStandby(""));
  const lost = { code: "COMMIT_NOT_REPLICATED" };
  const options = { name: "coupon test", max: 1 };
  const text = "insert into public.written values ($1)";
  const database = connect(primary.address, options);
  const session = openSession(primary.address, options);
  const limited = connect(primary.address, { ...options, statementTimeoutMs: 100 });
  t.teardown(() => Promise.all([database, session, limited].map((one) => one.end())));
  const insert = (number: number, pipe?: object) => t.rejects(database.rows(text, [number], pipe), lost);
  await whileEnding("cancel", insert(1));
  await whileEnding("cancel", t.rejects(session.run("insert into public.written values (2)"), lost));
  const pipe = {};
  await whileEnding("cancel", Promise.all([insert(3, pipe), insert(4, pipe)]));
  t.strictSame([...(await database.rows("select 1 as n"))], [{ n: 1 }], "the connection works on");
  await whileEnding("terminate", t.rejects(database.rows(text, [5]), { code: "CONNECTION_CLOSED" }));
  await t.rejects(limited.rows(text, [6]), lost, "the server has no time limit for this, so the client cancels");
  const given = connect(primary.address, options);
  const up = t.rejects(given.rows(text, [7]), lost, "nor does a statement keep its process when its connection ends");
  await waitUntil("the wait", async () => (await countWaiting()) === 1);
  await Promise.all([given.end(), up]);
  t.equal(await countWaiting(), 0);
  const rows = await psql.rows<{ number: number }>("select number from public.written order by 1");
  const numbers = rows.map(({ number }) => number);
  t.strictSame(numbers, [1, 2, 3, 4, 5, 6, 7], "all are committed here");
});

t.test("a till that repeats a redeem gets ok only when the standby has it", async (t) => {
  const { till, makeCoupons } = service.b;
  const [coupon] = (await makeCoupons(1)) as [Coupon];
  await setStandby("nobody");
  t.teardown(() => setStandby(""));
  const more = { request_id: "redeem-1" };
  const unknown = { status: 503, json: { code: "UNAVAILABLE" } };
  fits(t, await whileEnding("cancel", till.redeem(coupon, more)), unknown);
  const [row] = await psql.rows<{ count: string }>("select count(*) as count from core.redemption");
  t.equal(row!.count, "1", "it is committed here");
  fits(t, await whileEnding("cancel", till.redeem(coupon, more)), unknown, "a retry finds the record");
  fits(t, await whileEnding("cancel", till.get("/v1/requests/redeem-1")), unknown);
  await setStandby("");
  fits(t, await till.redeem(coupon, more), { status: 200 });
});

t.test("commands that read work on a standby, the others name the primary, and /readyz is 503", async (t) => {
  await psql.end();
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
