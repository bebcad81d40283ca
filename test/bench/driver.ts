// A child process that repeats a SQL transaction through the service's own driver. It replaces pgbench where that is
// not installed, and measures the latency that one client sees.
import { openSession } from "../../src/database/connect.ts";
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

serveJobs<DriverJob, DriverResult>(
  async ({ address, role, connections, warmSeconds, seconds, steps, params, isAnswer }) => {
    const sessions = Array.from({ length: connections }, () =>
      openSession(address, { name: "coupon bench driver", role, statementTimeoutMs: 3_000, lockTimeoutMs: 2_000 }),
    );
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
      const result = {
        count: latencies.length,
        seconds: (performance.now() - startAt) / 1_000,
        cpuSeconds: cpuSecondsSince(before),
        total: begun,
        latencies: Float64Array.from(latencies),
      };
      await Promise.all(sessions.map((session) => session.end()));
      return result;
    };
  },
);
