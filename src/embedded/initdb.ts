// Creates the data directory of the embedded server at its first start.
import { spawn } from "node:child_process";
import { existsSync, readFileSync, readdirSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import { EmbeddedError, type Home, asServer, dataFolder, serverEnv } from "./data-directory.ts";
import { inspectProcess } from "./postmaster.ts";

/** A data directory that is not complete has this prefix, followed by the pid of the program that makes it. */
const prefix = "new-";

/** Renames the data directory into place once it is complete, so an interrupted start leaves no partial one. */
export async function makeCluster(home: Home, binaries: string): Promise<void> {
  if (asServer(home, () => hasCluster(home))) return;
  asServer(home, () => removeAbandoned(home.folder));
  const unfinished = path.join(home.folder, `${prefix}${process.pid}`);
  await runServerProgram(home, path.join(binaries, "bin/initdb"), [
    "-D",
    unfinished,
    "-U",
    "postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--data-checksums",
  ]);
  await runServerProgram(
    home,
    path.join(binaries, "bin/postgres"),
    ["--single", "-D", unfinished, "-c", "log_checkpoints=off", "postgres"],
    "create database coupon",
  );
  asServer(home, () => {
    try {
      renameSync(unfinished, dataFolder(home));
    } catch (error) {
      // Another process was faster: use its directory.
      // equivalent mutant (literal true): the folder is there, unless another start removes it right now
      rmSync(unfinished, { recursive: true, force: true });
      if (!hasCluster(home)) throw error;
    }
  });
}

function hasCluster(home: Home): boolean {
  const file = path.join(dataFolder(home), "PG_VERSION");
  if (!existsSync(file)) return false;
  const version = readFileSync(file, "utf8").trim();
  if (version === "18") return true;
  // The text of another file is not repeated.
  const other = /^[\d.]{1,6}$/.test(version) ? version : "of an unknown version";
  throw new EmbeddedError(`${dataFolder(home)} is from PostgreSQL ${other}; this program runs 18: dump and restore it`);
}

/** Removes what starts that have ended left. */
function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(prefix)) continue;
    const owner = Number(name.slice(prefix.length));
    // In a container, a new process often has the pid of the killed one.
    const isAbandoned = owner === process.pid || inspectProcess(owner) === null;
    // equivalent mutant (literal true): the folder is there, unless another start removes it right now
    if (isAbandoned) rmSync(path.join(folder, name), { recursive: true, force: true });
  }
}

/** Waits for the end of the program. Throws what it printed to standard error if it fails. */
async function runServerProgram(home: Home, program: string, args: string[], input = ""): Promise<void> {
  const child = spawn(program, args, {
    ...home.user,
    cwd: home.folder,
    env: serverEnv,
    // equivalent mutant (element): a pipe is the default, and the unread output fits into one
    stdio: ["pipe", "ignore", "pipe"],
  });
  let message = "";
  child.stderr.on("data", (chunk) => {
    message += chunk;
  });
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const code = await new Promise((resolve, reject) => child.on("close", resolve).on("error", reject));
  if (code !== 0) throw new EmbeddedError(`${path.basename(program)} failed: ${message.trim()}`);
}
