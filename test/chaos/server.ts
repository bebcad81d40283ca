// A PostgreSQL server that faults may stop and kill. It runs with fsync on, on a TCP port of the loopback address, and
// stays down until it is started again. It ends when our process ends, however that happens.
import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import path from "node:path";
import { makeCluster } from "../../src/embedded/initdb.ts";
import {
  dataFolder,
  findBinaries,
  logFile,
  makeEnterable,
  makeHome,
  makeSocketFolder,
  serverEnv,
} from "../../src/embedded/data-directory.ts";
import { findPostmaster } from "../../src/embedded/postmaster.ts";
import { findFreePort } from "../support/listen.ts";
import { mountSmallDisk, unmount } from "../support/small-disk.ts";
import { makeTemporaryFolder, removeFolder } from "../support/temporary-folder.ts";
import { waitAtMost, waitUntil } from "../support/wait-until.ts";

export type DatabaseServer = {
  folder: string;
  port: number;
  // The folder of a small disk, for a tablespace. Null where the system does not allow mounting.
  smallDisk: string | null;
  pid(): number;
  start(): Promise<void>;
  // Stops the server as pg_ctl does.
  stop(mode: "immediate" | "fast"): Promise<void>;
  // Kills the postmaster with SIGKILL, and waits until its children have ended too.
  kill(): Promise<void>;
  log(): string;
  remove(): Promise<void>;
};

const prefix = "coupon-chaos-";
const smallDiskBytes = 192 * 2 ** 20;
const startWithinMs = 60_000;
const signals = { immediate: "SIGQUIT", fast: "SIGINT" } as const;
const settings: Record<string, string> = {
  listen_addresses: "127.0.0.1",
  unix_socket_permissions: "0700",
  max_connections: "100",
  shared_buffers: "256MB",
  fsync: "on",
  timezone: "UTC",
  log_timezone: "UTC",
  log_statement: "none",
  log_min_error_statement: "panic",
  log_parameter_max_length: "0",
  log_parameter_max_length_on_error: "0",
  log_error_verbosity: "terse",
  log_checkpoints: "off",
};
// When our end of the pipe closes, the shell stops the server immediately.
const guard = `
  exec 3<&0
  "$@" </dev/null 3<&- &
  server=$!
  (while read -r line; do :; done; kill -QUIT $server) <&3 >/dev/null 2>&1 &
  watcher=$!
  wait $server
  kill $watcher 2>/dev/null
`;

export async function makeServer(): Promise<DatabaseServer> {
  const folder = makeTemporaryFolder(prefix, (abandoned) => unmount(path.join(abandoned, "small")));
  const home = makeEnterable(makeHome(path.join(folder, "data")), path.join(folder, "data"));
  const binaries = findBinaries(home);
  await makeCluster(home, binaries);
  const port = await findFreePort();
  const smallDisk = home.user ? mountSmallDisk(path.join(folder, "small"), smallDiskBytes, home.user) : null;
  const all = { ...settings, port: String(port), unix_socket_directories: makeSocketFolder(home) };
  const args = ["-D", dataFolder(home), ...Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`])];
  let shell: ChildProcess | null = null;

  const find = () => findPostmaster(dataFolder(home));
  const readLog = () => readFileSync(logFile(home), "utf8");
  const untilGone = () =>
    waitUntil("the end of the server", () => find() === null && shell?.exitCode !== null, { everyMs: 10 });
  const spawnServer = (): ChildProcess => {
    const log = openSync(logFile(home), "a", 0o600);
    const child = spawn("/bin/sh", ["-c", guard, "coupon-chaos", path.join(binaries, "bin/postgres"), ...args], {
      ...home.user,
      cwd: home.folder,
      env: serverEnv,
      detached: true,
      stdio: ["pipe", log, log],
    });
    closeSync(log);
    child.stdin!.on("error", () => {});
    return child;
  };
  // Returns whether the server is ready. While children of a killed server still run, a new one gives up at once.
  const tryToStart = async (): Promise<boolean> => {
    const child = spawnServer();
    shell = child;
    const isDecided = () => child.exitCode !== null || find()?.status === "ready";
    await waitUntil("the server to start", isDecided, { everyMs: 10 });
    return child.exitCode === null;
  };

  return {
    folder,
    port,
    smallDisk,
    pid: () => find()!.pid,
    async start() {
      if ((await waitAtMost(startWithinMs, tryToStart, { everyMs: 50 })) === null)
        throw new Error(`the server does not start: ${readLog().split("\n").slice(-5).join("\n")}`);
    },
    async stop(mode) {
      process.kill(find()!.pid, signals[mode]);
      await untilGone();
    },
    async kill() {
      process.kill(find()!.pid, "SIGKILL");
      await untilGone();
    },
    log: readLog,
    async remove() {
      const running = find();
      if (running !== null) {
        process.kill(running.pid, "SIGCONT");
        process.kill(running.pid, signals.fast);
      }
      await untilGone();
      if (smallDisk !== null) unmount(smallDisk);
      removeFolder(home.folder);
      removeFolder(folder);
    },
  };
}
