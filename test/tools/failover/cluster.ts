// A primary and its synchronous standby, from the binaries of the embedded PostgreSQL. It has no pg_basebackup, so the
// standby is a copy of the running primary's files between pg_backup_start and pg_backup_stop.
//
// What an operator's cluster manager does, this does in the same order: the standby is promoted without waiting for
// another one, and the names of synchronous standbys follow once the old primary is back.
import { execFileSync, spawn, spawnSync, type ChildProcessWithoutNullStreams } from "node:child_process";
import { appendFileSync, closeSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Address } from "../../../src/config/database-address.ts";
import { openSession } from "../../../src/database/connect.ts";
import type { Session } from "../../../src/database/types.ts";
import {
  asServer,
  dataFolder,
  findBinaries,
  makeEnterable,
  makeHome,
  serverEnv,
  type Home,
} from "../../../src/embedded/data-directory.ts";
import { makeCluster } from "../../../src/embedded/initdb.ts";
import { supervisorName } from "../../../src/embedded/postmaster.ts";
import { supervisor } from "../../../src/embedded/server.ts";
import { findFreePort } from "../../support/listen.ts";
import { startProxy } from "../../support/proxy.ts";
import type { Teardown } from "../../support/scenario.ts";
import { endOf } from "../../support/program.ts";
import { waitUntil } from "../../support/wait-until.ts";

/** Two servers. The test tools know nothing more about them, so Patroni can run them too. */
export type Cluster = {
  /** Names both, as DATABASE_URL does. */
  address: Address;
  primary: Address;
  standby: Address;
  /** Null: this cluster cannot cut its standby off. From then on each commit waits for a standby that hears nothing. */
  cutStandbyOff: (() => Promise<void>) | null;
  /** Ends the waits of all commits, as a DBA may. */
  cancelWaits(): Promise<void>;
  /** kill -9 of every process of the primary. */
  kill(): Promise<void>;
  /** Resolves when the standby takes writes. Returns when its promotion began, on the clock of performance.now(). */
  promote(): Promise<number>;
  /** Makes the killed server the synchronous standby of the other. */
  rebuild(): Promise<void>;
};

type Member = {
  name: string;
  home: Home;
  binaries: string;
  port: number;
  /** Of this server only. */
  settings: Record<string, string>;
  /** The shell that ends the server when this process ends. */
  shell: ChildProcessWithoutNullStreams | null;
  pid: number;
  /** To this one, from the standby. */
  proxy: Awaited<ReturnType<typeof startProxy>>;
};

const settings: Record<string, string> = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "100",
  shared_buffers: "128MB",
  max_wal_size: "256MB",
  wal_keep_size: "512MB",
  random_page_cost: "1.1",
  wal_retrieve_retry_interval: "200ms",
  // What a DBA sets so that nothing is lost (docs/restore.md).
  synchronous_commit: "on",
};
const user = "postgres";
const database = "coupon";

/** `isAsynchronous`: no commit waits for the standby. */
export async function startCluster(t: Teardown, folder: string, { isAsynchronous = false } = {}): Promise<Cluster> {
  let [primary, standby] = [await makeMember(t, folder, "one"), await makeMember(t, folder, "two")];
  await makeCluster(primary.home, primary.binaries);
  await start(primary);
  await copy(primary, standby);
  await join(primary, standby, isAsynchronous);
  const others = [{ host: "127.0.0.1", port: standby.port }];
  return {
    address: { ...addressOf(primary), others },
    primary: addressOf(primary),
    standby: addressOf(standby),
    async cutStandbyOff() {
      // What was on the way is lost too.
      primary.proxy.set({ isStalled: true });
      primary.proxy.loseAll();
    },
    cancelWaits: () =>
      onServer(addressOf(primary), async (psql) => {
        await psql.rows("select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'");
      }),
    async kill() {
      await kill(primary);
      primary.proxy.set({});
    },
    async promote() {
      const since = performance.now();
      await onServer(addressOf(standby), async (psql) => {
        await psql.run("alter system set synchronous_standby_names = ''");
        await psql.rows("select pg_reload_conf()");
        await psql.rows("select pg_promote()");
      });
      [primary, standby] = [standby, primary];
      return since;
    },
    async rebuild() {
      await copy(primary, standby);
      await join(primary, standby);
    },
  };
}

/** A server without a standby. It can start again after its kill, with the same data and port. */
export type Lone = { address: Address; readLog(): string; kill(): Promise<void>; start(): Promise<void> };

/** `more`: settings of the server. */
export async function startLone(t: Teardown, folder: string, name: string, more = {}): Promise<Lone> {
  const member = await makeMember(t, folder, name, more);
  await makeCluster(member.home, member.binaries);
  await start(member);
  return {
    address: addressOf(member),
    readLog: () => readFileSync(logFileOf(member), "utf8"),
    kill: () => kill(member),
    start: () => start(member),
  };
}

