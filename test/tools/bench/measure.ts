// What a round costs: write-ahead log, and CPU time by program. Here are also the few statistics that benches need.
import { readdirSync, readFileSync } from "node:fs";
import type { Environment } from "./environment.ts";

/** CPU in seconds. NaN: the database server does not run on this machine. */
export type Costs = { walBytes: number; postgres: number; serve: number; work: number };
/** A row of a printed table: its name and its columns. NaN: no meaning in this row. */
export type Row = { name: string; [column: string]: string | number };

export async function readCosts({ database, pids }: Environment): Promise<Costs> {
  const [row] = await database.rows<{ bytes: number; pid: number }>(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes, pg_backend_pid() as pid`,
  );
  const { serve, work } = pids();
  return { walBytes: row!.bytes, postgres: postgresCpu(row!.pid), serve: readCpu(serve).own, work: readCpu(work).own };
}

export function costsSince(before: Costs, after: Costs): Costs {
  const since = (key: keyof Costs) => after[key] - before[key];
  return { walBytes: since("walBytes"), postgres: since("postgres"), serve: since("serve"), work: since("work") };
}

/** The server with its running and its ended processes, found by one of them. */
export function postgresCpu(backendPid: number): number {
  const [postmaster, ...children] = listPostgres(backendPid).map(readCpu);
  if (postmaster === undefined) return NaN;
  return children.reduce((total, { own }) => total + own, postmaster.own + postmaster.ofEndedChildren);
}

/** The running processes of a server, its postmaster first, found by one of them. None: it is not on this machine. */
export function listPostgres(backendPid: number): number[] {
  const postmasterPid = readCpu(backendPid).parent;
  if (readCpu(postmasterPid).name !== "postgres") return [];
  const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return [postmasterPid, ...all.map(Number).filter((pid) => readCpu(pid).parent === postmasterPid)];
}

/** In seconds; the kernel counts hundredths of a second. */
export function readCpu(pid: number): { name: string; parent: number; own: number; ofEndedChildren: number } {
  try {
    // The format is: pid (name) state parent …, and the name may contain anything.
    const [, name, rest] = /^\d+ \((.*)\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))!;
    const fields = rest!.split(" ").map(Number);
    const seconds = (first: number) => (fields[first]! + fields[first + 1]!) / 100;
    return { name: name!, parent: fields[1]!, own: seconds(11), ofEndedChildren: seconds(13) };
  } catch {
    return { name: "", parent: NaN, own: NaN, ofEndedChildren: NaN };
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1]! + sorted[Math.floor(middle)]!) / 2;
}

/** The value that this share of the values does not exceed. */
export function quantile(values: Float64Array, share: number): number {
  const sorted = values.toSorted();
  return sorted[Math.max(Math.ceil(sorted.length * share), 1) - 1] ?? NaN;
}

/** Over the latencies of several rounds. */
export const p99 = (rounds: readonly Float64Array[]): number =>
  quantile(Float64Array.from(rounds.flatMap((latencies) => [...latencies])), 0.99);

export async function timed(act: () => Promise<unknown>): Promise<number> {
  const since = performance.now();
  await act();
  return (performance.now() - since) / 1_000;
}

export function printTable(title: string, rows: readonly Row[]): void {
  const rounded = rows.map(({ name, ...columns }) => [
    name,
    Object.fromEntries(
      Object.entries(columns).flatMap(([column, value]) => (Number.isNaN(value) ? [] : [[column, round(value)]])),
    ),
  ]);
  console.log(`\n${title}`);
  console.table(Object.fromEntries(rounded));
}

/** To three digits, or to a whole number if it has more. */
const round = (value: string | number): string | number =>
  typeof value === "string" ? value : value >= 1_000 ? Math.round(value) : Number(value.toPrecision(3));
