// What a run of the benches can be told: names on the command line, sizes in the environment.
import path from "node:path";

export const settingsText = `npm run bench [-- NAME…]

  BENCH_DATABASE_URL  a server to measure on, as a superuser; its databases coupon_bench_… are made and dropped there.
                      Absent: an embedded one, started for the run. DATABASE_URL is not read: nobody measures
                      on a database in use by mistake
  BENCH_SECONDS       of a round (5)
  BENCH_ROUNDS        of each of the compared programs, alternating (5)
  BENCH_COUPONS       minted before the rounds (300000)
  BENCH_WORKER        on: a worker runs beside the rounds of floor, function and http… (off)
  BENCH_MINT          coupons of the batch of mint (1000000; 100000 when no bench is named)
  BENCH_EXPIRE        coupons of expire that are due at once (200000; 20000)
  BENCH_EVENTS        of feed and webhooks (100000; 20000)
  BENCH_ENTRIES       of statement (1000000; 100000)
  BENCH_SCALE         coupons of the small and the large table of scale (100000,10000000)
  BENCH_REDEMPTIONS   in the large table of scale (1000000)
  BENCH_QUIET_SECONDS  without load, of footprint (60)
  BENCH_LOAD_SECONDS  under load, of footprint (600)
  BENCH_RESULTS       the file of the results (bench/results.json)`;

export type Settings = ReturnType<typeof readSettings>;

// isShort: no bench was named, so all together must end in about ten minutes.
export function readSettings(isShort: boolean, env: Record<string, string | undefined> = process.env) {
  const read = (name: string): string | null => env[name]?.trim() || null;
  const count = (name: string, usual: number): number => toCount(name, read(name) ?? String(usual));
  const [scaleSmall, scaleLarge, ...more] = (read("BENCH_SCALE") ?? "100000,10000000").split(",");
  if (more.length > 0) throw new Error("BENCH_SCALEis two numbers: 100000,10000000");
  return {
    databaseUrl: read("BENCH_DATABASE_URL"),
    resultsFile: read("BENCH_RESULTS") ?? path.join(import.meta.dirname, "results.json"),
    seconds: count("BENCH_SECONDS", 5),
    rounds: count("BENCH_ROUNDS", 5),
    coupons: count("BENCH_COUPONS", 300_000),
    isWorkerBeside: read("BENCH_WORKER") === "on",
    mintCount: count("BENCH_MINT", isShort ? 100_000 : 1_000_000),
    expireCount: count("BENCH_EXPIRE", isShort ? 20_000 : 200_000),
    eventCount: count("BENCH_EVENTS", isShort ? 20_000 : 100_000),
    entryCount: count("BENCH_ENTRIES", isShort ? 100_000 : 1_000_000),
    scaleSmall: toCount("BENCH_SCALE", scaleSmall ?? ""),
    scaleLarge: toCount("BENCH_SCALE", scaleLarge ?? ""),
    redemptionCount: count("BENCH_REDEMPTIONS", 1_000_000),
    quietSeconds: count("BENCH_QUIET_SECONDS", 60),
    loadSeconds: count("BENCH_LOAD_SECONDS", 600),
  };
}

function toCount(name: string, text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Error(`${name} must be a number from 1, not "${text}"`);
  return Number(text);
}