async function kill({ pid, shell }: Member): Promise<void> {
  killTree(pid);
  await endOf(shell!);
}

async function makeMember(t: Teardown, folder: string, name: string, more = {}): Promise<Member> {
  const dataDir = path.join(folder, name);
  const home = makeEnterable(makeHome(dataDir), dataDir);
  const port = await findFreePort();
  const proxy = await startProxy({ host: "127.0.0.1", port });
  const member: Member = { name, home, binaries: findBinaries(home), port, settings: more, shell: null, pid: 0, proxy };
  t.teardown(async () => {
    member.shell?.stdin.end();
    if (member.shell !== null) await endOf(member.shell);
    await proxy.stop();
    rmSync(home.folder, { recursive: true, force: true });
  });
  return member;
}

const logFileOf = ({ home, name }: Member): string => path.join(path.dirname(home.folder), `${name}.log`);
const addressOf = ({ port }: Member): Address => ({ host: "127.0.0.1", port, user, database });

export async function onServer<T>(address: Address, work: (psql: Session) => Promise<T>): Promise<T> {
  const settings = { synchronous_commit: "local" };
  const session = openSession(address, { name: "coupon failover", settings });
  return work(session).finally(() => session.end());
}

async function start(member: Member): Promise<void> {
  const { home, binaries, port } = member;
  const log = openSync(logFileOf(member), "a");
  const all = { ...settings, ...member.settings, port: String(port) };
  const args = ["-D", dataFolder(home), ...Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`])];
  const shell = spawn("/bin/sh", ["-c", supervisor, supervisorName, path.join(binaries, "bin/postgres"), ...args], {
    ...home.user,
    cwd: home.folder,
    env: serverEnv,
    detached: true,
    stdio: ["pipe", "pipe", log],
  }) as ChildProcessWithoutNullStreams;
  shell.stdin.on("error", () => {});
  shell.stdout.once("data", (chunk) => (member.pid = Number(chunk)));
  member.shell = shell;
  closeSync(log);
  const ask = () =>
    onServer(addressOf(member), (psql) => psql.rows("select")).then(
      () => true,
      () => false,
    );
  await waitUntil(`${member.name} to start`, ask, { withinMs: 60_000 });
}

async function copy(from: Member, to: Member): Promise<void> {
  const [source, target] = [dataFolder(from.home), dataFolder(to.home)];
  await onServer(addressOf(from), async (psql) => {
    await psql.rows("select pg_backup_start('failover', true)");
    // tar fails if a file disappears or grows while it reads. The log, which the standby gets, repairs both.
    const tar = `tar -C "$1" --exclude='./pg_wal/*' --exclude='./postmaster.*' --exclude='./pg_replslot/*' -cf - . |
      tar -C "$2" -xf -`;
    asServer(to.home, () => rmSync(target, { recursive: true, force: true }));
    execFileSync("/bin/sh", ["-c", `mkdir -m 700 "$2" && ${tar}`, "sh", source, target], {
      ...to.home.user,
      env: serverEnv,
      stdio: "ignore",
    });
    const [row] = await psql.rows<{ label: string }>("select labelfile as label from pg_backup_stop(false)");
    const conninfo = `host=127.0.0.1 port=${from.proxy.port} user=${user} application_name=${to.name}`;
    asServer(to.home, () => {
      writeFileSync(path.join(target, "backup_label"), row!.label);
      writeFileSync(path.join(target, "standby.signal"), "");
      const lines = `primary_conninfo = '${conninfo}'\nsynchronous_standby_names = ''\n`;
      appendFileSync(path.join(target, "postgresql.auto.conf"), lines);
    });
  });
}

// Makes it a synchronous standby once it has caught up.
async function join(primary: Member, standby: Member, isAsynchronous = false): Promise<void> {
  await start(standby);
  await onServer(addressOf(primary), async (psql) => {
    const ask = async (column: string) =>
      (await psql.rows<{ state: string }>(`select ${column} as state from pg_stat_replication`))[0]?.state;
    await waitUntil("the standby to stream", async () => (await ask("state")) === "streaming");
    if (isAsynchronous) return;
    await psql.run(`alter system set synchronous_standby_names = '${standby.name}'`);
    await psql.rows("select pg_reload_conf()");
    await waitUntil("the standby to be synchronous", async () => (await ask("sync_state")) === "sync");
  });
}

/** Kills a server with all its processes. Each of them has a process group of its own. */
export function killTree(postmaster: number): void {
  const children = spawnSync("ps", ["--ppid", String(postmaster), "-o", "pid="], { encoding: "utf8" }).stdout;
  for (const pid of [postmaster, ...children.split("\n").map(Number)].filter((each) => each > 0)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  }
}
