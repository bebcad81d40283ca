// The embedded PostgreSQL, which runs if DATABASE_URL is not set.
//
// The server must not outlive the program that started it, however that program ends, and must never lose data. So a
// small shell script supervises the server. It runs in a separate session, which neither Ctrl-C nor a kill of our
// process group reaches. It reads from a pipe that we hold open. When we end, the pipe closes and the script shuts the
// server down in order.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, rmSync } from "node:fs";
import { totalmem } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Address } from "../config/database-address.ts";
import type { Logger } from "../common/log.ts";
import { embeddedAddress } from "./find-address.ts";
import { describeFullDisk, hasSpace, waitForSpace } from "./disk-space.ts";
import { makeCluster } from "./initdb.ts";
import {
  EmbeddedError,
  type Home,
  asServer,
  dataFolder,
  findBinaries,
  logFile,
  makeEnterable,
  makeHome,
  makeSocketFolder,
  serverEnv,
  socketFolder,
} from "./data-directory.ts";
import { lastLines, openLog } from "./server-log.ts";
import { findPostmaster, inspectProcess, isStaleLock, supervisorName, type Postmaster } from "./postmaster.ts";

export interface Embedded {
  address: Address;
  /** The folder of the data and the log, after any links. */
  folder: string;
  stop(): Promise<void>;
}

/** A server that has run for longer has started successfully. */
const settledAfterMs = 10_000;

// A shell gives its background jobs /dev/null as standard input, so the pipe moves to descriptor 3. They ignore SIGINT
// until they set a handler, so a server that is just starting misses it. The shell repeats it until the server has
// ended, for at most a minute: if the shell was killed, perhaps no process waits for the server, and its pid stays.
export const supervisor = `
  exec 3<&0
  "$@" </dev/null >&2 3<&- &
  server=$!
  echo $server
  (while read -r line; do :; done
  for second in $(seq 60); do kill -INT $server || break; sleep 1; done) <&3 >/dev/null 2>&1 &
  watcher=$!
  wait $server
  status=$?
  kill $watcher 2>/dev/null
  exit $status
`;

/**
 * shared_buffers: a quarter of the memory that we may use, as PostgreSQL's manual advises. PostgreSQL uses the memory
 * only as it reads data, but takes 2 % at once for bookkeeping, so we cap it at 8 GB.
 */
export function computeSharedBuffers(memoryBytes: number): string {
  return `${Math.min(8_192, Math.max(128, Math.floor(memoryBytes / 2 ** 20 / 4)))}MB`;
}

const settings: Record<string, string> = {
  listen_addresses: "",
  unix_socket_permissions: "0700",
  max_connections: "100",
  shared_buffers: computeSharedBuffers(Math.min(totalmem(), process.constrainedMemory() || Infinity)),
  // Fewer checkpoints: after each one, the first change of a page writes the whole page to the write-ahead log. A start
  // after a crash replays the log since the last one, at most about max_wal_size.
  max_wal_size: "4GB",
  checkpoint_timeout: "30min",
  // The default of 4 is for spinning disks. It makes reports read whole tables where an index would do.
  random_page_cost: "1.1",
  // A server that recovers by itself may overlook that its recovery failed, and hang forever: docs/design.md.
  restart_after_crash: "off",
  timezone: "UTC",
  log_timezone: "UTC",
  log_checkpoints: "off",
  // The server's log must contain no values: no statements, no parameters, no "failing row contains".
  log_statement: "none",
  log_min_error_statement: "panic",
  log_parameter_max_length: "0",
  log_parameter_max_length_on_error: "0",
  log_error_verbosity: "terse",
};

/**
 * Starts the server of a DATA_DIR and restarts it when it dies. The first start creates the database. `more` adds or
 * replaces settings of the server.
 */
export async function startEmbedded(
  dataDir: string,
  more: Record<string, string> = {},
  log?: Logger,
): Promise<Embedded> {
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

  // The pauses grow while the server fails to start, or ends soon after it has started.
  async function keepRunning(): Promise<void> {
    let hasRun = true;
    for (let pause = 0; ;) {
      const startedAt = performance.now();
      await exitOf(shell);
      if (isStopping) return;
      if (performance.now() - startedAt > settledAfterMs) pause = 0;
      if (hasRun) log?.error(describeEnd(home));
      hasRun = false;
      pause = Math.min(Math.max(pause * 2, 250), hasSpace(home.folder) ? 5_000 : 60_000);
      await waitForSpace(home.folder, pause, () => isStopping);
      if (isStopping) return;
      try {
        await waitForOldServer(home);
        shell = await launchServer();
        // stop() was called during the launch.
        if (isStopping) return await stopShell(shell); // equivalent mutant (await): stopShell does not fail
        hasRun = true;
        log?.info("the database server is running again");
      } catch {
        // The reason is in the log of the server. The next round tries again.
      }
    }
  }
}

