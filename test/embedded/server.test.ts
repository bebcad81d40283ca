// The embedded server stops with the program that started it, however that program ends, keeps its data, and starts
// again as soon as its disk has space.
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, lstatSync, mkdtempSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import t, { type Test } from "tap";
import type { Address } from "../../src/config/database-address.ts";
import { openSession } from "../../src/database/connect.ts";
import { hasSpace, waitForSpace } from "../../src/embedded/disk-space.ts";
import { findAddress } from "../../src/embedded/find-address.ts";
import { findPostmaster, inspectProcess } from "../../src/embedded/postmaster.ts";
import { computeSharedBuffers, supervisor } from "../../src/embedded/server.ts";
import { exitCodeOf } from "../support/program.ts";
import { canMount, fillDisk, useSmallDisk } from "../support/small-disk.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

const needsRoot = process.getuid?.() !== 0 && "needs root";

// Runs an embedded server as `npm start` does.
const program = `
  import { startEmbedded } from "./src/embedded/server.ts";
  import { onStop, runProgram } from "./src/common/program.ts";
  await runProgram(async () => {
    const { address, folder, stop } = await startEmbedded(process.argv[1]);
    onStop(stop);
    setInterval(() => {}, 60_000);
    console.log(JSON.stringify({ address, folder }));
  });`;

interface Holder {
  child: ChildProcess;
  address: Address;
  folder: string;
  postmaster: number;
}

/** Rejects with the output of the program if it ends instead of starting. */
async function hold(dataDir: string): Promise<Holder> {
  const cwd = path.resolve(import.meta.dirname, "../..");
  const args = ["--input-type=module", "-e", program, dataDir];
  const child = spawn(process.execPath, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stderr.on("data", (chunk) => (output += chunk));
  const first = new Promise<string>((resolve, reject) => {
    child.stdout.once("data", (chunk) => resolve(String(chunk)));
    child.once("close", () => reject(new Error(output)));
  });
  const line = await waitFor("the server to start", first);
  const { address, folder } = JSON.parse(line) as { address: Address; folder: string };
  return { child, address, folder, postmaster: findPostmaster(path.join(folder, "data"))!.pid };
}

async function end({ child }: Holder, signal: NodeJS.Signals): Promise<number | null> {
  child.kill(signal);
  return exitCodeOf(child);
}

// The lock file of a server whose pid now belongs to another program of its user, so that PostgreSQL does not start.
function makeLock(t: Test, { folder }: Holder): string {
  const { uid, gid } = statSync(folder);
  const other = spawn("sleep", ["300"], { uid, gid, stdio: "ignore" });
  t.teardown(() => other.kill("SIGKILL"));
  return `${other.pid}\n${folder}/data\n1\n5432\n\n\n\nready\n`;
}

async function ask(address: Address, text: string, params: unknown[] = []): Promise<unknown[]> {
  const session = openSession(address, { name: "coupon test" });
  return [...(await session.rows(text, params).finally(() => session.end()))];
}

t.test("shared_buffers is a quarter of the memory, from 128 MB to 8 GB", async (t) => {
  const mebibytes = [100, 512, 516, 1_023, 4_000, 32_764, 32_772, 1_000_000];
  t.strictSame(
    mebibytes.map((each) => computeSharedBuffers(each * 2 ** 20)),
    ["128MB", "128MB", "129MB", "255MB", "1000MB", "8191MB", "8192MB", "8192MB"],
  );
});

t.test("the shell stops a server that was not ready for signals when the program ended", async (t) => {
  // As PostgreSQL before its first lines: it ignores SIGINT, as the shell does for its background jobs, and later not.
  const server = `sleep 2; exec "${process.execPath}" -e "setInterval(() => {}, 1000)"`;
  const shell = spawn("/bin/sh", ["-c", supervisor, "shell", "/bin/sh", "-c", server]);
  const pid = await waitFor("the pid of the server", new Promise((resolve) => shell.stdout.once("data", resolve)));
  t.teardown(() => shell.exitCode === null && process.kill(Number(String(pid)), "SIGKILL"));
  shell.stdin.end();
  await exitCodeOf(shell);
});

async function untilAnswering({ address }: Holder): Promise<void> {
  const isAnswering = () =>
    ask(address, "select").then(
      () => true,
      () => false,
    );
  await waitUntil("an answer of the server", isAnswering);
}

async function killSession(holder: Holder): Promise<void> {
  const { pid: old } = findPostmaster(path.join(holder.folder, "data"))!;
  const session = openSession(holder.address, { name: "coupon test" });
  const [row] = await session.rows<{ pid: number }>("select pg_backend_pid() as pid");
  process.kill(row!.pid, "SIGKILL");
  await session.end();
  await waitUntil("the end of the old server", () => inspectProcess(old) === null);
  await untilAnswering(holder);
}

async function hasSettings(t: Test, address: Address): Promise<void> {
  const expected = {
    TimeZone: "UTC",
    checkpoint_timeout: "1800s",
    listen_addresses: "",
    log_checkpoints: "off",
    log_error_verbosity: "terse",
    log_min_error_statement: "panic",
    log_parameter_max_length: "0B",
    log_parameter_max_length_on_error: "0B",
    log_statement: "none",
    log_timezone: "UTC",
    max_connections: "100",
    max_wal_size: "4096MB",
    random_page_cost: "1.1",
    restart_after_crash: "off",
    unix_socket_permissions: "0700",
  };
  // The client sets its own time zone.
  const text = `select name, case name when 'TimeZone' then reset_val else setting end || coalesce(unit, '') as value
    from pg_settings where name = any ($1)`;
  const settings = (await ask(address, text, [Object.keys(expected)])) as { name: string; value: string }[];
  t.strictSame(Object.fromEntries(settings.map(({ name, value }) => [name, value])), expected);
}

function makeDataDir(t: Test): string {
  // PostgreSQL reads settings with paths, and files of ours are lines: every character of a path must pass.
  const dataDir = mkdtempSync(path.join(tmpdir(), `coupon-embedded, it's "5%" a:b `));
  chmodSync(dataDir, 0o711);
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }));
  return dataDir;
}

