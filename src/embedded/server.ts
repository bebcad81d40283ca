// The embedded PostgreSQL: the default where no DATABASE_URL is set.
//
// The server must not outlive the program that started it, however that one ends, and must never
// lose data. So a tiny shell stands between them, in a session of its own where neither Ctrl-C nor a
// kill of our process group reaches it. It holds the reading end of a pipe from us: when we end, the
// pipe closes, and it stops the server in good order.
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, closeSync, openSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { totalmem } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Address } from "../common/database-address.ts";
import { embeddedAddress } from "./find-address.ts";
import { makeCluster } from "./initdb.ts";
import {
  EmbeddedError,
  type Home,
  dataFolder,
  findBinaries,
  logFile,
  makeEnterable,
  makeHome,
  makeSocketFolder,
  serverEnv,
  socketFolder,
} from "./data-directory.ts";
import { findPostmaster, inspectProcess, isStaleLock } from "./postmaster.ts";

export interface Embedded {
  address: Address;
  /** Where the server really lives: log and data. */
  folder: string;
  stop(): Promise<void>;
}

/** The name by which the shell is known again. */
const supervisorName = "coupon-postgres";

// Background jobs of a shell get /dev/null as their stdin, hence the detour over descriptor 3.
const supervisor = `
  exec 3<&0
  "$@" </dev/null >&2 3<&- &
  server=$!
  echo $server
  (while read -r line; do :; done; kill -INT $server) <&3 >/dev/null 2>&1 &
  watcher=$!
  wait $server
  status=$?
  kill $watcher 2>/dev/null
  exit $status
`;

/**
 * For shared_buffers: a quarter of the memory that we may use, as PostgreSQL's manual advises. It is taken as data are read; what
 * is taken at once, to keep the books on it, is 2 % of it, hence not more than 8 GB.
 */
function quarterOfMemory(): string {
  const mebibytes = Math.min(totalmem(), process.constrainedMemory() || Infinity) / 2 ** 20;
  return `${Math.min(8_192, Math.max(128, Math.floor(mebibytes / 4)))}MB`;
}

const settings: Record<string, string> = {
  listen_addresses: "",
  unix_socket_permissions: "0700",
  max_connections: "100",
  shared_buffers: quarterOfMemory(),
  // Fewer checkpoints: each page is written whole to the log once after each.
  max_wal_size: "4GB",
  timezone: "UTC",
  log_timezone: "UTC",
  log_checkpoints: "off",
  // No value of ours may reach the log: no statements, no parameters, no "failing row contains".
  log_statement: "none",
  log_min_error_statement: "panic",
  log_parameter_max_length: "0",
  log_parameter_max_length_on_error: "0",
  log_error_verbosity: "terse",
};

/**
 * Starts the server of a DATA_DIR, making it at the first start, and starts it again when it dies.
 * `more` are settings on top of ours.
 */
export async function startEmbedded(dataDir: string, more: Record<string, string> = {}): Promise<Embedded> {
  let home = makeHome(dataDir);
  await waitForOldServer(home);
  home = makeEnterable(home, dataDir);
  const binaries = findBinaries(home);
  await makeCluster(home, binaries);
  const sockets = makeSocketFolder(home);
  const all = { ...settings, ...more, port: "5432", unix_socket_directories: sockets };
  const args = ["-D", dataFolder(home), ...Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`])];
  const launchServer = (): Promise<ChildProcess> => launch(home, path.join(binaries, "bin/postgres"), args);

  let shell = await launchServer();
  let isStopping = false;
  void keepRunning();
  return {
    address: embeddedAddress(sockets, 5432),
    folder: home.folder,
    async stop() {
      isStopping = true;
      await stopShell(shell);
    },
  };

  async function keepRunning(): Promise<void> {
    for (let pause = 250; ; pause = Math.min(pause * 2, 5_000)) {
      await exitOf(shell);
      if (isStopping) return;
      await sleep(pause);
      if (isStopping) return;
      try {
        await waitForOldServer(home);
        shell = await launchServer();
        // Somebody asked for the end while the server was on its way up.
        if (isStopping) await stopShell(shell);
        else pause = 250;
      } catch {
        // The reason is in the server's log; the next round tries again.
      }
    }
  }
}

/**
 * After kill -9 of the program before us its server may still be on the way down: wait for it. One
 * whose shell was killed too stands on its own: end it. One that somebody uses is refused.
 */
async function waitForOldServer(home: Home): Promise<void> {
  const data = dataFolder(home);
  const beganAt = Date.now();
  let isAsked = false;
  for (;;) {
    const old = findPostmaster(data);
    if (old === null) break;
    const waited = Date.now() - beganAt;
    if (old.status !== "stopping" && !isAsked && waited > 2_000) {
      if (inspectProcess(inspectProcess(old.pid)?.parent ?? 0)?.args.includes(supervisorName)) {
        throw new EmbeddedError(
          `the database in ${data} is in use: another program of this service runs with this DATA_DIR`,
        );
      }
      process.kill(old.pid, "SIGINT");
      isAsked = true;
    }
    if (waited > 60_000) throw new EmbeddedError(`the old server in ${data} (process ${old.pid}) does not end`);
    await sleep(20);
  }
  for (const lock of [path.join(data, "postmaster.pid"), path.join(socketFolder(home), ".s.PGSQL.5432.lock")]) {
    // Seen twice, as a server that starts in this moment writes its file in two steps.
    if (isStaleLock(lock, data) && (await sleep(100), isStaleLock(lock, data))) rmSync(lock, { force: true });
  }
}

async function launch(home: Home, postgres: string, args: string[]): Promise<ChildProcess> {
  const log = openLog(home);
  const shell = spawn("/bin/sh", ["-c", supervisor, supervisorName, postgres, ...args], {
    ...home.user,
    cwd: home.folder,
    env: serverEnv,
    detached: true,
    stdio: ["pipe", "pipe", log],
  });
  closeSync(log);
  // A shell that is gone already: its end is seen by `exit`.
  shell.stdin!.on("error", () => {});
  let hasEnded = false;
  void exitOf(shell).then(() => {
    hasEnded = true;
  });
  let pidText = "";
  shell.stdout!.on("data", (chunk) => {
    pidText += chunk;
  });

  for (;;) {
    await sleep(10);
    if (hasEnded) break;
    const postmaster = findPostmaster(dataFolder(home));
    if (postmaster?.status === "ready" && postmaster.pid === Number(pidText)) {
      // Neither the shell nor its pipes keep us alive: our end is its signal.
      shell.unref();
      for (const stream of [shell.stdin, shell.stdout]) (stream as unknown as { unref(): void }).unref();
      return shell;
    }
  }
  if (findPostmaster(dataFolder(home)) !== null) await waitForOldServer(home);
  throw new EmbeddedError(`the database server did not start. The end of ${logFile(home)}:\n${lastLines(home)}`);
}

async function stopShell(shell: ChildProcess): Promise<void> {
  shell.ref();
  shell.stdin!.end();
  // A shutdown waits for a checkpoint; a caller in a hurry leaves us, and the shell goes on.
  await exitOf(shell);
}

function exitOf(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) resolve();
    else child.once("exit", () => resolve());
  });
}

/** One generation is kept: what the server says is little, as it logs no statements. */
function openLog(home: Home): number {
  const file = logFile(home);
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size > 10_000_000) renameSync(file, `${file}.1`);
  const log = openSync(file, "a", 0o600);
  chmodSync(file, 0o600);
  return log;
}

const lastLines = (home: Home): string =>
  readFileSync(logFile(home), "utf8").trimEnd().split("\n").slice(-5).join("\n");
