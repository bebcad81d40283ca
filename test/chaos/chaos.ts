// One run: constant load from several clients, one fault per cycle, and every open call settled after each cycle. The
// checker runs at the end.
import { copyFileSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { waitAtMost } from "../support/wait-until.ts";
import { check, type Findings } from "./checker.ts";
import { createClients, type Clients } from "./clients.ts";
import { faults, type FaultContext } from "./faults.ts";
import { createHistory, verdictOf, type History } from "./history.ts";
import { createRandom } from "./random.ts";
import { openEnvironment, type Environment } from "./environment.ts";
import { generateWorkload } from "./workload.ts";
import { watchWorker, type Resumed } from "./worker.ts";

// slack: a factor for every time limit, for machines that also do other work. mostPending: see clients.ts.
export type Options = {
  seed: number;
  perSecond: number;
  names: string[];
  slack: number;
  mostPending?: number;
  print: (line: string) => void;
};
export type Cycle = { fault: string; servedAfterMs: number | null; withinMs: number };
export type Report = {
  cycles: Cycle[];
  resumed: Resumed[];
  calls: number;
  // Answers by status; attempts without an answer by reason.
  answers: Record<string, number>;
  slowestMs: number;
  // Answers that took longer than promised, measured at the client.
  overdue: number;
  // The longest time during which the harness itself did not run.
  ownPauseMs: number;
  history: History;
  findings: Findings;
  // Every broken promise.
  failures: string[];
};

const answerWithinMs = 4_000;
// How long the harness may take to notice an answer, in addition to its longest pause. It shares its cores with the
// programs that it measures, and also sends, proxies and counts.
const toleranceMs = 250;
const beforeFaultMs = 1_000;
const patienceMs = 20_000;
const settleWithinMs = ({ slack }: Options): number => 60_000 * Math.min(slack, 5);
const workWithinMs = 90_000;
// How long minting, delivery and the feed may pause after a fault of the worker.
const resumeWithinMs = 15_000;
const restartingFaults = ["kill api", "shift clock"];

// coupons: per tenant, at the start.
export async function runChaos(options: Options, coupons: number): Promise<Report> {
  const environment = await openEnvironment(coupons);
  try {
    const report = await runCycles(environment, options);
    if (report.failures.length > 0) options.print(`logs: ${keepLogs(environment)}`);
    return report;
  } finally {
    await environment.stop();
  }
}

type Run = {
  environment: Environment;
  options: Options;
  history: History;
  clients: Clients;
  cycles: Cycle[];
  failures: string[];
  // Times during which a program was stopped.
  frozen: [from: number, to: number][];
  resumed: Resumed[];
  fail(what: string): void;
};

export async function runCycles(environment: Environment, options: Options): Promise<Report> {
  const history = createHistory();
  const failures: string[] = [];
  const run: Run = {
    environment,
    options,
    history,
    clients: createClients({ ...environment, history, mostPending: options.mostPending ?? Infinity }),
    cycles: [],
    failures,
    frozen: [],
    resumed: [],
    fail(what) {
      failures.push(what);
      options.print(`  FAILED: ${what}`);
    },
  };
  const loop = monitorEventLoopDelay({ resolution: 10 });
  loop.enable();
  const stopping = new AbortController();
  const running = run.clients.run(generateWorkload(createRandom(options.seed), options.perSecond), stopping.signal);
  for (const [index, fault] of options.names.entries()) await runCycle(run, fault, index + 1);
  stopping.abort();
  await running;
  await finish(run);
  loop.disable();

  const ownPauseMs = loop.max / 1e6;
  const { slowestMs, overdue } = checkTimes(run, ownPauseMs);
  const findings = await checkEnvironment(run);
  return {
    cycles: run.cycles,
    resumed: run.resumed,
    calls: history.entries.size,
    answers: countAnswers(history),
    slowestMs,
    overdue,
    ownPauseMs,
    history,
    findings,
    failures,
  };
}

async function runCycle(run: Run, fault: string, number: number): Promise<void> {
  const { environment, options, history, clients, fail } = run;
  const measuring: Promise<unknown>[] = [];
  const context: FaultContext = {
    environment,
    random: createRandom(options.seed * 1_000 + number),
    history,
    fail,
    noteFrozen: (from, to) => void run.frozen.push([from, to]),
    async watchWorker() {
      const untilResumed = await watchWorker(environment, fault, workWithinMs);
      return (since) => void measuring.push(untilResumed(since).then((all) => run.resumed.push(...all)));
    },
  };
  await sleep(beforeFaultMs);
  const beganAt = performance.now();
  const apiPid = environment.api.pid();
  const { since, withinMs } = await faults[fault]!(context);
  const limitMs = withinMs * options.slack;
  const untilServed = () => history.servedAfter(since);
  const servedAfterMs = await waitAtMost(Math.max(patienceMs, limitMs), untilServed, { everyMs: 100 });
  const unsettled = await clients.settle(settleWithinMs(options));
  await Promise.all(measuring);
  run.cycles.push({ fault, servedAfterMs, withinMs });

  const seconds = ((since - beganAt) / 1_000).toFixed(1).padStart(5);
  const served = servedAfterMs === null ? "never" : `after ${Math.round(servedAfterMs)} ms`;
  options.print(
    `${String(number).padStart(3)}  ${fault.padEnd(20)} ${seconds} s, served again ${served}` +
      describeUnknown(history, beganAt),
  );
  if (servedAfterMs === null || servedAfterMs > limitMs)
    fail(`${fault}: calls must be served again within ${withinMs} ms, but were ${served}`);
  if (unsettled > 0) fail(`${unsettled} calls could not be settled within ${settleWithinMs(options) / 1_000} s`);
  if (!restartingFaults.includes(fault) && environment.api.pid() !== apiPid) fail(`${fault}: the API process ended`);
}

const describeResumed = (afterMs: number | null): string =>
  afterMs === null ? `it did not within ${workWithinMs / 1_000} s` : `it took ${Math.round(afterMs)} ms`;

async function finish({ environment, clients, resumed, options, fail }: Run): Promise<void> {
  for (const { work, fault, afterMs } of resumed)
    if (afterMs === null || afterMs > resumeWithinMs * options.slack)
      fail(`${fault}: the worker must ${work} again within ${resumeWithinMs / 1_000} s; ${describeResumed(afterMs)}`);
  const unsettled = await clients.settle(settleWithinMs(options));
  if (unsettled > 0) fail(`${unsettled} calls could not be settled at the end`);
  const isDelivered = await waitAtMost(workWithinMs, () => hasDeliveredAll(environment), { everyMs: 200 });
  if (isDelivered === null) fail(`feeds and webhooks were not complete within ${workWithinMs / 1_000} s`);
}

// Whether every event has its position, was read from its feed, and was delivered by the worker.
async function hasDeliveredAll({ owner, feeds }: Environment): Promise<boolean> {
  const [row] = await owner.rows<{ is_delivered: boolean; fed: number }>(
    `select (select max(e.event_seq) from rules.event e) <= (select s.high_seq from core.sequencer s)
            and not exists (select from core.event_gap) and not exists (select from core.delivery)
            and not exists (select from core.batch where status = 'PENDING') as is_delivered,
            (select count(*)::int from rules.feed_event) as fed`,
  );
  return row!.is_delivered && feeds.A.length + feeds.B.length >= row!.fed;
}

function checkTimes(
  { history, frozen, options: { slack }, fail }: Run,
  ownPauseMs: number,
): { slowestMs: number; overdue: number } {
  const durations = history.attempts
    .filter(
      ({ sentAt, endedAt, code }) =>
        code !== "connection lost" && !frozen.some(([from, to]) => sentAt < to && endedAt > from),
    )
    .map(({ sentAt, endedAt }) => endedAt - sentAt);
  const slowestMs = durations.reduce((slowest, ms) => Math.max(slowest, ms), 0);
  const late = durations.filter((ms) => ms > (answerWithinMs + toleranceMs) * slack + ownPauseMs).length;
  if (late > 0)
    fail(
      `${late} calls had no answer within ${answerWithinMs / 1_000} s; the slowest took ${Math.round(slowestMs)} ms`,
    );
  return { slowestMs, overdue: durations.filter((ms) => ms > answerWithinMs).length };
}

async function checkEnvironment({ environment, history, fail }: Run): Promise<Findings> {
  const bugs = history.attempts.filter(({ status }) => status === 500).length;
  if (bugs > 0) fail(`${bugs} answers were INTERNAL_ERROR`);
  const { address, server, receiver, feeds } = environment;
  const findings = await check({ address, history, serverLog: server.log(), received: receiver.events, feeds });
  for (const kind of ["lost", "phantom", "contradictions", "invariants", "corruption"] as const) {
    if (findings[kind].length > 0)
      fail(`${kind}: ${findings[kind].length}, for example ${findings[kind].slice(0, 5).join("; ")}`);
  }
  if (findings.deadlocks > 0) fail(`${findings.deadlocks} deadlocks`);
  return findings;
}

// Keeps the logs of a failed run for analysis.
function keepLogs({ server }: Environment): string {
  const kept = mkdtempSync(path.join(tmpdir(), "coupon-chaos-logs-"));
  for (const name of readdirSync(server.folder).filter((each) => each.endsWith(".log")))
    copyFileSync(path.join(server.folder, name), path.join(kept, name));
  writeFileSync(path.join(kept, "server.log"), server.log());
  return kept;
}

function countAnswers({ attempts }: History): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, code } of attempts) {
    const name = status === null ? code! : String(status);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

// How many attempts of the cycle had an unknown outcome at first.
function describeUnknown({ attempts }: History, since: number): string {
  const unknown = attempts.filter((attempt) => attempt.sentAt >= since && verdictOf(attempt) === "unknown").length;
  return unknown === 0 ? "" : `; ${unknown} unknown outcomes, settled`;
}
