// The faults. Each function causes a fault, keeps it for a while, repairs it, and returns from when on and within which
// time calls must be served again. Random choices come from the cycle's generator, so the same seed makes the same
// choices.
import { rmSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openSession } from "../../src/database/connect.ts";
import type { Session } from "../../src/database/types.ts";
import type { History } from "./history.ts";
import { listBackends, readWritten, untilDatabaseAnswers } from "./probes.ts";
import { canMount, fillDisk } from "../support/small-disk.ts";
import { createRandom, type Random } from "./random.ts";
import type { Environment } from "./environment.ts";

export type FaultContext = {
  environment: Environment;
  random: Random;
  history: History;
  // Excludes a time from the latency check: a stopped process cannot answer.
  noteFrozen(from: number, to: number): void;
  // Resolves when the worker is busy. The returned function begins to measure when it resumes its work.
  watchWorker(): Promise<(since: number) => void>;
  fail(what: string): void;
};
// since: a time on the clock of performance.now().
export type Recovery = { since: number; withinMs: number };
export type Fault = (context: FaultContext) => Promise<Recovery>;

const slow = new Set(["kill worker", "lose connections", "stall a minute"]);
const apiBackWithinMs = 2_000;
const databaseBackWithinMs = 5_000;

const hold = (random: Random): Promise<void> => sleep(random.between(1_500, 4_000));
const apiRecovery = (): Recovery => ({ since: performance.now(), withinMs: apiBackWithinMs });
const databaseRecovery = (): Recovery => ({ since: performance.now(), withinMs: databaseBackWithinMs });

