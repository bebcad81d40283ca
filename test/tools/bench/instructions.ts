// instructions: how many instructions the database needs for the calls of a till, alone and in groups, and for an event
// in a step of the sequencer. They hardly depend on the load of the machine. Each figure is the difference of two runs
// of different length under valgrind's callgrind, so it counts warm calls: the start, the first plans and the end of
// both runs are the same. Plans are made for filled, analyzed tables, whose pages are all in memory: reading one would
// take 8,000 instructions for its checksum.
import { spawn, spawnSync } from "node:child_process";
import path from "node:path";
import { text } from "node:stream/consumers";
import { openSession } from "../../../src/database/connect.ts";
import { dataFolder, findBinaries, findHome, serverEnv } from "../../../src/embedded/data-directory.ts";
import { drawTails, externalId } from "../../../src/formats/id.ts";
import { answerColumns } from "../../../src/gate/answer.ts";
import { startEmbedded } from "../../../src/embedded/server.ts";
import { removeFolder } from "../../support/temporary-folder.ts";
import type { Call } from "../../../src/gate/gate.ts";
import { nextCall, openPool, tillCall } from "./coupons.ts";
import { checkInvariants, openEnvironment, settle, type Environment, type Run } from "./environment.ts";
import { fillRedemptions } from "./fill.ts";
import type { Row } from "./measure.ts";

// The calls that are counted, each in groups of these sizes: those that are named, or the ones that come next.
type Operation = { name: string; sizes: number[]; next?: "confirm" | "reverse" };
const operations: Operation[] = [
  { name: "redeem", sizes: [30, 8, 1] },
  { name: "lock", sizes: [8, 1] },
  { name: "lock", sizes: [8, 1], next: "confirm" },
  { name: "redeem", sizes: [8, 1], next: "reverse" },
  { name: "query", sizes: [8, 1] },
];
const largeGroup = 30;
// What arrives between two steps at 3,000 redemptions a second.
const stepSize = 300;
// PL/pgSQL keeps a plan after five executions, so later ones are warm.
const warmCount = 8;
const filledCount = 20_000;

const settings = {
  // As the connections of `serve` and `work` set them.
  jit: "off",
  max_parallel_workers_per_gather: "0",
  TimeZone: "UTC",
  search_path: "pg_catalog,pg_temp",
  shared_buffers: "256MB",
  max_wal_size: "4GB",
};

const readAll =
  "select sum(pg_prewarm(oid::regclass)) from pg_class " +
  "where relnamespace = 'core'::regnamespace and relkind in ('r', 'i')";

// A line is one statement.
type Kind = {
  name: string;
  prepare: string[];
  execute: () => string;
  // The server prints `answer` for each of the `rows` of an execution that went well.
  answer: string;
  rows: number;
  // Redemptions or events of an execution.
  size: number;
  counted: number;
};

/** The size is how many groups, calls and steps are counted. */
export async function benchInstructions({ server, size }: Run): Promise<Row[]> {
  if (spawnSync("valgrind", ["--version"]).status !== 0)
    throw new Error("valgrind is missing: it counts the instructions. Install the package valgrind.");
  const dataDir = path.join(server.folder, "instructions");
  const embedded = await startEmbedded(dataDir);
  let running: { stop(): Promise<void> } = embedded;
  try {
    const environment = await openEnvironment({ address: embedded.address, folder: server.folder });
    const kinds = await prepareKinds(environment, size);
    await embedded.stop();
    const rows: Row[] = [];
    for (const kind of kinds) {
      const count = (times: number) => countInstructions(dataDir, environment.address.database!, kind, times);
      const more = (await count(warmCount + kind.counted)) - (await count(warmCount));
      rows.push({ name: kind.name, "thousand instructions": more / (kind.counted * kind.size * 1_000) });
    }
    running = await startEmbedded(dataDir);
    await checkInvariants(environment.address);
    return rows;
  } finally {
    await running.stop();
    removeFolder(embedded.folder);
  }
}

