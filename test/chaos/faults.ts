// The faults, one entry each: does it, keeps it up for a while, undoes it, and says from when on and within which time calls
// have to be served again. What is drawn comes from the random of its cycle, so the same seed does the same.
import { rmSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openSession } from "../../src/database/connect.ts";
import type { Session } from "../../src/database/types.ts";
import type { History } from "./history.ts";
import { backends, fill, readWritten, untilDatabaseIsBack } from "./probes.ts";
import { canMount } from "./postgres.ts";
import { createRandom, type Random } from "./random.ts";
import type { Stage } from "./environment.ts";

export type Scene = {
  stage: Stage;
  random: Random;
  history: History;
  // Nobody can expect an answer of a process that is stopped.
  noteFrozen(from: number, to: number): void;
  // Comes back when the worker has its hands full; what is called then waits until it works again.
  watchWorker(): Promise<(since: number) => Promise<void>>;
  fail(what: string): void;
};
// since: on the clock of performance.now().
export type Healed = { since: number; withinMs: number };
export type Fault = (scene: Scene) => Promise<Healed>;

const slow = new Set(["kill worker", "lose connections", "stall a minute"]);
const apiBackWithinMs = 2_000;
const databaseBackWithinMs = 5_000;

const hold = (random: Random): Promise<void> => sleep(random.between(1_500, 4_000));
const healedApi = (): Healed => ({ since: performance.now(), withinMs: apiBackWithinMs });
const healedDatabase = (): Healed => ({ since: performance.now(), withinMs: databaseBackWithinMs });

