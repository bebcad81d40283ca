// One run: load from several clients all the time, one fault a cycle, everything settled after it; in the end the checker.
import { copyFileSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { check, type Findings } from "./checker.ts";
import { createClients } from "./clients.ts";
import { faults, type Scene } from "./faults.ts";
import { createHistory, verdictOf, type History } from "./history.ts";
import { createRandom } from "./random.ts";
import { openStage, type Stage } from "./environment.ts";
import { tellStories } from "./workload.ts";
import { watchWorker, type Resumed } from "./worker.ts";

// slack: how many times as long as promised everything may take, for machines that others use as well.
export type Options = {
  seed: number;
  perSecond: number;
  names: string[];
  slack?: number;
  print: (line: string) => void;
};
export type Cycle = { fault: string; servedAfterMs: number | null; withinMs: number };
export type Report = {
  cycles: Cycle[];
  resumed: Resumed[];
  calls: number;
  // Answers by status; unknown ones by why.
  answers: Record<string, number>;
  slowestMs: number;
  // How many took longer than promised at the client, and the longest time in which the harness itself did not run.
  overdue: number;
  ownPauseMs: number;
  history: History;
  findings: Findings;
  // Whatever is not as it was promised.
  failures: string[];
};

const answerWithinMs = 4_000;
// What our own process may take to notice an answer, on top of the longest time it was itself not running: it sends, proxies and
// counts on the cores of those it measures.
const toleranceMs = 250;
const beforeFaultMs = 1_000;
const patienceMs = 20_000;
const settleWithinMs = 60_000;
const workWithinMs = 90_000;

// coupons: of each tenant, to begin with.
export async function runChaos(options: Options, coupons: number): Promise<Report> {
  const stage = await openStage(coupons);
  try {
    const report = await playChaos(stage, options);
    if (report.failures.length > 0) options.print(`logs: ${keepLogs(stage)}`);
    return report;
  } finally {
    await stage.stop();
  }
}

export async function playChaos(stage: Stage, { seed, perSecond, names, slack = 1, print }: Options): Promise<Report> {
  const history = createHistory();
  const clients = createClients({ url: stage.url, piles: stage.piles, history });
  const [cycles, failures, frozen, resumed]: [Cycle[], string[], [number, number][], Resumed[]] = [[], [], [], []];
  const fail = (what: string): void => {
    failures.push(what);
    print(`  FAILED: ${what}`);
  };
  const loop = monitorEventLoopDelay({ resolution: 10 });
  loop.enable();
  const stopping = new AbortController();
  const playing = clients.play(tellStories(createRandom(seed), perSecond), stopping.signal);

  for (const [index, fault] of names.entries()) {
    const random = createRandom(seed * 1_000 + index + 1);
    const scene: Scene = {
      stage,
      random,
      history,
      fail,
      noteFrozen: (from, to) => void frozen.push([from, to]),
      async watchWorker() {
        const untilResumed = await watchWorker(stage, fault, workWithinMs);
        return async (from) => void resumed.push(...(await untilResumed(from)));
      },
    };
    await sleep(beforeFaultMs);
    const beganAt = performance.now();
    const apiPid = stage.api.pid();
    const { since, withinMs } = await faults[fault]!(scene);
    let servedAfterMs = history.servedAfter(since);
    for (
      const from = performance.now();
      servedAfterMs === null && performance.now() < from + patienceMs;
      servedAfterMs = history.servedAfter(since)
    )
      await sleep(100);
    const unsettled = await clients.settle(settleWithinMs);
    cycles.push({ fault, servedAfterMs, withinMs });
    print(
      `${String(index + 1).padStart(3)}  ${fault.padEnd(20)} ${((since - beganAt) / 1_000).toFixed(1).padStart(5)} s, served again after ${servedAfterMs === null ? "never" : `${Math.round(servedAfterMs)} ms`}${describe(history, beganAt)}`,
    );
    if (servedAfterMs === null || servedAfterMs > withinMs * slack)
      fail(
        `after ${fault} calls are served again after ${servedAfterMs === null ? "more than 20 s" : `${Math.round(servedAfterMs)} ms`}, not ${withinMs}`,
      );
    if (unsettled > 0) fail(`${unsettled} calls could not be settled within ${settleWithinMs / 1_000} s`);
    if (!["kill api", "shift clock"].includes(fault) && stage.api.pid() !== apiPid) fail(`${fault} ended the API`);
  }

  for (const { work, fault, afterMs } of resumed)
    if (afterMs === null) fail(`after ${fault} the worker does not ${work} within ${workWithinMs / 1_000} s`);
  stopping.abort();
  await playing;
  const unsettled = await clients.settle(settleWithinMs);
  if (unsettled > 0) fail(`${unsettled} calls could not be settled in the end`);
  if (!(await untilTold(stage))) fail(`feeds and webhooks did not come to their end within ${workWithinMs / 1_000} s`);
  loop.disable();

  const timed = history.attempts.filter(
    ({ sentAt, endedAt, code }) =>
      code !== "connection lost" && !frozen.some(([from, to]) => sentAt < to && endedAt > from),
  );
  const slowestMs = timed.reduce((slowest, { sentAt, endedAt }) => Math.max(slowest, endedAt - sentAt), 0);
  const ownPauseMs = loop.max / 1e6;
  const late = timed.filter(
    ({ sentAt, endedAt }) => endedAt - sentAt > (answerWithinMs + toleranceMs) * slack + ownPauseMs,
  ).length;
  const overdue = timed.filter(({ sentAt, endedAt }) => endedAt - sentAt > answerWithinMs).length;
  if (late > 0)
    fail(`${late} calls had no answer within ${answerWithinMs / 1_000} s; the slowest: ${Math.round(slowestMs)} ms`);
  const bugs = history.attempts.filter(({ status }) => status === 500).length;
  if (bugs > 0) fail(`${bugs} answers were INTERNAL_ERROR`);
  const { address, postgres, receiver, feeds } = stage;
  const findings = await check({ address, history, serverLog: postgres.log(), received: receiver.events, feeds });
  for (const kind of ["lost", "phantom", "contradictions", "invariants", "corruption"] as const) {
    if (findings[kind].length > 0)
      fail(`${kind}: ${findings[kind].length}, for example ${findings[kind].slice(0, 5).join("; ")}`);
  }
  if (findings.deadlocks > 0) fail(`${findings.deadlocks} deadlocks`);
  return {
    cycles,
    resumed,
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

// For whoever wants to know why.
function keepLogs({ postgres }: Stage): string {
  const kept = mkdtempSync(path.join(tmpdir(), "coupon-chaos-logs-"));
  for (const name of readdirSync(postgres.folder).filter((each) => each.endsWith(".log")))
    copyFileSync(path.join(postgres.folder, name), path.join(kept, name));
  writeFileSync(path.join(kept, "server.log"), postgres.log());
  return kept;
}

// Until everything that happened has its place, was read, and was delivered. The worker does it.
async function untilTold({ owner, feeds }: Stage): Promise<boolean> {
  for (const since = performance.now(); performance.now() < since + workWithinMs; await sleep(200)) {
    const [left] = await owner.rows<{ is_told: boolean; fed: number }>(
      `select (select max(e.event_seq) from core.event e) <= (select s.high_seq from core.sequencer s)
              and not exists (select from core.event_gap) and not exists (select from core.delivery) and not exists (select from core.batch where status = 'PENDING') as is_told,
              (select count(*)::int from core.feed_event) as fed`,
    );
    if (left!.is_told && feeds.A.length + feeds.B.length >= left!.fed) return true;
  }
  return false;
}

const nameOf = (attempt: History["attempts"][number]): string =>
  attempt.status === null ? attempt.code! : attempt.status === 503 ? "503" : String(attempt.status);

function countAnswers({ attempts }: History): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const attempt of attempts) counts[nameOf(attempt)] = (counts[nameOf(attempt)] ?? 0) + 1;
  return counts;
}

// What became of the calls of a cycle that nobody knew about at first.
function describe({ attempts }: History, since: number): string {
  const unknown = attempts.filter((attempt) => attempt.sentAt >= since && verdictOf(attempt) === "unknown").length;
  return unknown === 0 ? "" : `; ${unknown} answers unknown, settled`;
}
