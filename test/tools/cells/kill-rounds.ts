// Rounds of kill -9 of one of two cells under load. The load and the checker are those of npm run chaos: each cell has
// a tenant, clients and a history of its own, and all of them share a router and one serve.
import { randomBytes } from "node:crypto";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type { Address } from "../../../src/config/database-address.ts";
import { migrate } from "../../../src/migration/migrate.ts";
import { createClient } from "../../support/client.ts";
import { startLoggedProgram, type ProgramName } from "../../support/logged-program.ts";
import { environmentOf } from "../../support/program.ts";
import { startReceiver, type Receiver } from "../../support/receiver.ts";
import { addCells } from "../../support/route.ts";
import { findRouterBinaries, howToInstall, startRouterServer } from "../../support/router.ts";
import { scenario, type Scenario, type Teardown } from "../../support/scenario.ts";
import { secretOf, tenants as usualTenants } from "../../support/tenants.ts";
import { waitAtMost, waitUntil } from "../../support/wait-until.ts";
import { hasDeliveredAll } from "../chaos/chaos.ts";
import { check } from "../chaos/checker.ts";
import { isFinal, servedAfter, startClients, type Attempt, type Clients, type History } from "../chaos/clients.ts";
import { extraDocument, makeCoupons, readFeeds } from "../chaos/environment.ts";
import type { Subject } from "../chaos/operations.ts";
import { createRandom, generateWorkload, type Variant } from "../chaos/workload.ts";
import { startLone, type Lone } from "../failover/cluster.ts";

export type RoundOptions = { killed: 1 | 2; perSecond: number };
/** quietMs, deadMs: of each answer to tenants of the cell that lives, before the kill and while the other is dead. */
export type Round = {
  kills: number;
  deadForMs: number;
  quietMs: number[];
  deadMs: number[];
  /** Of the cell that lives, from the kill on: those that are neither ok nor a refusal. */
  errors: number;
  /** Of the killed cell, while it is dead. */
  unavailable: number;
  slowestMs: number;
  /** From when the killed cell takes connections again to the first answer that no 503 follows; of the slowest kill. */
  servedMs: number;
  calls: number;
  failures: string[];
};

type Cell = {
  number: number;
  variant: Variant;
  server: Lone;
  world: Scenario;
  coupons: Record<Variant, Subject[]>;
  feeds: Record<Variant, string[]>;
  /** The subscriber of both tenants. */
  receiver: Receiver;
  history: History;
  clients: Clients;
  /** Belongs to the cell, and is not used before the kill. */
  newKey: string;
};
type Run = { url: string; cells: [Cell, Cell]; ended: string[] };

const couponCount = 2_000;
// What a client of npm run chaos sends in a second.
const perClient = 5;
const warmUpMs = 4_000;
// Short phases alternate, because other programs disturb a p99. One of less than a thousand answers means little.
const killCount = 3;
const phaseMs = 4_000;
const fewestAnswers = 400;
const afterMs = 4_000;
const patienceMs = 20_000;
const answerWithinMs = 4_000;
const servedWithinMs = 5_000;
// As in npm run chaos, whose README says why.
const toleranceMs = 250;
const settleWithinMs = 60_000;
const workWithinMs = 90_000;