export const faults: Record<string, Fault> = {
  async "kill api"({ environment }) {
    const recovery = apiRecovery();
    environment.api.signal("SIGKILL");
    return recovery;
  },

  async "stop api"({ environment, random, noteFrozen }) {
    const from = performance.now();
    environment.api.signal("SIGSTOP");
    await hold(random);
    environment.api.signal("SIGCONT");
    noteFrozen(from, performance.now());
    return apiRecovery();
  },

  async "kill worker"({ environment, watchWorker }) {
    const measure = await watchWorker();
    const recovery = apiRecovery();
    environment.worker.signal("SIGKILL");
    measure(recovery.since);
    return recovery;
  },

  async "stop worker"({ environment, random, watchWorker }) {
    const measure = await watchWorker();
    environment.worker.signal("SIGSTOP");
    await hold(random);
    environment.worker.signal("SIGCONT");
    const recovery = apiRecovery();
    measure(recovery.since);
    return recovery;
  },

  async "kill postmaster"({ environment: { server }, random }) {
    await server.kill();
    await hold(random);
    await server.start();
    return databaseRecovery();
  },

  // Open connections keep working; new connections get no answer.
  async "stop postmaster"({ environment, random }) {
    const pids = random.shuffle(await listBackends(environment, "coupon serve")).slice(0, 8);
    process.kill(environment.server.pid(), "SIGSTOP");
    for (const pid of pids) process.kill(pid, "SIGTERM");
    await hold(random);
    process.kill(environment.server.pid(), "SIGCONT");
    return databaseRecovery();
  },

  // The postmaster then ends all other backends, and recovers.
  async "kill backend"({ environment, random }) {
    process.kill(random.pick(await listBackends(environment, "coupon serve")), "SIGKILL");
    await untilDatabaseAnswers(environment);
    return databaseRecovery();
  },

  async "stop backend"({ environment, random }) {
    const pid = random.pick(await listBackends(environment, "coupon serve"));
    process.kill(pid, "SIGSTOP");
    await hold(random);
    process.kill(pid, "SIGCONT");
    return databaseRecovery();
  },

  async "stop database"({ environment: { server }, random }) {
    await server.stop("immediate");
    await hold(random);
    await server.start();
    return databaseRecovery();
  },

  async "cut answers"({ environment: { clientProxy }, random }) {
    clientProxy.set({ cutsAnswer: () => random.next() < 0.3 });
    await hold(random);
    clientProxy.set({});
    return apiRecovery();
  },

  async delay({ environment: { databaseProxy }, random }) {
    databaseProxy.set({ delay: () => random.between(20, 250) });
    await hold(random);
    databaseProxy.set({});
    return databaseRecovery();
  },

  stall: ({ environment, random }) => stall(environment, random.between(3_000, 10_000)),

  "stall a minute": ({ environment }) => stall(environment, 60_000),

  // As when a firewall forgets its connections: they go silent, and new ones work.
  async "lose connections"({ environment: { databaseProxy }, watchWorker }) {
    const measure = await watchWorker();
    databaseProxy.loseAll();
    const recovery = databaseRecovery();
    measure(recovery.since);
    return recovery;
  },

  async "close connects"({ environment: { databaseProxy }, random }) {
    databaseProxy.set({ cutsConnect: () => random.next() < 0.9 });
    databaseProxy.cutAll();
    await hold(random);
    databaseProxy.set({});
    return databaseRecovery();
  },

  async "terminate backends"({ environment, random }) {
    const endAt = performance.now() + random.between(1_500, 4_000);
    while (performance.now() < endAt) {
      const pids = await listBackends(environment, "coupon%");
      for (const pid of random.shuffle(pids).slice(0, 3))
        await environment.owner.rows("select pg_terminate_backend($1)", [pid]);
      await sleep(100);
    }
    return databaseRecovery();
  },

  // Another client takes every connection of the server, including those of the service.
  async "exhaust connections"({ environment, random }) {
    const taken: Session[] = [];
    const endAt = performance.now() + random.between(2_500, 5_000);
    await environment.owner.rows(
      "select pg_terminate_backend(pid) from pg_stat_activity where usename in ('serve', 'work')",
    );
    while (performance.now() < endAt) {
      const session = openSession(environment.address, { name: "another client" });
      const isMine = await session.rows("select 1").then(
        () => true,
        () => false,
      );
      if (isMine) taken.push(session);
      else await Promise.all([session.end(), sleep(20)]);
    }
    await Promise.all(taken.map((session) => session.end()));
    return databaseRecovery();
  },

  async "fill disk"({ environment: { server }, random }) {
    const file = path.join(server.smallDisk!, "filler");
    fillDisk(file);
    await hold(random);
    rmSync(file);
    return databaseRecovery();
  },

  // The clock is six minutes off, so every signature is outside its window and nothing may be written.
  async "shift clock"({ environment, history, random, fail }) {
    await environment.api.restart(["--import", path.join(import.meta.dirname, "clock.ts")]);
    const from = performance.now();
    const before = await readWritten(environment);
    await hold(random);
    const after = await readWritten(environment);
    const to = performance.now();
    const made = history.attempts.filter(({ sentAt, endedAt }) => sentAt > from && endedAt < to);
    const refused = made.filter(({ code }) => code === "TIMESTAMP_OUT_OF_WINDOW");
    if (refused.length === 0) fail("no call was refused while the clock was off");
    // A busy machine may bring a 503, or no answer. That these wrote nothing is compared below.
    const wrong = made.filter(
      ({ status, code }) => status !== null && status < 500 && code !== "TIMESTAMP_OUT_OF_WINDOW",
    );
    if (wrong.length > 0)
      fail(`${wrong.length} calls were answered ${wrong[0]!.status} ${wrong[0]!.code} while the clock was off`);
    if (before !== after) fail("something was written while the clock was off");
    await environment.api.restart();
    return apiRecovery();
  },
};

// Every fault once, then repeatedly all except the slow ones. The seed determines the order.
export function chooseFaults(
  seed: number,
  cycles: number,
  only: string | null,
): { names: string[]; skipped: string[] } {
  const skipped = canMount() ? [] : ["fill disk: skipped, because only root may mount a small disk"];
  const names = Object.keys(faults).filter((name) => skipped.length === 0 || name !== "fill disk");
  const random = createRandom(seed);
  const chosen: string[] = [];
  while (chosen.length < cycles) {
    const next = only === null ? names.filter((name) => chosen.length === 0 || !slow.has(name)) : [only];
    chosen.push(...random.shuffle(next));
  }
  return { names: chosen.slice(0, cycles), skipped };
}

async function stall({ databaseProxy }: Environment, forMs: number): Promise<Recovery> {
  databaseProxy.set({ isStalled: true });
  await sleep(forMs);
  databaseProxy.set({});
  return databaseRecovery();
}
