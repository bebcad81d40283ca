// Restores of backups as docs/restore.md describes them: from a dump to another server, and from a copy of the files
// and the archived log to a named point.
import { execFile, execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import t, { type Test } from "tap";
import { formatUrl } from "../../src/config/database-address.ts";
import { openSession } from "../../src/database/connect.ts";
import { startEmbedded, type Embedded } from "../../src/embedded/server.ts";
import { migrate } from "../../src/migration/migrate.ts";
import type { Coupon } from "../support/caller.ts";
import { sendPlain, type Client } from "../support/client.ts";
import { root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";
import { findBrokenInvariants } from "../support/inspect.ts";
import { findToolFolders } from "../support/postgres-tools.ts";
import { environmentOf, launch } from "../support/program.ts";
import { pullEvents } from "../support/pull-events.ts";
import { newRequestId } from "../support/request-id.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { sequenceEvents } from "../support/sequence-events.ts";
import { snapshotTables } from "../support/table-snapshot.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";
import { startTills } from "../support/tills.ts";
import { waitUntil } from "../support/wait-until.ts";

const merchant = "mch_a";
const stock = 4_000;
const codesOf = (coupons: Coupon[]) => coupons.map(({ code }) => code);
const redeem = (by: Client, coupon: string, request_id = newRequestId()) =>
  by.post("/v1/coupons/redeem", { request_id, coupon, merchant });

// Runs `act` while tills call the service, so that a backup contains running calls.
async function underTills<T>(t: Test, service: Scenario, codes: string[], act: () => Promise<T>): Promise<T> {
  const tills = startTills({ codes, servers: [service.url], count: 4 });
  await tills.until(40);
  const before = tills.calls.length;
  const result = await act();
  const answered = tills.calls.slice(before).filter(({ status }) => status === 200).length;
  await tills.until(tills.calls.length + 20);
  await tills.stop();
  t.ok(answered > 0, "calls were answered meanwhile");
  return result;
}

// Returns every event after the cursor, and the last cursor.
async function pull(by: Client, cursor?: string): Promise<{ ids: string[]; cursor: string }> {
  const { events, end } = await pullEvents<{ event_id: string }>(by, 1_000, cursor);
  return { ids: events.map(({ event_id }) => event_id), cursor: end };
}

// Checks what holds for every restored database.
async function checkRestored(t: Test, service: Scenario): Promise<void> {
  t.equal(await migrate(service.address), false, "the database is up to date");
  t.equal(await snapshotTables(service.address), readFileSync(path.join(root, "db/tables.sql"), "utf8"));
  await sequenceEvents(service.owner);
  t.strictSame(await findBrokenInvariants(service.owner), []);
  t.equal((await sendPlain(service.url, "GET", "/readyz")).status, 200);
  const work = launch(t, "work", { env: environmentOf(service) });
  await work.untilPrinted(/working/);
  const order = { request_id: newRequestId(), template: "tpl_fixed", total_count: 10 };
  const created = await service.as("ak_a").post("/v1/batches", order);
  const batch = `/v1/batches/${created.json.batch.external_id}`;
  const isMinted = async () => (await service.as("ak_a").get(batch)).json.batch.status === "COMPLETED";
  await waitUntil("the coupons", isMinted);
  fits(t, await work.stop(), { code: 0 }, "the worker starts, mints and stops");
}

const bin = findToolFolders("pg_dump", "pg_restore", "psql", "initdb", "pg_ctl", "postgres")[0] ?? null;

// Starts an empty server of the system's own PostgreSQL. `call` runs one of its tools on the database coupon.
async function startSystemServer(t: Test, folder: string) {
  const idOf = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  const user = process.getuid?.() === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : null;
  mkdirSync(folder, { mode: 0o700 });
  if (user !== null) chownSync(folder, user.uid, user.gid);
  const options = { ...user, cwd: folder, env: { PATH: "/usr/bin:/bin", LC_ALL: "C" } };
  const run = (name: string, ...args: string[]) => promisify(execFile)(path.join(bin!, name), args, options);
  const data = path.join(folder, "data");
  await run("initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync");
  const settings = `-c listen_addresses= -c unix_socket_directories='${folder}' -c fsync=off -c max_connections=100`;
  await run("pg_ctl", "-D", data, "-w", "-l", path.join(folder, "log"), "-o", settings, "start");
  t.teardown(() => run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"));
  const address = { host: folder, port: 5432, user: "postgres", database: "coupon" };
  const session = openSession({ ...address, database: "postgres" }, { name: "rehearsal" });
  await session.rows("create database coupon template template0");
  await session.end();
  return { address, call: (name: string, ...args: string[]) => run(name, "-d", formatUrl(address), ...args) };
}

t.test(
  "a dump is restored into another server",
  { skip: bin === null && "pg_dump or its server is not installed" },
  async (t) => {
    const folder = useTemporaryFolder(t, "coupon-rehearsal-");
    const from = await startSystemServer(t, path.join(folder, "from"));
    await migrate(from.address);
    const service = await scenario(t, { http: true, on: { address: from.address } });
    const a = service.as("ak_a");
    const codes = codesOf(await service.a.makeCoupons(stock));
    const [used, unused] = [codes.pop()!, codes.pop()!];
    const request = newRequestId();
    const first = await redeem(a, used, request);
    await sequenceEvents(service.owner);
    const before = await pull(a);
    const file = path.join(folder, "from/dump");
    await underTills(t, service, codes, () => from.call("pg_dump", "--format=custom", `--file=${file}`));

    const to = await startSystemServer(t, path.join(folder, "to"));
    // As text, because the server's user may not be able to read the project's folder.
    const roles = readFileSync(path.join(root, "db/roles.sql"), "utf8");
    await to.call("psql", "--quiet", "--set=ON_ERROR_STOP=1", "--command", roles);
    await to.call("pg_restore", "--exit-on-error", "--single-transaction", "--exclude-schema=graphile_worker", file);
    t.equal(await migrate(to.address), true, "it makes the schema of the job queue");
    const { masterKeyText } = service;
    const restored = await scenario(t, { http: true, file: null, on: { address: to.address, masterKeyText } });
    await checkRestored(t, restored);
    const b = restored.as("ak_a");
    const recorded = { text: first.text, headers: { "idempotent-replayed": "true" } };
    fits(t, await redeem(b, used, request), recorded, "a retry gets the recorded answer");
    fits(t, await redeem(b, used), { status: 409, json: { code: "COUPON_REDEEMED" } });
    t.equal((await redeem(b, unused)).status, 200);
    await sequenceEvents(restored.owner);
    const after = await pull(b, before.cursor);
    t.ok(after.ids.length > 0);
    t.strictSame((await pull(b)).ids, [...before.ids, ...after.ids], "a reader continues at its cursor");
  },
);

const quick = { fsync: "off", max_wal_size: "4GB", shared_buffers: "256MB" };

// Makes a folder for the user who owns `like`.
function makeFolderLike(folder: string, like: string): string {
  const { uid, gid } = statSync(like);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chownSync(folder, uid, gid);
  return folder;
}

// Copies the running server as pg_basebackup does: its files while it writes to them, but its log, and the label that
// makes them consistent.
async function copyServer(server: Embedded, to: string): Promise<void> {
  const session = openSession(server.address, { name: "backup" });
  await session.rows("select pg_backup_start('rehearsal', true)");
  // It complains about a file that PostgreSQL removes meanwhile.
  await promisify(execFile)("cp", ["-R", path.join(server.folder, "data"), to]).catch(() => {});
  for (const name of ["postmaster.pid", "postmaster.opts", "pg_wal"]) rmSync(path.join(to, name), { recursive: true });
  mkdirSync(path.join(to, "pg_wal"));
  const [label] = await session.rows<{ labelfile: string }>("select labelfile from pg_backup_stop(true)");
  await session.end();
  writeFileSync(path.join(to, "backup_label"), label!.labelfile);
}

// Starts a new server from the copy and the archive, restored to the named point.
async function restoreTo(t: Test, like: string, archive: string, folder: string, point: string): Promise<Embedded> {
  const second = path.join(folder, "second");
  const data = path.join(makeFolderLike(path.join(second, "postgres"), like), "data");
  chmodSync(second, 0o711);
  renameSync(path.join(folder, "base"), data);
  writeFileSync(path.join(data, "recovery.signal"), "");
  const { uid, gid } = statSync(like);
  for (const name of ["", ...readdirSync(data, { recursive: true, encoding: "utf8" })])
    chownSync(path.join(data, name), uid, gid);
  chmodSync(data, 0o700);
  const server = await startEmbedded(second, {
    ...quick,
    restore_command: `cp '${archive}/%f' '%p'`,
    recovery_target_name: point,
    recovery_target_action: "promote",
  });
  t.teardown(() => server.stop());
  // The server answers reads before it has reached the point.
  const session = openSession(server.address, { name: "restore" });
  const isRestored = async () => (await session.rows("select where pg_is_in_recovery()")).length === 0;
  await waitUntil("the end of the recovery", isRestored);
  await session.end();
  return server;
}

t.test("a server is restored to a point before a mistake", async (t) => {
  const folder = useTemporaryFolder(t, "coupon-rehearsal-");
  const archive = path.join(folder, "archive");
  const server = await startEmbedded(path.join(folder, "first"), {
    ...quick,
    archive_mode: "on",
    archive_command: `test ! -f '${archive}/%f' && cp '%p' '${archive}/%f'`,
  });
  t.teardown(() => server.stop());
  makeFolderLike(archive, server.folder);
  await migrate(server.address);
  const service = await scenario(t, { http: true, on: { address: server.address } });
  const a = service.as("ak_a");
  const codes = codesOf(await service.a.makeCoupons(stock));
  const [kept, lost, unused] = [codes.pop()!, codes.pop()!, codes.pop()!];
  await underTills(t, service, codes, () => copyServer(server, path.join(folder, "base")));
  const request = newRequestId();
  const first = await redeem(a, kept, request);
  await sequenceEvents(service.owner);
  const before = await pull(a);
  const dba = openSession(server.address, { name: "rehearsal" });
  await dba.rows("select pg_create_restore_point('before_the_mistake')");
  const mistake = await makeMistake(t, service, codes, lost, before.cursor);
  const [wal] = await dba.rows<{ file: string }>("select pg_walfile_name(pg_current_wal_lsn()) as file");
  await dba.rows("select pg_switch_wal()");
  const archived = "select from pg_stat_archiver where last_archived_wal >= $1";
  await waitUntil("the archived log", async () => (await dba.rows(archived, [wal!.file])).length > 0);
  await dba.end();

  const second = await restoreTo(t, server.folder, archive, folder, "before_the_mistake");
  // As the documents say: a new master key first, then the old one.
  const masterKeyText = `2:${randomBytes(32).toString("base64")},1:${service.masterKeyText}`;
  const restored = await scenario(t, { http: true, file: null, on: { address: second.address, masterKeyText } });
  await restored.admin.rows("select admin.note_restore('rehearsal')");
  await checkRestored(t, restored);
  const b = restored.as("ak_a");
  const recorded = { text: first.text, headers: { "idempotent-replayed": "true" } };
  fits(t, await redeem(b, kept, request), recorded, "an answer from before the point is kept");
  t.equal((await redeem(b, unused)).status, 200, "codes from before the point are valid");
  await checkLost(t, restored, mistake, lost);

  await sequenceEvents(restored.owner);
  const after = await pull(b, before.cursor);
  t.ok(after.ids.length >= 2);
  t.strictSame((await pull(b, mistake.cursor)).ids, after.ids, "a cursor from the lost time skips no new event");
  t.strictSame((await pull(b)).ids, [...before.ids, ...after.ids]);
  t.strictSame(await findBrokenInvariants(restored.owner), []);
});

// What happened after the restore point and is lost.
type Mistake = { request: string; cursor: string; printed: string[] };

// Makes a redemption, its event and cursor, a batch whose codes are printed, and a revoked credential.
async function makeMistake(t: Test, service: Scenario, codes: string[], coupon: string, cursor: string) {
  const a = service.as("ak_a");
  const request = newRequestId();
  t.equal((await redeem(a, coupon, request)).status, 200);
  for (let count = 0; count < 20; count += 1) await redeem(a, codes.pop()!);
  await sequenceEvents(service.owner);
  const gone = await pull(a, cursor);
  t.ok(gone.ids.length > 20);
  const printed = codesOf(await service.a.makeCoupons(50));
  await service.admin.rows("select admin.revoke_credential('ak_a_second', 'leaked')");
  return { request, cursor: gone.cursor, printed };
}

async function checkLost(t: Test, restored: Scenario, { request, printed }: Mistake, coupon: string): Promise<void> {
  const b = restored.as("ak_a");
  const unknown = { status: 404, json: { code: "NOT_FOUND", details: { resource: "coupon" } } };
  fits(t, await redeem(b, printed[0]!), unknown, "a code of a lost batch is unknown");
  const again = codesOf(await restored.a.makeCoupons(50));
  const begins = (codes: string[], version: string) => codes.every((code) => code.startsWith(version));
  t.ok(begins(printed, "1") && begins(again, "2"), "no new code can equal a lost one");
  const decided = await redeem(b, coupon, request);
  t.equal(decided.status, 200, "a request whose record is lost is decided again");
  t.notOk("idempotent-replayed" in decided.headers);
  const revoked = await restored.as("ak_a_second").get("/v1/events");
  t.equal(revoked.status, 200, "a credential that was revoked after the point works again: revoke it again");
}