export async function runRound(t: Teardown, folder: string, { killed, perSecond }: RoundOptions): Promise<Round> {
  const run = await start(t, folder, perSecond);
  const [dead, living] = killed === 1 ? run.cells : ([...run.cells].reverse() as [Cell, Cell]);
  const loop = monitorEventLoopDelay({ resolution: 10 });
  await sleep(warmUpMs);
  loop.enable();
  const failures: string[] = [];
  const kills: Kill[] = [];
  while (kills.length < killCount) kills.push(await killOnce(run.url, dead, living, failures));
  await Promise.all(run.cells.map(({ clients }) => clients.stop()));
  loop.disable();

  const all = run.cells.flatMap(({ history }) => history.attempts);
  const [calls, limitMs] = [all.length, answerWithinMs + toleranceMs + loop.max / 1e6];
  const [own, others] = [dead.history.attempts.slice(), living.history.attempts.slice()];
  const [{ killedAt: since }] = kills as [Kill];
  const whileDead = kills.flatMap(({ deadFrom, deadTo }) => within(own, deadFrom, deadTo));
  const errors = others.filter((attempt) => attempt.endedAt >= since && !isFinal(attempt));
  const servedMs = Math.max(...kills.map((each) => each.servedMs));
  const wrong: Record<string, Attempt[]> = {
    "errors for tenants of the other cell": errors,
    "answers of the dead cell were not 503": whileDead.filter(({ status }) => status !== 503),
    "answers were neither final nor 503": own.filter((attempt) => !isFinal(attempt) && attempt.status !== 503),
    "answers were late": all.filter((attempt) => durationOf(attempt) > limitMs),
  };
  for (const [what, [first, ...more]] of Object.entries(wrong))
    if (first !== undefined) failures.push(`${1 + more.length} ${what}, for example ${describe(first)}`);
  if (servedMs > servedWithinMs) failures.push("not served within 5 s after its return");
  failures.push(...run.ended.map((name) => `${name} ended`));
  for (const cell of run.cells) failures.push(...(await findProblems(cell)));
  return {
    kills: kills.length,
    deadForMs: kills.reduce((sum, { killedAt, backAt }) => sum + backAt - killedAt, 0),
    quietMs: kills.flatMap(({ quietFrom, killedAt }) => within(others, quietFrom, killedAt).map(durationOf)),
    deadMs: kills.flatMap(({ deadFrom, deadTo }) => within(others, deadFrom, deadTo).map(durationOf)),
    errors: errors.length,
    unavailable: whileDead.filter(({ status }) => status === 503).length,
    slowestMs: Math.max(...own.filter(({ endedAt }) => endedAt >= since).map(durationOf)),
    servedMs,
    calls,
    failures,
  };
}

// Moments on the clock of performance.now(), in this order.
type Kill = Record<"quietFrom" | "killedAt" | "deadFrom" | "deadTo" | "backAt" | "servedMs", number>;

async function killOnce(url: string, dead: Cell, living: Cell, failures: string[]): Promise<Kill> {
  const quietFrom = performance.now();
  await untilAnswered(living, quietFrom);
  const killedAt = performance.now();
  await dead.server.kill();
  const deadFrom = performance.now();
  failures.push(...(await tryNewKeys(url, dead, living)));
  await untilAnswered(living, deadFrom);
  failures.push(...(await tryNewKeys(url, dead, living)));
  const deadTo = performance.now();
  await dead.server.start();
  const backAt = performance.now();
  await sleep(afterMs);
  const servedMs = await waitAtMost(patienceMs, () => servedAfter(dead.history, backAt));
  return { quietFrom, killedAt, deadFrom, deadTo, backAt, servedMs: servedMs ?? Infinity };
}

const durationOf = ({ sentAt, endedAt }: Attempt): number => endedAt - sentAt;
const within = (attempts: Attempt[], from: number, to: number): Attempt[] =>
  attempts.filter(({ sentAt, endedAt }) => sentAt >= from && endedAt < to);
const describe = (attempt: Attempt): string =>
  `${attempt.status} ${attempt.code} ${attempt.text} after ${Math.round(durationOf(attempt))} ms`;

async function untilAnswered({ history }: Cell, since: number): Promise<void> {
  await sleep(phaseMs);
  const enough = () => within(history.attempts, since, Infinity).length >= fewestAnswers;
  await waitUntil("answers of the cell that lives", enough, { everyMs: 100 });
}