// The path of makeDataDir has a comma, so its socket is elsewhere.
function removeSocketFolder(t: Test, { address: { host } }: Holder): void {
  t.match(host, /^\/tmp\/coupon-service-/);
  t.teardown(() => rmSync(host, { recursive: true }));
}

async function refusesLink(t: Test, dataDir: string, folder: string): Promise<void> {
  const [log, target] = [path.join(folder, "server.log"), path.join(t.testdir({ other: "" }), "other")];
  chmodSync(target, 0o644);
  renameSync(log, `${log}.kept`);
  symlinkSync(target, log);
  await t.rejects(hold(dataDir), { message: /server\.log must not be a link/ });
  t.equal(statSync(target).mode & 0o777, 0o644);
  renameSync(`${log}.kept`, log);
}

async function putLogAside(t: Test, dataDir: string, folder: string): Promise<Holder> {
  await refusesLink(t, dataDir, folder);
  const log = path.join(folder, "server.log");
  truncateSync(log, 10_000_000);
  await end(await hold(dataDir), "SIGTERM");
  t.notOk(existsSync(`${log}.1`));
  truncateSync(log, 10_000_001);
  const holder = await hold(dataDir);
  t.equal(statSync(`${log}.1`, { throwIfNoEntry: false })?.size, 10_000_001);
  t.ok(statSync(log).size < 1_000_000);
  return holder;
}

