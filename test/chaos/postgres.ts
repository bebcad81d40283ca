// A PostgreSQL that the harness may treat as badly as it likes: with fsync on, on a TCP port of the loopback, one that stays away
// when it is killed until it is started again. It ends with us, however we end.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
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
import { findPostmaster, inspectProcess } from "../../src/embedded/postmaster.ts";

export type Postgres = {
  folder: string;
  port: number;
  // Null: this system lets nobody mount here. Else a folder of a disk of its own, for a tablespace.
  smallDisk: string | null;
  pid(): number;
  start(): Promise<void>;
  // As pg_ctl does it.
  stop(mode: "immediate" | "fast"): Promise<void>;
  // kill -9 of the postmaster; until all its children have noticed.
  kill(): Promise<void>;
  log(): string;
  remove(): Promise<void>;
};

const prefix = "coupon-chaos-";
const smallDiskBytes = 192 * 2 ** 20;
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
// When the pipe from us closes, the server is stopped the quick way.
const guard = `
  exec 3<&0
  "$@" </dev/null 3<&- &
  server=$!
  (while read -r line; do :; done; kill -QUIT $server) <&3 >/dev/null 2>&1 &
  watcher=$!
  wait $server
  kill $watcher 2>/dev/null
`;

export async function makePostgres(): Promise<Postgres> {
  removeAbandoned();
  const folder = mkdtempSync(path.join(tmpdir(), `${prefix}${process.pid}-`));
  // The server's user has to walk through it.
  chmodSync(folder, 0o711);
  const home = makeEnterable(makeHome(path.join(folder, "data")), path.join(folder, "data"));
  const binaries = findBinaries(home);
  await makeCluster(home, binaries);
  const port = await findFreePort();
  const smallDisk = mountSmallDisk(path.join(folder, "small"), home.user);
  const all = { ...settings, port: String(port), unix_socket_directories: makeSocketFolder(home) };
  const args = ["-D", dataFolder(home), ...Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`])];
  let shell: ChildProcess | null = null;

  const find = () => findPostmaster(dataFolder(home));
  const untilGone = async (): Promise<void> => {
    while (find() !== null || shell?.exitCode === null) await sleep(10);
  };

  return {
    folder,
    port,
    smallDisk,
    pid: () => find()!.pid,
    async start() {
      for (const since = performance.now(); performance.now() < since + 60_000; await sleep(50)) {
        const log = openSync(logFile(home), "a", 0o600);
        const started = spawn("/bin/sh", ["-c", guard, "coupon-chaos", path.join(binaries, "bin/postgres"), ...args], {
          ...home.user,
          cwd: home.folder,
          env: serverEnv,
          detached: true,
          stdio: ["pipe", log, log],
        });
        closeSync(log);
        started.stdin!.on("error", () => {});
        shell = started;
        // It gives up at once while children of a killed one are still at their end.
        while (started.exitCode === null && find()?.status !== "ready") await sleep(10);
        if (started.exitCode === null) return;
      }
      throw new Error(
        `the server does not start: ${readFileSync(logFile(home), "utf8").split("\n").slice(-5).join("\n")}`,
      );
    },
    async stop(mode) {
      process.kill(find()!.pid, signals[mode]);
      await untilGone();
    },
    async kill() {
      process.kill(find()!.pid, "SIGKILL");
      await untilGone();
    },
    log: () => readFileSync(logFile(home), "utf8"),
    async remove() {
      const running = find();
      if (running !== null) {
        process.kill(running.pid, "SIGCONT");
        process.kill(running.pid, signals.fast);
      }
      await untilGone();
      if (smallDisk !== null) spawnSync("umount", [smallDisk]);
      rmSync(home.folder, { recursive: true, force: true });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function findFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function mountSmallDisk(folder: string, user: { uid: number; gid: number } | undefined): string | null {
  if (user === undefined) return null;
  mkdirSync(folder, { recursive: true });
  const options = `size=${smallDiskBytes},mode=700,uid=${user.uid},gid=${user.gid}`;
  return spawnSync("mount", ["-t", "tmpfs", "-o", options, "coupon-chaos", folder]).status === 0 ? folder : null;
}

// Asked by doing it: root in a container often may not.
export function canMount(): boolean {
  if (process.getuid?.() !== 0) return false;
  const folder = mkdtempSync(path.join(tmpdir(), `${prefix}mount-`));
  const isMounted = mountSmallDisk(folder, { uid: 0, gid: 0 }) !== null;
  if (isMounted) spawnSync("umount", [folder]);
  rmSync(folder, { recursive: true, force: true });
  return isMounted;
}

// What a killed run left; its server ended with it.
function removeAbandoned(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = name.startsWith(prefix) ? parseInt(name.slice(prefix.length), 10) : NaN;
    if (!(pid > 0) || inspectProcess(pid) !== null) continue;
    spawnSync("umount", [path.join(tmpdir(), name, "small")]);
    rmSync(path.join(tmpdir(), name), { recursive: true, force: true });
  }
}
