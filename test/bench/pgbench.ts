// A transaction over and over from many connections: by pgbench where it is installed, else by a driver process. Statements
// are prepared; each is a round trip. pgbench connects anew for each round, and a
// connection compiles and plans what it calls: its first seconds are not counted.
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { type Address, formatUrl } from "../../src/common/database-address.ts";
import type { DriverJob, DriverResult } from "./driver.ts";
import { startHelper } from "./child-process.ts";
import { cpuTimes } from "./measure.ts";

// Called where the time that counts begins, and where it ends.
export type Clock = { begin(): Promise<void>; end(): Promise<void> };
// total: also of the seconds that are not counted.
export type Hammered = { count: number; seconds: number; loadCpuSeconds: number; total: number };
export type Hammer = { run(steps: string[], seconds: number, clock: Clock): Promise<Hammered>; end(): void };
type Parts = { address: Address; role: string; connections: number; folder: string };
type Pgbench = ChildProcessByStdio<null, Readable, Readable>;

export const warmSeconds = 2;

export function createHammer(parts: Parts): Hammer {
  const program = findPgbench();
  return program === null ? createDriverHammer(parts) : createPgbenchHammer(program, parts);
}

// As `serve` connects (see src/database/connect.ts).
const settings = {
  jit: "off",
  max_parallel_workers_per_gather: "0",
  TimeZone: "UTC",
  statement_timeout: "3000",
  lock_timeout: "2000",
};

function createPgbenchHammer(program: string, { address, role, connections, folder }: Parts): Hammer {
  const options = Object.entries({ role, ...settings })
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(" ");
  return {
    async run(steps, seconds, clock) {
      const file = path.join(folder, "pgbench.sql");
      writeFileSync(file, steps.map((step) => `${step.replaceAll(/\s+/g, " ")};\n`).join(""));
      // One second more, so that the line of progress that ends the time is written in any case.
      const lasts = String(warmSeconds + seconds + 1);
      const args = [
        "-n",
        "-M",
        "prepared",
        "-P",
        "1",
        "-c",
        String(connections),
        "-j",
        "2",
        "-T",
        lasts,
        "-f",
        file,
        formatUrl(address),
      ];
      const child = spawn(program, args, {
        env: { PATH: process.env["PATH"], PGOPTIONS: options },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const summary = text(child.stdout);
      const { counted, complaint } = await follow(child, seconds, clock);
      const total = Number(/transactions actually processed: (\d+)/.exec(await summary)?.[1]);
      const failed = Number(/failed transactions: (\d+)/.exec(await summary)?.[1] ?? 0);
      if (counted === null || !(total > 0) || failed > 0) throw new Error(`pgbench: ${complaint} ${await summary}`);
      return { ...counted, total };
    },
    end() {},
  };
}

// By its progress, which it tells each second: "progress: 3.0 s, 1234.5 tps, lat …".
async function follow(
  child: Pgbench,
  seconds: number,
  clock: Clock,
): Promise<{ counted: Omit<Hammered, "total"> | null; complaint: string }> {
  const cpu = () => cpuTimes(child.pid!)?.own ?? NaN;
  let complaint = "";
  let beganAt: number | null = null;
  let [count, last, cpuBefore] = [0, 0, 0];
  let counted: Omit<Hammered, "total"> | null = null;
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

function createDriverHammer({ address, role, connections }: Parts): Hammer {
  const helper = startHelper<DriverJob, DriverResult>("driver.ts");
  return {
    async run(steps, seconds, clock) {
      const go = await helper.prepare({
        address,
        role,
        connections,
        warmSeconds,
        seconds,
        steps,
        params: null,
        isAnswer: false,
      });
      await clock.begin();
      const { latencies: _, cpuSeconds, ...result } = await go();
      await clock.end();
      return { ...result, loadCpuSeconds: cpuSeconds };
    },
    end: () => helper.end(),
  };
}

// Debian keeps the real ones, newest first here, behind a wrapper in PATH.
function findPgbench(): string | null {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...versions.map((version) => path.join(debian, version, "bin")),
    ...(process.env["PATH"] ?? "").split(":"),
  ];
  return folders.map((folder) => path.join(folder, "pgbench")).find((file) => existsSync(file)) ?? null;
}
