// Repeats a SQL transaction on many connections: by pgbench where it is installed, otherwise by driver.ts. Statements
// are prepared; each is a round trip. pgbench reconnects for each round, and a new connection first compiles and plans
// what it calls, so the first seconds are not measured.
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { formatUrl, type Address } from "../../src/common/database-address.ts";
import type { DriverJob, DriverResult } from "./driver.ts";
import { startChildProcess } from "./child-process.ts";
import { cpuTimes } from "./measure.ts";
import { findToolFolders } from "../support/postgres-tools.ts";

// Called at the start and at the end of the measured time. A round that is repeated calls begin again.
export type Clock = { begin(): Promise<void>; end(): Promise<void> };
// total: includes the seconds that are not measured.
export type SqlRound = {
  count: number;
  seconds: number;
  loadCpuSeconds: number;
  total: number;
  // Pgbench reports none.
  latencies?: Float64Array[];
};
// params: those of each execution, for a load of one statement whose rows carry http_status.
export type SqlLoad = {
  run(steps: string[], seconds: number, clock: Clock, params?: unknown[][]): Promise<SqlRound>;
  end(): void;
};
type Parts = { address: Address; role: string; connections: number; folder: string };
type Pgbench = ChildProcessByStdio<null, Readable, Readable>;

export const warmSeconds = 2;

export function createSqlLoad(parts: Parts): SqlLoad {
  const [folder] = findToolFolders("pgbench");
  return folder === undefined ? createDriverLoad(parts) : createPgbenchLoad(path.join(folder, "pgbench"), parts);
}

// The settings of the connections of `serve`, see src/database/connect.ts.
const settings = {
  jit: "off",
  max_parallel_workers_per_gather: "0",
  TimeZone: "UTC",
  statement_timeout: "3000",
  lock_timeout: "2000",
};

function createPgbenchLoad(program: string, { address, role, connections, folder }: Parts): SqlLoad {
  const options = Object.entries({ role, ...settings })
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(" ");

  async function runOnce(file: string, lasts: number, seconds: number, clock: Clock) {
    const args = ["-n", "-M", "prepared", "-P", "1", "-c", connections, "-j", 2, "-T", lasts, "-f", file];
    const child = spawn(program, [...args.map(String), formatUrl(address)], {
      env: { PATH: process.env["PATH"], PGOPTIONS: options },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const summary = text(child.stdout);
    const { counted, complaint } = await follow(child, seconds, clock);
    const total = Number(/transactions actually processed: (\d+)/.exec(await summary)?.[1]);
    const failed = Number(/failed transactions: (\d+)/.exec(await summary)?.[1] ?? 0);
    if (!(total > 0) || failed > 0) throw new Error(`pgbench: ${complaint} ${await summary}`);
    return { counted, total };
  }

  return {
    async run(steps, seconds, clock) {
      const file = path.join(folder, "pgbench.sql");
      writeFileSync(file, steps.map((step) => `${step.replaceAll(/\s+/g, " ")};\n`).join(""));
      let total = 0;
      // One more second, so that pgbench prints the progress line that ends the measured time. On a busy machine it
      // prints too few, and the round is repeated with more time.
      for (let more = 1; more < 100; more *= 4) {
        const ran = await runOnce(file, warmSeconds + seconds + more, seconds, clock);
        total += ran.total;
        if (ran.counted !== null) return { ...ran.counted, total };
      }
      throw new Error("pgbench: the machine is too busy");
    },
    end() {},
  };
}

// Reads the progress that pgbench prints each second: "progress: 3.0 s, 1234.5 tps, lat …".
async function follow(
  child: Pgbench,
  seconds: number,
  clock: Clock,
): Promise<{ counted: Omit<SqlRound, "total"> | null; complaint: string }> {
  const cpu = () => cpuTimes(child.pid!)?.own ?? NaN;
  let complaint = "";
  let beganAt: number | null = null;
  let [count, last, cpuBefore] = [0, 0, 0];
  let counted: Omit<SqlRound, "total"> | null = null;
  for await (const line of createInterface(child.stderr)) {
    const [, at, perSecond] = /^progress: ([\d.]+) s, ([\d.]+) tps/.exec(line)?.map(Number) ?? [];
    if (at === undefined || perSecond === undefined) {
      if (!line.startsWith("pgbench (")) complaint += `${line} `;
      continue;
    }
    if (beganAt !== null) count += perSecond * (at - last);
    last = at;
    if (beganAt === null && at > warmSeconds - 0.5) {
      [beganAt, cpuBefore] = [at, cpu()];
      await clock.begin();
    } else if (beganAt !== null && counted === null && at > beganAt + seconds - 0.5) {
      counted = { count: Math.round(count), seconds: at - beganAt, loadCpuSeconds: cpu() - cpuBefore };
      await clock.end();
    }
  }
  return { counted, complaint };
}

export function createDriverLoad({ address, role, connections }: Omit<Parts, "folder">): SqlLoad {
  const childProcess = startChildProcess<DriverJob, DriverResult>("driver.ts");
  return {
    async run(steps, seconds, clock, params) {
      const go = await childProcess.prepare({
        address,
        role,
        connections,
        warmSeconds,
        seconds,
        steps,
        params: params ?? null,
        isAnswer: params !== undefined,
      });
      await clock.begin();
      const { latencies, cpuSeconds, ...result } = await go();
      await clock.end();
      return { ...result, latencies: [latencies], loadCpuSeconds: cpuSeconds };
    },
    end: () => childProcess.end(),
  };
}
