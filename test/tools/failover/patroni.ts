// The same two servers under Patroni and etcd, from the packages of Debian (apt-get install patroni etcd-server).
// Patroni promotes the synchronous standby by itself once the lock of the primary has expired.
import { spawn, type ChildProcess } from "node:child_process";
import { chownSync, closeSync, mkdirSync, openSync, writeFileSync } from "node:fs";
import path from "node:path";
import { stringify } from "yaml";
import type { Address } from "../../../src/config/database-address.ts";
import { makeHome } from "../../../src/embedded/data-directory.ts";
import { findPostmaster } from "../../../src/embedded/postmaster.ts";
import { findFreePort } from "../../support/listen.ts";
import { findToolFolders } from "../../support/postgres-tools.ts";
import { endOf } from "../../support/program.ts";
import type { Teardown } from "../../support/scenario.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { killTree, onServer, type Cluster } from "./cluster.ts";

type Member = {
  name: string;
  address: Address;
  rest: number;
  data: string;
  start(): ChildProcess;
  patroni: ChildProcess | null;
};
type Run = (name: string, program: string, args: string[]) => ChildProcess;

const host = "127.0.0.1";
const trust = { username: "postgres", password: "none" };

export async function startPatroni(t: Teardown, folder: string): Promise<Cluster> {
  const [bin] = findToolFolders("postgres", "pg_basebackup", "pg_rewind");
  if (bin === undefined) throw new Error("there is no PostgreSQL with pg_basebackup and pg_rewind");
  // The user that may run a server.
  const { user } = makeHome(path.join(folder, "owner"));
  const place = path.join(folder, "patroni");
  mkdirSync(place, { mode: 0o700 });
  if (user !== undefined) chownSync(place, user.uid, user.gid);

  const run: Run = (name, program, args) => {
    const log = openSync(path.join(folder, `${name}.log`), "a");
    const env = { PATH: process.env["PATH"], LC_ALL: "C.UTF-8" };
    const child = spawn(program, args, { ...user, cwd: place, env, stdio: ["ignore", log, log] });
    closeSync(log);
    return child;
  };
  const etcd = await startEtcd(t, run, place);
  const parts = { bin, etcd, place };
  const [one, two] = [await openMember(t, run, "one", parts), await openMember(t, run, "two", parts)];
  one.patroni = one.start();
  await untilWritable(one);
  await onServer({ ...one.address, database: "postgres" }, (psql) =>
    psql.run("create database coupon encoding 'UTF8' template template0"),
  );
  two.patroni = two.start();
  let [primary, standby] = [one, two];
  await untilSynchronous(two);
  return {
    address: { ...one.address, others: [{ host, port: two.address.port }] },
    primary: one.address,
    standby: two.address,
    cutStandbyOff: null,
    async cancelWaits() {},
    async kill() {
      primary.patroni!.kill("SIGKILL");
      killTree(findPostmaster(primary.data)!.pid);
      await endOf(primary.patroni!);
    },
    async promote() {
      await untilWritable(standby);
      const since = performance.now();
      [primary, standby] = [standby, primary];
      return since;
    },
    async rebuild() {
      standby.patroni = standby.start();
      await untilSynchronous(standby);
    },
  };
}

// Returns its place.
async function startEtcd(t: Teardown, run: Run, place: string): Promise<string> {
  const [clients, peers] = [`${host}:${await findFreePort()}`, `${host}:${await findFreePort()}`];
  const [client, peer] = [`http://${clients}`, `http://${peers}`];
  const urls = ["--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer];
  const own = ["--initial-advertise-peer-urls", peer, "--initial-cluster", `etcd=${peer}`];
  const etcd = run("etcd", "etcd", ["--name", "etcd", "--data-dir", path.join(place, "etcd"), ...urls, ...own]);
  t.teardown(async () => {
    etcd.kill("SIGTERM");
    await endOf(etcd);
  });
  return clients;
}

async function openMember(
  t: Teardown,
  run: Run,
  name: string,
  parts: Pick<Parts, "bin" | "etcd" | "place">,
): Promise<Member> {
  const [port, rest] = [await findFreePort(), await findFreePort()];
  const data = path.join(parts.place, name);
  const file = path.join(parts.place, `${name}.yml`);
  writeFileSync(file, stringify(describe({ ...parts, name, port, rest, data })), { mode: 0o644 });
  const address = { host, port, user: "postgres", database: "coupon" };
  const member: Member = { name, address, rest, data, start: () => run(name, "patroni", [file]), patroni: null };
  t.teardown(async () => {
    // Patroni stops its server.
    member.patroni?.kill("SIGTERM");
    if (member.patroni !== null) await endOf(member.patroni);
  });
  return member;
}

type Parts = { name: string; port: number; rest: number; data: string; bin: string; etcd: string; place: string };

// What docs/restore.md shows, on one machine. pg_hba trusts everybody here.
function describe({ name, port, rest, data, bin, etcd, place }: Parts): object {
  return {
    scope: "coupon",
    name,
    restapi: { listen: `${host}:${rest}`, connect_address: `${host}:${rest}` },
    etcd3: { hosts: etcd },
    bootstrap: {
      dcs: {
        ttl: 20,
        loop_wait: 2,
        retry_timeout: 5,
        synchronous_mode: true,
        postgresql: { use_pg_rewind: true, parameters: { max_connections: 100, wal_log_hints: "on" } },
      },
      initdb: [{ encoding: "UTF8" }, { locale: "C" }, "data-checksums"],
    },
    postgresql: {
      listen: `${host}:${port}`,
      connect_address: `${host}:${port}`,
      data_dir: data,
      bin_dir: bin,
      pgpass: path.join(place, `${name}.pgpass`),
      authentication: { superuser: trust, replication: trust, rewind: trust },
      pg_hba: [`host all all ${host}/32 trust`, `host replication all ${host}/32 trust`],
      parameters: { unix_socket_directories: "", synchronous_commit: "on", shared_buffers: "128MB" },
    },
  };
}

async function untilWritable({ name, address }: Member): Promise<void> {
  const isWritable = () =>
    onServer({ ...address, database: "postgres" }, async (psql) => {
      const [row] = await psql.rows<{ is_standby: boolean }>("select pg_is_in_recovery() as is_standby");
      return !row!.is_standby;
    }).catch(() => false);
  await waitUntil(`${name} to take writes`, isWritable, { everyMs: 50 });
}

// PostgreSQL says so a moment before Patroni would promote it.
async function untilSynchronous({ name, rest }: Member): Promise<void> {
  const isSynchronous = () =>
    fetch(`http://${host}:${rest}/sync`).then(
      ({ status }) => status === 200,
      () => false,
    );
  await waitUntil(`${name} to be the synchronous standby`, isSynchronous, { everyMs: 200 });
}
