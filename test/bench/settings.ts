// The settings of a run: names on the command line, sizes in the environment.
import path from "node:path";

export const settingTexts = {
  BENCH_DATABASE_URL: "an existing server, with a superuser's login (an embedded server for this run)",
  BENCH_SECONDS: "length of a round (5)",
  BENCH_ROUNDS: "rounds of each compared program (5; 3 without NAME)",
  BENCH_CONNECTIONS: "connections of the calls over HTTP, except where a name says how many (64)",
  BENCH_COUPONS: "coupons minted before the rounds (300000)",
  BENCH_COUNTED: "instructions: groups, calls and steps that are counted (20)",
  BENCH_KINDS: "instructions: what is counted (group,alone,event)",
  BENCH_MINT: "mint: coupons of the batches (10000,100000)",
  BENCH_EXPIRE: "expire: coupons that are due at once (200000; 20000 without NAME)",
  BENCH_EVENTS: "feed and webhooks: events (100000; 20000 without NAME)",
  BENCH_ENTRIES: "statement: ledger entries (1000000; 100000 without NAME)",
  BENCH_SCALE: "scale: coupons of the small and the large database (100000,10000000)",
  BENCH_REDEMPTIONS: "scale: redemptions in the large database (1000000)",
  BENCH_REPORT_COUPONS: "reports: coupons; a fifth of them are redeemed (1000000)",
  BENCH_RECOVERY: "recovery: values of checkpoint_timeout to compare, in seconds (300,1800)",
  BENCH_QUIET_SECONDS: "footprint: seconds without load (60)",
  BENCH_LOAD_SECONDS: "footprint and recovery: seconds under load (600)",
  BENCH_RESULTS: "file of the results (test/bench/results.json)",
};

export type Settings = ReturnType<typeof readSettings>;

// isShort: no benchmark was named, so all of them together must end in about ten minutes.
export function readSettings(isShort: boolean, env: Record<string, string | undefined> = process.env) {
  const read = (name: string): string | null => env[name]?.trim() || null;
  const count = (name: string, usual: number): number => toCount(name, read(name) ?? String(usual));
  const counts = (name: string, usual: string): number[] =>
    (read(name) ?? usual).split(",").map((text) => toCount(name, text));
  const [scaleSmall, scaleLarge, ...more] = counts("BENCH_SCALE", "100000,10000000");
  if (scaleLarge === undefined || more.length > 0)
    throw new Error("BENCH_SCALE must be two numbers such as 100000,10000000");
  const kinds = (read("BENCH_KINDS") ?? "group,alone,event").split(",");
  if (!kinds.every((kind) => ["group", "alone", "event"].includes(kind)))
    throw new Error("BENCH_KINDS must be some of group,alone,event");
  return {
    databaseUrl: read("BENCH_DATABASE_URL"),
    resultsFile: read("BENCH_RESULTS") ?? path.join(import.meta.dirname, "results.json"),
    seconds: count("BENCH_SECONDS", 5),
    rounds: count("BENCH_ROUNDS", isShort ? 3 : 5),
    connections: readConnections(env),
    coupons: count("BENCH_COUPONS", 300_000),
    countedCount: count("BENCH_COUNTED", 20),
    kinds,
    mintCounts: counts("BENCH_MINT", "10000,100000"),
    expireCount: count("BENCH_EXPIRE", isShort ? 20_000 : 200_000),
    eventCount: count("BENCH_EVENTS", isShort ? 20_000 : 100_000),
    entryCount: count("BENCH_ENTRIES", isShort ? 100_000 : 1_000_000),
    scaleSmall: scaleSmall!,
    scaleLarge,
    redemptionCount: count("BENCH_REDEMPTIONS", 1_000_000),
    reportCoupons: count("BENCH_REPORT_COUPONS", 1_000_000),
    checkpointTimeouts: counts("BENCH_RECOVERY", "300,1800"),
    quietSeconds: count("BENCH_QUIET_SECONDS", 60),
    loadSeconds: count("BENCH_LOAD_SECONDS", 600),
  };
}

export const readConnections = (env: Record<string, string | undefined> = process.env): number =>
  toCount("BENCH_CONNECTIONS", env["BENCH_CONNECTIONS"]?.trim() || "64");

function toCount(name: string, text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Error(`${name} must be a positive number, not "${text}"`);
  return Number(text);
}