/** Fills the database, and stores what the kinds work on. */
async function prepareKinds(environment: Environment, size: number): Promise<Kind[]> {
  const { tenantId, release, untilCaughtUp, stop } = environment;
  const steps = Math.ceil(size / 4);
  const executions = 2 * warmCount + size;
  const events = (2 * warmCount + steps) * stepSize;
  await fillRedemptions(environment, [await release(filledCount)]);
  const groups = operations.flatMap(({ sizes, ...operation }) => sizes.map((count) => ({ ...operation, count })));
  const fresh = executions * groups.reduce((sum, { count }) => sum + count, 0) + events;
  const coupons = await (await openPool(environment, fresh)).draw(fresh);
  await untilCaughtUp();
  await stop();

  const session = openSession(environment.address, { name: "coupon bench" });
  await session.run("create extension pg_prewarm");
  const perform = (calls: Call[]) =>
    session.rows<{ redemption_id: string }>(
      "select redemption_id from unnest(gate.perform_calls($1, $2::text::jsonb, $3, false)) order by ordinal",
      [tenantId, JSON.stringify(calls), drawTails(calls.length)],
    );
  const take = (operation: string, count: number): Call[] =>
    coupons.splice(0, count).map((coupon) => tillCall(environment, operation, coupon));
  // For the sequencer.
  for (let left = events; left > 0; left -= largeGroup) await perform(take("redeem", largeGroup));
  // The service sends calls as a parameter. Here each would be part of a statement, and the server would read it
  // character by character: 45,000 instructions for a call. So a table holds them, as the parameter would.
  await session.run(`
    create schema bench
    create table bench.calls (
      id int primary key, calls text storage external, tails bytea storage external);
    grant usage on schema bench to coupon_api; grant select on bench.calls to coupon_api`);
  async function store(id: number, { name, count, next }: (typeof groups)[number]): Promise<void> {
    let calls = take(name, count);
    if (next !== undefined) {
      const made = await perform(calls);
      calls = calls.map((call, place) => nextCall(call, next, externalId("red", made[place]!.redemption_id)));
    }
    await session.rows("insert into bench.calls values ($1, $2, $3)", [id, JSON.stringify(calls), drawTails(count)]);
  }
  const kinds: Kind[] = [];
  let id = 1;
  for (const group of groups) {
    const { name, count, next = name } = group;
    kinds.push({
      name: `${next} ${count === 1 ? "alone" : `in a group of ${count}`}`,
      ...callKind(tenantId, id, count, size),
    });
    for (const end = id + executions; id < end; id += 1) await store(id, group);
  }
  await session.end();
  await settle(environment);
  return [...kinds, stepKind(steps)];
}

/** Kinds that perform the stored calls from `firstId` on. */
function callKind(tenantId: number, firstId: number, count: number, size: number): Omit<Kind, "name"> {
  let id = firstId;
  return {
    prepare: [
      "set role coupon_api",
      `prepare perform (int) as select ${answerColumns} from bench.calls c, ` +
        `unnest(gate.perform_calls(${tenantId}, c.calls::jsonb, c.tails, false)) where c.id = $1`,
    ],
    execute: () => `execute perform (${id++})`,
    answer: 'http_status = "200"',
    rows: count,
    size: count,
    counted: size,
  };
}

const stepKind = (steps: number): Kind => ({
  name: `an event in a step of ${stepSize}`,
  prepare: ["set role coupon_worker", `prepare step as select sequenced from jobs.sequence_events(${stepSize})`],
  execute: () => "execute step",
  answer: `sequenced = "${stepSize}"`,
  rows: 1,
  size: stepSize,
  counted: steps,
});

/** Runs the kind in a PostgreSQL without other processes. `dataDir` has a stopped server. */
async function countInstructions(dataDir: string, database: string, kind: Kind, times: number): Promise<number> {
  const home = findHome(dataDir)!;
  const given = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const server = [path.join(findBinaries(home), "bin/postgres"), "--single", "-D", dataFolder(home), ...given];
  const child = spawn("valgrind", ["--tool=callgrind", "--callgrind-out-file=/dev/null", ...server, database], {
    ...home.user,
    cwd: home.folder,
    env: { ...serverEnv, PATH: process.env["PATH"] },
    stdio: "pipe",
  });
  child.stdin.on("error", () => {});
  const lines = [readAll, ...kind.prepare, ...Array.from({ length: times }, kind.execute)];
  child.stdin.end(lines.map((line) => `${line}\n`).join(""));
  const [output, complaint] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const answers = output.split(kind.answer).length - 1;
  const [, collected] = /Collected : (\d+)/.exec(complaint) ?? [];
  if (answers !== times * kind.rows || collected === undefined)
    throw new Error(`${kind.name}: ${answers} right answers. ${output.slice(-1_000)} ${complaint.slice(-1_000)}`);
  return Number(collected);
}
