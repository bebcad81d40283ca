// One run: constant load from several clients, one fault per cycle, and every open call settled after each cycle. The
// checker runs at the end.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { waitAtMost, waitUntil } from "../../support/wait-until.ts";
import { check } from "./checker.ts";
import { servedAfter, startClients, verdictOf, type Clients, type History } from "./clients.ts";
import type { Environment } from "./environment.ts";
import { faults, withinMsOf, workerFaults } from "./faults.ts";
import { createRandom, generateWorkload } from "./workload.ts";

// slack: a factor for every time limit, for machines that also do other work.
export type Options = { seed: number; clients: number; names: string[]; slack: number; print(line: string): void };
// failures: every broken promise.
export type Report = { history: History; slowestMs: number; failures: string[] };

const answerWithinMs = 4_000;
// How long the harness may take to notice an answer, in addition to its longest pause. It shares its cores with the
// programs that it measures, and also sends, proxies and counts.
const toleranceMs = 250;
const beforeFaultAnswers = 50;
const patienceMs = 20_000;
const settleWithinMs = 60_000;
const workWithinMs = 90_000;
// How long minting and the feed may pause after a fault of the worker.
const resumeWithinMs = 15_000;
const batchSize = 20_000;
// Statements that were running in the database have ended by then, so any progress is new.
const settledAfterMs = 300;

type Run = {
  environment: Environment;
  options: Options;
  history: History;
  clients: Clients;
  failures: string[];
  // Times during which the API was stopped.
  frozen: [from: number, to: number][];
  fail(what: string): void;
};

export async function runCycles(environment: Environment, options: Options): Promise<Report> {
  const history: History = { entries: new Map(), attempts: [], startedAt: performance.timeOrigin };
  const workload = generateWorkload(createRandom(options.seed), environment.coupons);
  const failures: string[] = [];
  const run: Run = {
    environment,
    options,
    history,
    clients: startClients(environment.url, workload, options.clients, history),
    failures,
    frozen: [],
    fail(what) {
      failures.push(what);
      options.print(`  FAILED: ${what}`);
    },
  };
  const loop = monitorEventLoopDelay({ resolution: 10 });
  loop.enable();
  for (const [index, fault] of options.names.entries()) await runCycle(run, fault, index + 1);
  await run.clients.stop();
  await settle(run);
  const isDelivered = await waitAtMost(workWithinMs, () => hasDeliveredAll(environment), { everyMs: 200 });
  if (isDelivered === null) run.fail(`feeds and webhooks were not complete within ${workWithinMs / 1_000} s`);
  loop.disable();
  const slowestMs = checkTimes(run, loop.max / 1e6);
  await findProblems(run);
  return { history, slowestMs, failures };
}

async function runCycle(run: Run, fault: string, number: number): Promise<void> {
  const { environment, options, history, fail } = run;
  const ended = () => history.attempts.filter(({ endedAt }) => endedAt < Infinity).length;
  const goal = ended() + beforeFaultAnswers;
  await waitUntil("answers before the fault", () => ended() >= goal);
  const untilResumed = workerFaults.includes(fault) ? await watchWorker(environment) : undefined;
  const apiPid = environment.api.pid();
  const beganAt = performance.now();
  await faults[fault]!({ environment, history, random: createRandom(options.seed * 1_000 + number) });
  const since = performance.now();
  const resumeLimitMs = resumeWithinMs * options.slack;
  const resuming = untilResumed?.(resumeLimitMs);
  if (fault === "stop api") run.frozen.push([beganAt, since]);

  const limitMs = withinMsOf(fault) * options.slack;
  const servedMs = await waitAtMost(Math.max(patienceMs, limitMs), () => servedAfter(history, since), { everyMs: 100 });
  const resumedMs = await resuming;

  const seconds = ((since - beganAt) / 1_000).toFixed(1).padStart(5);
  const served = servedMs === null ? "never" : `after ${Math.round(servedMs)} ms`;
  const resumed = resumedMs === undefined ? "" : `; work resumed after ${Math.round(resumedMs ?? Infinity)} ms`;
  const unknown = history.attempts.filter((one) => one.sentAt >= beganAt && verdictOf(one) === "unknown").length;
  options.print(
    `${String(number).padStart(3)}  ${fault.padEnd(20)} ${seconds} s, served again ${served}${resumed}; ` +
      `${unknown} unknown outcomes`,
  );
  if (servedMs === null || servedMs > limitMs)
    fail(`${fault}: calls must be served again within ${limitMs} ms, but were ${served}`);
  if (resumedMs === null) fail(`${fault}: the worker must resume within ${resumeLimitMs} ms`);
  if (fault !== "kill api" && environment.api.pid() !== apiPid) fail(`${fault}: the API process ended`);
  await settle(run);
}