export const faults: Record<string, Fault> = {
  async "kill api"({ stage }) {
    const healed = healedApi();
    stage.api.signal("SIGKILL");
    return healed;
  },

  async "stop api"({ stage, random, noteFrozen }) {
    const from = performance.now();
    stage.api.signal("SIGSTOP");
    await hold(random);
    stage.api.signal("SIGCONT");
    noteFrozen(from, performance.now());
    return healedApi();
  },

  async "kill worker"({ stage, watchWorker }) {
    const untilResumed = await watchWorker();
    const healed = healedApi();
    stage.worker.signal("SIGKILL");
    await untilResumed(healed.since);
    return healed;
  },

  async "stop worker"({ stage, random, watchWorker }) {
    const untilResumed = await watchWorker();
    stage.worker.signal("SIGSTOP");
    await hold(random);
    stage.worker.signal("SIGCONT");
    const healed = healedApi();
    await untilResumed(healed.since);
    return healed;
  },

  async "kill postmaster"({ stage: { postgres }, random }) {
    await postgres.kill();
    await hold(random);
    await postgres.start();
    return healedDatabase();
  },

  // Whoever is connected works on; whoever connects hears nothing.
  async "stop postmaster"({ stage, random }) {
    const pids = random.shuffle(await backends(stage, "coupon serve")).slice(0, 8);
    process.kill(stage.postgres.pid(), "SIGSTOP");
    for (const pid of pids) process.kill(pid, "SIGTERM");
    await hold(random);
    process.kill(stage.postgres.pid(), "SIGCONT");
    return healedDatabase();
  },

  // The postmaster then ends all the others, and recovers.
  async "kill backend"({ stage, random }) {
    process.kill(random.pick(await backends(stage, "coupon serve")), "SIGKILL");
    await untilDatabaseIsBack(stage);
    return healedDatabase();
  },

  async "stop backend"({ stage, random }) {
    const pid = random.pick(await backends(stage, "coupon serve"));
    process.kill(pid, "SIGSTOP");
    await hold(random);
    process.kill(pid, "SIGCONT");
    return healedDatabase();
  },

  async "stop database"({ stage: { postgres }, random }) {
    await postgres.stop("immediate");
    await hold(random);
    await postgres.start();
    return healedDatabase();
  },

  async "cut answers"({ stage: { clientProxy }, random }) {
    clientProxy.set({ cutsAnswer: () => random.next() < 0.3 });
    await hold(random);
    clientProxy.set({});
    return healedApi();
  },

  async delay({ stage: { databaseProxy }, random }) {
    databaseProxy.set({ delay: () => random.between(20, 250) });
    await hold(random);
    databaseProxy.set({});
    return healedDatabase();
  },

  stall: ({ stage, random }) => stall(stage, random.between(3_000, 10_000)),

  "stall a minute": ({ stage }) => stall(stage, 60_000),

  // As when a firewall has forgotten its connections: nothing comes on them any more, new ones work.
  async "lose connections"({ stage: { databaseProxy }, watchWorker }) {
    const untilResumed = await watchWorker();
    databaseProxy.loseAll();
    const healed = healedDatabase();
    await untilResumed(healed.since);
    return healed;
  },

  async "close connects"({ stage: { databaseProxy }, random }) {
    databaseProxy.set({ cutsConnect: () => random.next() < 0.9 });
    databaseProxy.cutAll();
    await hold(random);
    databaseProxy.set({});
    return healedDatabase();
  },

  async "terminate backends"({ stage, random }) {
    const endAt = performance.now() + random.between(1_500, 4_000);
    while (performance.now() < endAt) {
      const pids = await backends(stage, "coupon%");
      for (const pid of random.shuffle(pids).slice(0, 3))
        await stage.owner.rows("select pg_terminate_backend($1)", [pid]);
      await sleep(100);
    }
    return healedDatabase();
  },

  // Somebody else takes every connection there is, those of the service first.
  async "exhaust connections"({ stage, random }) {
    const taken: Session[] = [];
    const endAt = performance.now() + random.between(2_500, 5_000);
    await stage.owner.rows("select pg_terminate_backend(pid) from pg_stat_activity where usename in ('serve', 'work')");
    while (performance.now() < endAt) {
      const session = openSession(stage.address, { name: "somebody else" });
      const isMine = await session.rows("select 1").then(
        () => true,
        () => false,
      );
      if (isMine) taken.push(session);
      else await Promise.all([session.end(), sleep(20)]);
    }
    await Promise.all(taken.map((session) => session.end()));
    return healedDatabase();
  },

  async "fill disk"({ stage: { postgres }, random }) {
    const file = path.join(postgres.smallDisk!, "filler");
    fill(file);
    await hold(random);
    rmSync(file);
    return healedDatabase();
  },

  // Six minutes: no signature is in its window then, and nothing may be written.
  async "shift clock"({ stage, history, random, fail }) {
    await stage.api.restart(["--import", path.join(import.meta.dirname, "clock.ts")]);
    const from = performance.now();
    const before = await readWritten(stage);
    await hold(random);
    const after = await readWritten(stage);
    const to = performance.now();
    const wrong = history.attempts.filter(
      ({ sentAt, endedAt, code }) => sentAt > from && endedAt < to && code !== "TIMESTAMP_OUT_OF_WINDOW",
    );
    if (wrong.length > 0)
      fail(`${wrong.length} calls were answered ${wrong[0]!.status} ${wrong[0]!.code} by a clock that is off`);
    if (before !== after) fail("a clock that is off wrote something");
    await stage.api.restart();
    return healedApi();
  },
};

// Each once, then any but those that take a minute: in an order that follows from the seed.
export function chooseFaults(
  seed: number,
  cycles: number,
  only: string | null,
): { names: string[]; skipped: string[] } {
  const skipped = canMount() ? [] : ["fill disk: skipped, as nobody but root may mount a small disk"];
  const names = Object.keys(faults).filter((name) => skipped.length === 0 || name !== "fill disk");
  const random = createRandom(seed);
  const rounds: string[] = [];
  while (rounds.length < cycles) {
    const next = only === null ? names.filter((name) => rounds.length === 0 || !slow.has(name)) : [only];
    rounds.push(...random.shuffle(next));
  }
  return { names: rounds.slice(0, cycles), skipped };
}

async function stall({ databaseProxy }: Stage, forMs: number): Promise<Healed> {
  databaseProxy.set({ isStalled: true });
  await sleep(forMs);
  databaseProxy.set({});
  return healedDatabase();
}
