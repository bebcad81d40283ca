// What a round costs: WAL, CPU by group of processes, and the share of HOT updates.
import { readdirSync, readFileSync } from "node:fs";
import type { Database } from "../../src/database/types.ts";

export type Reading = {
  walBytes: number;
  fullPageImages: number;
  // Seconds since the start of the processes; null when unknown, as for an existing server.
  serveCpu: number | null;
  postgresCpu: number | null;
};
export type Measured = { owner: Database; postmasterPid: number | null; servePid: number | null };

// The WAL position is exact. Backends report the number of full page images about once a second.
export async function readCosts({ owner, postmasterPid, servePid }: Measured): Promise<Reading> {
  const [row] = await owner.rows<{ bytes: number; images: number }>(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes, w.wal_fpi::float8 as images
     from pg_stat_wal w`,
  );
  return {
    walBytes: row!.bytes,
    fullPageImages: row!.images,
    serveCpu: servePid === null ? null : (cpuTimes(servePid)?.own ?? null),
    postgresCpu: postmasterPid === null ? null : postgresCpu(postmasterPid),
  };
}

export function difference(before: Reading, after: Reading): Reading {
  const since = (a: number | null, b: number | null) => (a === null || b === null ? null : b - a);
  return {
    walBytes: after.walBytes - before.walBytes,
    fullPageImages: after.fullPageImages - before.fullPageImages,
    serveCpu: since(before.serveCpu, after.serveCpu),
    postgresCpu: since(before.postgresCpu, after.postgresCpu),
  };
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