async function settle({ clients, fail }: Run): Promise<void> {
  const unsettled = await clients.settle(settleWithinMs);
  if (unsettled > 0) fail(`${unsettled} calls could not be settled within ${settleWithinMs / 1_000} s`);
}

// Resolves when a batch is being minted. The returned function measures after how many milliseconds the worker mints
// more of it, and has given a position to every event that existed; null: it did not in time.
async function watchWorker({ owner, submit }: Environment): Promise<(withinMs: number) => Promise<number | null>> {
  const batch = await submit("A", batchSize);
  const readWork = async () => {
    const [row] = await owner.rows<{ minted: number; sequenced: number; events: number }>(
      `select b.minted_count as minted, (select s.high_seq::int from core.sequencer s) as sequenced,
              (select max(e.event_seq)::int from rules.event e) as events
       from core.batch b where b.external_id = $1`,
      [batch],
    );
    return row!;
  };
  await waitUntil("the worker to mint", async () => (await readWork()).minted > 0, { everyMs: 5 });
  return async (withinMs) => {
    const startedAt = performance.now();
    await sleep(settledAfterMs);
    const before = await readWork();
    return waitAtMost(withinMs, async () => {
      const { minted, sequenced } = await readWork();
      const isMinting = minted > before.minted || minted === batchSize;
      return isMinting && sequenced >= before.events && performance.now() - startedAt;
    });
  };
}

// Whether every event has its position, was read from its feed, and was delivered by the worker.
export async function hasDeliveredAll({ owner, feeds }: Pick<Environment, "owner" | "feeds">): Promise<boolean> {
  const [row] = await owner.rows<{ is_delivered: boolean; fed: number }>(
    `select (select max(e.event_seq) from rules.event e) <= (select s.high_seq from core.sequencer s)
            and not exists (select from core.event_gap) and not exists (select from core.delivery)
            and not exists (select from core.batch where status = 'PENDING') as is_delivered,
            (select count(*)::int from rules.feed_event) as fed`,
  );
  return row!.is_delivered && feeds.A.length + feeds.B.length >= row!.fed;
}

// Returns the time of the slowest answer.
function checkTimes({ history, frozen, options: { slack }, fail }: Run, ownPauseMs: number): number {
  const durations = history.attempts
    .filter(({ code }) => code !== "connection lost")
    .filter(({ sentAt, endedAt }) => !frozen.some(([from, to]) => sentAt < to && endedAt > from))
    .map(({ sentAt, endedAt }) => endedAt - sentAt);
  const slowestMs = durations.reduce((slowest, ms) => Math.max(slowest, ms), 0);
  const late = durations.filter((ms) => ms > (answerWithinMs + toleranceMs) * slack + ownPauseMs).length;
  if (late > 0) fail(`${late} calls had no answer in time; the slowest took ${Math.round(slowestMs)} ms`);
  return slowestMs;
}

async function findProblems({ environment, history, options, fail }: Run): Promise<void> {
  const bugs = history.attempts.filter(({ status }) => status === 500).length;
  if (bugs > 0) fail(`${bugs} answers were INTERNAL_ERROR`);
  const received = new Set(environment.receiver.received.map(({ id }) => id));
  const serverLog = environment.serverLog();
  const findings = await check({ ...environment, history, received, serverLog, print: options.print });
  for (const [kind, found] of Object.entries(findings))
    if (found.length > 0) fail(`${kind}: ${found.length}, for example\n${found.slice(0, 5).join("\n")}`);
}
