// What a round costs: WAL, full page images, and CPU by process.
import { readdirSync, readFileSync } from "node:fs";
import type { Database } from "../../src/database/types.ts";

// sessions: database backends that perform calls, of `serve` or of a load generator. workerSessions: those of `work`,
// mostly the sequencer. server: all other processes of the database server, such as the one that writes checkpoints.
export const cpuGroups = ["sessions", "workerSessions", "server", "serve", "work"] as const;
export type CpuGroup = (typeof cpuGroups)[number];
// Seconds.
export type Cpu = Record<CpuGroup, number>;
export type Reading = {
  walBytes: number;
  fullPageImages: number;
  // Null when unknown, as for an existing server.
  cpu: Cpu | null;
  // Backends that end with the round.
  pgbenchPids: number[];
};
export type Costs = Omit<Reading, "pgbenchPids">;
// monitor: a superuser's session, because other roles do not see what backends are for.
export type Measured = {
  monitor: Database;
  postmasterPid: number | null;
  servePid: number | null;
  workPid?: number | null;
};
type Backend = { pid: number; name: string };

// The WAL position is exact. Backends report the number of full page images about once a second.
export async function readCosts(measured: Measured): Promise<Reading> {
  const { monitor, postmasterPid } = measured;
  const [row] = await monitor.rows<{ bytes: number; images: number }>(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes, w.wal_fpi::float8 as images
     from pg_stat_wal w`,
  );
  const backends =
    postmasterPid === null
      ? []
      : await monitor.rows<Backend>(
          "select a.pid, a.application_name as name from pg_stat_activity a where a.backend_type = 'client backend'",
        );
  return {
    walBytes: row!.bytes,
    fullPageImages: row!.images,
    cpu: postmasterPid === null ? null : readCpu(measured, postmasterPid, backends),
    pgbenchPids: backends.filter(({ name }) => name === "pgbench").map(({ pid }) => pid),
  };
}

export function difference(before: Reading, after: Reading): Costs {
  const since = (group: CpuGroup) => after.cpu![group] - before.cpu![group];
  return {
    walBytes: after.walBytes - before.walBytes,
    fullPageImages: after.fullPageImages - before.fullPageImages,
    cpu: before.cpu && after.cpu && (Object.fromEntries(cpuGroups.map((group) => [group, since(group)])) as Cpu),
  };
}

function readCpu({ servePid, workPid }: Measured, postmasterPid: number, backends: Backend[]): Cpu {
  const own = (pid: number | null | undefined) => (pid ? (cpuTimes(pid)?.own ?? 0) : 0);
  const cpu: Cpu = { sessions: 0, workerSessions: 0, server: 0, serve: own(servePid), work: own(workPid) };
  let [ofBench, ofAll] = [0, postgresCpu(postmasterPid)];
  for (const { pid, name } of backends) {
    const spent = own(pid);
    const isBench = name.startsWith("coupon bench") && name !== "coupon bench driver";
    if (isBench) ofBench += spent;
    else if (/^(coupon serve|pgbench|coupon bench driver)/.test(name)) cpu.sessions += spent;
    else cpu.workerSessions += spent;
  }
  cpu.server = ofAll - ofBench - cpu.sessions - cpu.workerSessions;
  return cpu;
}

// The share of coupon updates that touched no index, since the database was created.
export async function readHotShare(owner: Database): Promise<number> {
  const [row] = await owner.rows<{ share: number | null }>(
    `select t.n_tup_hot_upd::float8 / nullif(t.n_tup_upd, 0) as share
     from pg_stat_user_tables t where t.schemaname = 'core' and t.relname = 'coupon'`,
  );
  return row?.share ?? NaN;
}

// The postmaster, its running children, and its ended children.
export function postgresCpu(postmasterPid: number): number {
  const postmaster = cpuTimes(postmasterPid);
  if (postmaster === null) return NaN;
  let total = postmaster.own + postmaster.ofEndedChildren;
  for (const name of readdirSync("/proc")) {
    const times = /^\d+$/.test(name) ? cpuTimes(Number(name)) : null;
    if (times?.parent === postmasterPid) total += times.own;
  }
  return total;
}

// In seconds; the kernel counts hundredths of a second.
export function cpuTimes(pid: number): { parent: number; own: number; ofEndedChildren: number } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The format is: pid (name) state parent …, and the name may contain anything.
    const fields = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    return {
      parent: fields[1]!,
      own: (fields[11]! + fields[12]!) / 100,
      ofEndedChildren: (fields[13]! + fields[14]!) / 100,
    };
  } catch {
    return null;
  }
}

// The resident memory of a process, in MiB.
export function residentMiB(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kilobytes) / 1_024;
}