t.test("one DATA_DIR survives stops and kills", async (t) => {
  const dataDir = makeDataDir(t);
  const keepsData = async (t: Test, address: Address): Promise<void> => {
    t.strictSame(await ask(address, "select value from public.kept"), [{ value: 1 }], "the data is there");
  };
  let holder = await hold(dataDir);
  removeSocketFolder(t, holder);
  await ask(holder.address, "create table public.kept as select 1 as value");

  await t.test("its log holds no values, and checkpoints are rare", (t) => hasSettings(t, holder.address));
  await t.test("commands find the database; a second start is refused", async (t) => {
    t.strictSame(findAddress({ address: null, dataDir }), holder.address);
    await t.rejects(hold(dataDir), { message: /is in use/ });
    await keepsData(t, holder.address);
  });

  await t.test("SIGTERM: exit code 0, no process is left, and commands report that nothing runs", async (t) => {
    t.equal(await end(holder, "SIGTERM"), 0);
    t.equal(inspectProcess(holder.postmaster), null);
    await t.throws(() => findAddress({ address: null, dataDir }), { message: /npm start/ });
  });

  await t.test("a start follows no link to a log, puts a log of more than 10 MB aside, and keeps one", async (t) => {
    holder = await putLogAside(t, dataDir, holder.folder);
  });

  await t.test("kill -9 of the program: the server stops too, and the next start is quick", async (t) => {
    await end(holder, "SIGKILL");
    const next = await waitFor("the next start", hold(dataDir), { withinMs: 30_000 });
    t.equal(inspectProcess(holder.postmaster), null);
    holder = next;
    await keepsData(t, holder.address);
  });

  await t.test("kill -9 of the server: it is restarted, also if its pid now belongs to another program", async (t) => {
    const lock = makeLock(t, holder);
    process.kill(holder.postmaster, "SIGKILL");
    writeFileSync(path.join(holder.folder, "data/postmaster.pid"), lock);
    await untilAnswering(holder);
    await keepsData(t, holder.address);
  });

  await t.test("kill -9 of a session: a new server is started, because the old one could hang", async (t) => {
    await killSession(holder);
    await keepsData(t, holder.address);
  });

  await t.test("kill -9 of the program and its shell: the next start ends the orphaned server", async (t) => {
    const orphan = findPostmaster(path.join(holder.folder, "data"))!.pid;
    const shell = inspectProcess(orphan)!.parent;
    // Kills the shell, then the program. The shell's watcher outlives both and signals the server, while the next start
    // already looks for it.
    process.kill(shell, "SIGKILL");
    await end(holder, "SIGKILL");
    holder = await hold(dataDir);
    t.equal(inspectProcess(orphan), null);
    await keepsData(t, holder.address);
  });

  await t.test("a lock file is ignored if its pid now belongs to another program", async (t) => {
    await end(holder, "SIGTERM");
    writeFileSync(path.join(holder.folder, "data/postmaster.pid"), makeLock(t, holder));
    await t.throws(() => findAddress({ address: null, dataDir }), { message: /npm start/ });
    holder = await hold(dataDir);
    await keepsData(t, holder.address);
    t.equal(await end(holder, "SIGTERM"), 0);
  });
});

t.test("if only root can enter the folder, the data is kept elsewhere", { skip: needsRoot }, async (t) => {
  const closed = mkdtempSync(path.join(tmpdir(), "coupon-closed-"));
  const dataDir = path.join(closed, "project/.data");
  t.teardown(() => rmSync(closed, { recursive: true, force: true }));
  const holder = await hold(dataDir);
  t.teardown(() => rmSync(holder.folder, { recursive: true, force: true }));
  t.ok(lstatSync(path.join(dataDir, "postgres")).isSymbolicLink());
  t.equal(realpathSync(path.join(dataDir, "postgres")), holder.folder);
  t.strictSame(await ask(holder.address, "select 1 as value"), [{ value: 1 }]);
  t.equal(await end(holder, "SIGTERM"), 0);
});

const skip = canMount() ? false : "only root may mount a small disk";
const longMs = 20_000;

t.test("a pause on a full disk ends when there is space, or when nobody waits any more", { skip }, async (t) => {
  const disk = useSmallDisk(t, 64 * 2 ** 20);
  const filler = path.join(disk, "filler");
  t.equal(hasSpace(disk), true);
  fillDisk(filler);
  t.equal(hasSpace(disk), false);
  let looks = 0;
  await waitForSpace(disk, longMs, () => {
    looks += 1;
    if (looks === 3) rmSync(filler);
    return false;
  });
  t.strictSame([looks, hasSpace(disk)], [3, true]);
  await waitForSpace(disk, longMs, () => true);
});

t.test("a pause on a disk with space has its length, and a folder that is gone is no full disk", async (t) => {
  let looks = 0;
  await waitForSpace(t.testdir({}), 50, () => {
    looks += 1;
    return looks === 10;
  });
  t.ok(looks <= 1, "the next look comes after its end");
  t.equal(hasSpace(path.join(t.testdir({}), "gone")), true);
});
