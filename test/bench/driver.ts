// A child process that repeats a SQL transaction through the service's own driver. It replaces pgbench where that is
// not installed, and measures the latency that one client sees. Its sessions stay open until it ends, because the CPU
// time of an ended backend can no longer be told from that of other processes of the server. So all its jobs have the
// same address, role and number of connections.
import { openSession } from "../../src/database/connect.ts";
import type { Session } from "../../src/database/types.ts";
import type { Address } from "../../src/common/database-address.ts";
import { cpuSecondsSince, serveJobs } from "./child-process.ts";

export type DriverJob = {
  address: Address;
  role: string;
  connections: number;
  // Time before the measurement.
  warmSeconds: number;
  seconds: number;
  // One statement, or several, from begin to commit.
  steps: string[];
  // The parameters of each execution; the run ends with the last. Null: no parameters, and only time ends the run.
  params: unknown[][] | null;
  // Whether each row carries http_status, which must then be 200.
  isAnswer: boolean;
};
// total: includes executions before the measurement. latencies: milliseconds.
export type DriverResult = {
  count: number;
  seconds: number;
  cpuSeconds: number;
  total: number;
  latencies: Float64Array;
};

let sessions: Session[] = [];

serveJobs<DriverJob, DriverResult>(
  async ({ address, role, connections, warmSeconds, seconds, steps, params, isAnswer }) => {
    const options = { name: "coupon bench driver", role, statementTimeoutMs: 3_000, lockTimeoutMs: 2_000 };
    if (sessions.length === 0) sessions = Array.from({ length: connections }, () => openSession(address, options));
    let begun = 0;

    async function runFor(lastsSeconds: number): Promise<number[]> {
      const latencies: number[] = [];
      const endAt = performance.now() + lastsSeconds * 1_000;
      await Promise.all(
        sessions.map(async (session) => {
          while (performance.now() < endAt && (params === null || begun < params.length)) {
            const since = performance.now();
            const number = (begun += 1);
            let row: { http_status?: number; body?: string } | undefined;
            for (const step of steps) [row] = await session.rows(step, params?.[number - 1] ?? []);
            latencies.push(performance.now() - since);
            if (isAnswer && row?.http_status !== 200) throw new Error(`answered ${row?.http_status} ${row?.body}`);
          }
        }),
      );
      return latencies;
    }

    await runFor(warmSeconds);
    return async () => {
      const before = process.cpuUsage();
      const startAt = performance.now();
      const latencies = await runFor(seconds);
      return {
        count: latencies.length,
        seconds: (performance.now() - startAt) / 1_000,
        cpuSeconds: cpuSecondsSince(before),
        total: begun,
        latencies: Float64Array.from(latencies),
      };
    };
  },
);