function describeEnd(home: Home): string {
  return hasSpace(home.folder)
    ? `the database server stopped and is being restarted; ${logFile(home)} has the reason`
    : `${describeFullDisk(home.folder)}: the database server stopped; it restarts as soon as there is space`;
}

function findServer(home: Home): Postmaster | null {
  try {
    return asServer(home, () => findPostmaster(dataFolder(home)));
  } catch (error) {
    // Before makeEnterable has moved the folder, its user cannot enter it. What root reads here is never shown.
    if (home.user === undefined || (error as NodeJS.ErrnoException).code !== "EACCES") throw error;
    return findPostmaster(dataFolder(home));
  }
}

/**
 * Waits for the server of an earlier program that ended by kill -9. If the shell was killed too, nothing stops that
 * server, so this function does. It throws if another program is using the server.
 */
async function waitForOldServer(home: Home): Promise<void> {
  const data = dataFolder(home);
  const startedAt = Date.now();
  let isAsked = false;
  for (;;) {
    const old = findServer(home);
    if (old === null) break;
    const waited = Date.now() - startedAt;
    if (old.status !== "stopping" && !isAsked && waited > 2_000) {
      if (inspectProcess(inspectProcess(old.pid)?.parent ?? 0)?.args.includes(supervisorName)) {
        throw new EmbeddedError(
          `the database in ${data} is in use: another program of this service runs with the same DATA_DIR`,
        );
      }
      asServer(home, () => process.kill(old.pid, "SIGINT"));
      isAsked = true;
    }
    if (waited > 60_000) throw new EmbeddedError(`the old server in ${data} (process ${old.pid}) does not stop`);
    await sleep(20); // equivalent mutant (statement): it only looks more often
  }
  for (const lock of [path.join(data, "postmaster.pid"), path.join(socketFolder(home), ".s.PGSQL.5432.lock")]) {
    // Looks twice, because a server that is just starting writes its file in two steps.
    const isStale = () => asServer(home, () => isStaleLock(lock, data));
    // equivalent mutant (literal true): the file is there, unless another program removes it right now
    if (isStale() && (await sleep(100), isStale())) asServer(home, () => rmSync(lock, { force: true }));
  }
}

async function launch(home: Home, postgres: string, args: string[]): Promise<ChildProcess> {
  const log = asServer(home, () => openLog(home));
  const shell = spawn("/bin/sh", ["-c", supervisor, supervisorName, postgres, ...args], {
    ...home.user,
    cwd: home.folder,
    env: serverEnv,
    detached: true,
    stdio: ["pipe", "pipe", log],
  });
  closeSync(log);
  // Writing to a shell that has ended fails. The exit event reports its end.
  shell.stdin!.on("error", () => {});
  let pidText = "";
  shell.stdout!.on("data", (chunk) => {
    pidText += chunk;
  });

  for (;;) {
    await sleep(10);
    if (hasEnded(shell)) break;
    const postmaster = findServer(home);
    if (postmaster?.status === "ready" && postmaster.pid === Number(pidText)) {
      // The shell and its output must not keep this process alive: the shell stops the server when this process ends.
      // A pipe without a reader keeps no process alive.
      shell.unref();
      (shell.stdout as unknown as { unref(): void }).unref();
      return shell;
    }
  }
  if (findServer(home) !== null) await waitForOldServer(home);
  const reason = hasSpace(home.folder) ? "" : `${describeFullDisk(home.folder)}: `;
  throw new EmbeddedError(
    `${reason}the database server did not start. The last lines of ${logFile(home)}:\n` +
      asServer(home, () => lastLines(home)),
  );
}

async function stopShell(shell: ChildProcess): Promise<void> {
  shell.ref();
  shell.stdin!.end();
  // A shutdown waits for a checkpoint. If the caller does not wait, the shell still finishes.
  await exitOf(shell);
}

const hasEnded = ({ exitCode, signalCode, pid }: ChildProcess): boolean =>
  (exitCode ?? signalCode) !== null || pid === undefined;

async function exitOf(child: ChildProcess): Promise<void> {
  if (!hasEnded(child)) await once(child, "exit");
}
