// Database servers for rehearsals: one that archives its log and is restored to a point in time, and one of the
// system's own PostgreSQL, for the tools that the embedded server lacks.
import { execFile, execFileSync } from "node:child_process";
import { chmodSync, chownSync, cpSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { copyFile, readdir } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import type { Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import { formatUrl, type Address } from "../../src/common/database-address.ts";
import { startEmbedded, type Embedded } from "../../src/embedded/server.ts";
import { findToolFolders } from "./postgres-tools.ts";
import { makeTemporaryFolder, removeFolder } from "./temporary-folder.ts";
import { waitUntil } from "./wait-until.ts";

export function makeFolder(t: Test): string {
  const folder = makeTemporaryFolder("coupon-rehearsal-");
  t.teardown(() => removeFolder(folder));
  return folder;
}

// Makes a folder for the user who owns `like`.
function makeFolderLike(folder: string, like: string): string {
  const { uid, gid } = statSync(like);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chownSync(folder, uid, gid);
  return folder;
}

const quick = { fsync: "off", max_wal_size: "4GB", shared_buffers: "256MB" };

export async function startArchiving(t: Test, folder: string): Promise<Embedded & { archive: string }> {
  const archive = path.join(folder, "archive");
  const server = await startEmbedded(path.join(folder, "first"), {
    ...quick,
    archive_mode: "on",
    archive_command: `test ! -f '${archive}/%f' && cp '%p' '${archive}/%f'`,
  });
  t.teardown(() => server.stop());
  makeFolderLike(archive, server.folder);
  return { ...server, archive };
}

// Copies the running server as pg_basebackup does: its files while it writes to them, and the label that makes them
// consistent.
export async function copyServer(server: Embedded, folder: string): Promise<string> {
  const session = openSession(server.address, { name: "backup" });
  await session.rows("select pg_backup_start('rehearsal', true)");
  const from = path.join(server.folder, "data");
  const to = path.join(folder, "base");
  const left = ["postmaster.pid", "postmaster.opts", "pg_wal"].map((name) => path.join(from, name));
  await copyFiles(from, to, (file) => !left.includes(path.dirname(file)) && !left.slice(0, 2).includes(file));
  const [label] = await session.rows<{ labelfile: string; spcmapfile: string }>(
    "select labelfile, spcmapfile from pg_backup_stop(true)",
  );
  await session.end();
  writeFileSync(path.join(to, "backup_label"), label!.labelfile);
  return to;
}

// A file that PostgreSQL removes meanwhile is left out.
async function copyFiles(from: string, to: string, isWanted: (file: string) => boolean): Promise<void> {
  mkdirSync(to);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [path.join(from, entry.name), path.join(to, entry.name)];
    if (!isWanted(source)) continue;
    if (entry.isDirectory()) await copyFiles(source, target, isWanted);
    else await copyFile(source, target).catch(ignoreAbsent);
  }
}

function ignoreAbsent(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}

// Starts a new server from the copy and the archive, restored to the named point.
export async function restoreTo(
  t: Test,
  { archive, folder: like }: { archive: string; folder: string },
  base: string,
  folder: string,
  point: string,
): Promise<Embedded> {
  const home = makeFolderLike(path.join(folder, "second/postgres"), like);
  chmodSync(path.join(folder, "second"), 0o711);
  const data = path.join(home, "data");
  cpSync(base, data, { recursive: true });
  writeFileSync(path.join(data, "recovery.signal"), "");
  const { uid, gid } = statSync(like);
  for (const name of ["", ...readdirSync(data, { recursive: true, encoding: "utf8" })])
    chownSync(path.join(data, name), uid, gid);
  chmodSync(data, 0o700);
  const server = await startEmbedded(path.join(folder, "second"), {
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

// The folder of the tools that a rehearsal needs, or null when a tool is missing.
export function findTools(): string | null {
  return findToolFolders("pg_dump", "pg_restore", "psql", "initdb", "pg_ctl", "postgres")[0] ?? null;
}

/** `run` waits for the tool; `start` lets calls of this process go on meanwhile. */
export type Tools = {
  server: Address;
  run(name: string, ...args: string[]): string;
  start(name: string, ...args: string[]): Promise<unknown>;
};

// Starts an empty server of the system's own PostgreSQL. `run` runs one of its tools as its user, on the database
// coupon.
export async function startSystemServer(t: Test, bin: string, folder: string): Promise<Tools> {
  const isRoot = process.getuid?.() === 0;
  const idOf = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  const user = isRoot ? { uid: idOf("-u"), gid: idOf("-g") } : {};
  mkdirSync(folder, { mode: 0o700 });
  if ("uid" in user) chownSync(folder, user.uid!, user.gid!);
  const options = { ...user, cwd: folder, env: { PATH: "/usr/bin:/bin", LC_ALL: "C" } };
  const call = (name: string, ...args: string[]) =>
    execFileSync(path.join(bin, name), args, { ...options, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  const data = path.join(folder, "data");
  call("initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync");
  const settings = { listen_addresses: "", unix_socket_directories: folder, fsync: "off", max_connections: "100" };
  call(
    "pg_ctl",
    "-D",
    data,
    "-w",
    "-l",
    path.join(folder, "log"),
    "-o",
    Object.entries(settings)
      .map(([name, value]) => `-c ${name}='${value}'`)
      .join(" "),
    "start",
  );
  t.teardown(() => call("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"));
  const server = { host: folder, port: 5432, user: "postgres", database: "coupon" };
  const session = openSession({ ...server, database: "postgres" }, { name: "rehearsal" });
  await session.rows("create database coupon template template0");
  await session.end();
  return {
    server,
    run: (name, ...args) => call(name, "-d", formatUrl(server), ...args),
    start: (name, ...args) => promisify(execFile)(path.join(bin, name), ["-d", formatUrl(server), ...args], options),
  };
}