// Access keys that serve has not seen before the kill. That of the dead cell is not known to be wrong, so never 401.
async function tryNewKeys(url: string, dead: Cell, living: Cell): Promise<string[]> {
  const failures: string[] = [];
  for (const [cell, expected] of [
    [living, 200],
    [dead, 503],
  ] as const) {
    const accessKey = cell.newKey;
    const sentAt = performance.now();
    const { status, text } = await createClient({ url, accessKey, secret: secretOf(accessKey) }).get("/v1/batches");
    const ms = Math.round(performance.now() - sentAt);
    if (status !== expected || ms > answerWithinMs)
      failures.push(`a call of ${accessKey} got ${status} ${text} after ${ms} ms, not ${expected}`);
  }
  return failures;
}

// What npm run chaos checks at the end, in one cell.
async function findProblems({ number, server, world, clients, history, ...cell }: Cell): Promise<string[]> {
  const { address, owner } = world;
  const failures: string[] = [];
  const unsettled = await clients.settle(settleWithinMs);
  if (unsettled > 0) failures.push(`cell ${number}: ${unsettled} calls could not be settled`);
  const isDelivered = await waitAtMost(workWithinMs, () => hasDeliveredAll({ owner, feeds: cell.feeds }));
  if (isDelivered === null) failures.push(`cell ${number}: feeds and webhooks are not complete`);
  const received = new Set(cell.receiver.received.map(({ id }) => id));
  const evidence = { ...cell, address, history, received, serverLog: server.readLog(), print: () => {} };
  for (const [kind, found] of Object.entries(await check(evidence)))
    if (found.length > 0)
      failures.push(`cell ${number}: ${kind}: ${found.length}, for example\n${found.slice(0, 3).join("\n")}`);
  return failures;
}

async function start(t: Teardown, folder: string, perSecond: number): Promise<Run> {
  const binaries = findRouterBinaries();
  if (binaries === undefined) throw new Error(howToInstall);
  const router = await startRouterServer(binaries);
  t.teardown(router.stop);
  const masterKeyText = randomBytes(32).toString("base64");
  const [tenantA, strangers, tenantB] = usualTenants;
  const parts = [
    { number: 1, variant: "A", usual: [tenantA, strangers], newKey: "ak_a_stranger" },
    { number: 2, variant: "B", usual: [tenantB], newKey: "ak_other" },
  ] as const;
  const receiver = await startReceiver(t);
  const made = [];
  for (const { number, variant, usual, newKey } of parts) {
    const server = await startLone(t, folder, `cell-${number}`, { "coupon.cell": String(number) });
    await migrate(server.address);
    const world = await scenario(t, { on: { address: server.address, masterKeyText }, file: { tenants: usual } });
    await world.apply(extraDocument([variant], receiver.url));
    const coupons = { A: [], B: [], [variant]: await makeCoupons(world, variant, couponCount) };
    made.push({ number, variant, server, world, coupons, newKey });
  }
  await addCells(
    router.address,
    made.map(({ server }) => server.address),
  );

  const ended: string[] = [];
  async function startProgram(name: ProgramName, address: Address): Promise<string> {
    const program = await startLoggedProgram(name, folder, environmentOf({ address, masterKeyText }));
    let isStopping = false;
    void program.ended.then(() => isStopping || ended.push(name));
    t.teardown(() => ((isStopping = true), program.stop()));
    return program.url;
  }
  for (const { server } of made) await startProgram("work", server.address);
  const url = await startProgram("serve", router.address);
  const feeds = readFeeds(t, url);
  const cells = made.map((cell): Cell => {
    const history: History = { entries: new Map(), attempts: [], startedAt: performance.timeOrigin };
    const workload = generateWorkload(createRandom(Math.floor(Math.random() * 1_000_000)), cell.coupons);
    const clients = startClients(url, workload, Math.ceil(perSecond / perClient), history);
    const own = { A: [], B: [], [cell.variant]: feeds[cell.variant] };
    return { ...cell, feeds: own, receiver, history, clients };
  });
  return { url, cells: cells as [Cell, Cell], ended };
}
