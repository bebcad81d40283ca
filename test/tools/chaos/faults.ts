// The faults. Each function causes a fault, keeps it for a while and repairs it; from then on calls must be served
// again. Random choices come from the cycle's generator, so the same seed makes the same choices.
import { setTimeout as sleep } from "node:timers/promises";
import { openSession } from "../../../src/database/connect.ts";
import type { Session } from "../../../src/database/types.ts";
import { waitUntil } from "../../support/wait-until.ts";
import type { History } from "./clients.ts";
import type { Environment } from "./environment.ts";
import { createRandom, type Random } from "./workload.ts";

export type Context = { environment: Environment; random: Random; history: History };
type Fault = (context: Context) => Promise<void>;

const lostAnswers = 20;
const hold = ({ random }: Context): Promise<void> => sleep(random.between(1_500, 4_000));

// Calls must be served again within 2 s.
const apiFaults: Record<string, Fault> = {
  "kill api": async ({ environment }) => environment.api.signal("SIGKILL"),
  "kill worker": async ({ environment }) => environment.worker.signal("SIGKILL"),
  "stop api": (context) => freeze(context, context.environment.api.pid()),
  "stop worker": (context) => freeze(context, context.environment.worker.pid()),

  async "cut answers"({ environment: { clientProxy }, random, history }) {
    const countLost = () => history.attempts.filter(({ code }) => code === "connection lost").length;
    const before = countLost();
    clientProxy.set({ cutsAnswer: () => random.next() < 0.3 });
    await waitUntil("lost answers", () => countLost() >= before + lostAnswers);
    clientProxy.set({});
  },
};

// Calls must be served again within 5 s.
const databaseFaults: Record<string, Fault> = {
  async "kill postmaster"({ environment }) {
    process.kill(environment.postmasterPid(), "SIGKILL");
    await untilDatabaseAnswers(environment);
  },

  // The postmaster then ends all other backends and itself.
  async "kill backend"({ environment, random }) {
    process.kill(random.pick(await listBackends(environment, "coupon serve")), "SIGKILL");
    await untilDatabaseAnswers(environment);
  },

  async "stop backend"(context) {
    await freeze(context, context.random.pick(await listBackends(context.environment, "coupon serve")));
  },

  // Open connections keep working; new connections get no answer.
  async "stop postmaster"(context) {
    const { environment, random } = context;
    const pids = random.shuffle(await listBackends(environment, "coupon serve")).slice(0, 8);
    const frozen = freeze(context, environment.postmasterPid());
    for (const pid of pids) process.kill(pid, "SIGTERM");
    await frozen;
  },

  async delay(context) {
    const { databaseProxy } = context.environment;
    databaseProxy.set({ delay: () => context.random.between(20, 250) });
    await hold(context);
    databaseProxy.set({});
  },

  stall: ({ environment, random }) => stall(environment, random.between(3_000, 10_000)),

  "stall a minute": ({ environment }) => stall(environment, 60_000),

  // As when a firewall forgets its connections: they go silent, and new ones work.
  "lose connections": async ({ environment }) => environment.databaseProxy.loseAll(),

  async "close connects"(context) {
    const { databaseProxy } = context.environment;
    databaseProxy.set({ cutsConnect: () => context.random.next() < 0.9 });
    databaseProxy.cutAll();
    await hold(context);
    databaseProxy.set({});
  },

  async "terminate backends"({ environment, random }) {
    const endAt = performance.now() + random.between(1_500, 4_000);
    while (performance.now() < endAt) {
      const pids = await listBackends(environment, "coupon%");
      for (const pid of random.shuffle(pids).slice(0, 3))
        await environment.owner.rows("select pg_terminate_backend($1)", [pid]);
      await sleep(100);
    }
  },

  // Another client takes every connection of the server, including those of the service.
  async "exhaust connections"({ environment, random }) {
    const taken: Session[] = [];
    const endAt = performance.now() + random.between(2_500, 5_000);
    for (const pid of await listBackends(environment, "%"))
      await environment.owner.rows("select pg_terminate_backend($1)", [pid]);
    while (performance.now() < endAt) {
      const session = openSession(environment.address, { name: "another client" });
      if (await canRead(session)) taken.push(session);
      else await Promise.all([session.end(), sleep(20)]);
    }
    await Promise.all(taken.map((session) => session.end()));
  },
};

export const faults: Record<string, Fault> = { ...apiFaults, ...databaseFaults };
export const withinMsOf = (fault: string): number => (fault in apiFaults ? 2_000 : 5_000);
// After these the worker must resume its work.
export const workerFaults = ["kill worker", "stop worker", "lose connections"];

// Every fault once, then repeatedly all except the slow ones. The seed determines the order.
export function chooseFaults(seed: number, cycles: number, only: string | null): string[] {
  const slow = [...workerFaults, "stall a minute"];
  const random = createRandom(seed);
  const chosen: string[] = [];
  while (chosen.length < cycles) {
    const all = Object.keys(faults).filter((name) => chosen.length === 0 || !slow.includes(name));
    chosen.push(...random.shuffle(only === null ? all : [only]));
  }
  return chosen.slice(0, cycles);
}

async function freeze(context: Context, pid: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  await hold(context);
  process.kill(pid, "SIGCONT");
}

async function stall({ databaseProxy }: Environment, forMs: number): Promise<void> {
  databaseProxy.set({ isStalled: true });
  await sleep(forMs);
  databaseProxy.set({});
}

async function untilDatabaseAnswers({ address }: Environment): Promise<void> {
  await waitUntil("the database to answer", async () => {
    const session = openSession(address, { name: "coupon chaos" });
    const isBack = await canRead(session);
    await session.end();
    return isBack;
  });
}

const canRead = (session: Session): Promise<boolean> =>
  session.rows("select 1").then(
    () => true,
    () => false,
  );

// The backend processes of our programs, by application name.
async function listBackends({ owner }: Environment, name: string): Promise<number[]> {
  const rows = await owner.rows<{ pid: number }>(
    `select pid from pg_stat_activity
     where application_name like $1 and usename in ('serve', 'work') order by pid`,
    [name],
  );
  return rows.map(({ pid }) => pid);
}
