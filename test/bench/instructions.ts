// instructions: how many instructions the database needs for a redemption in a group, for one alone, and for an event
// in a step of the sequencer. Each figure is the difference of two runs of different length, so it counts warm calls:
// the start, the first plans and the end of both runs are the same. Plans are made for filled, analyzed tables.
import path from "node:path";
import { openSession } from "../../src/database/connect.ts";
import { startEmbedded } from "../../src/embedded/server.ts";
import { countInstructions, type Profile } from "./callgrind.ts";
import { fillRedemptions } from "./fill.ts";
import { checkInvariants } from "./invariants.ts";
import { describeParts } from "./instruction-parts.ts";
import { openEnvironment, settle } from "./environment.ts";
import { redeemCall } from "./requests.ts";
import type { Report, Row } from "./results.ts";
import { databaseMaker, type Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { removeFolder } from "../support/temporary-folder.ts";

const groupSize = 30;
// What arrives between two steps at 3,000 redemptions per second.
const mostPerStep = 300;
const mostFilled = 20_000;
// PL/pgSQL keeps a plan after five executions, so later ones are warm.
const warmCount = 8;

// Each line is one statement. Of an execution that went well, the server prints `answer` so many times.
type Kind = {
  /** As in BENCH_KINDS. */
  key: string;
  name: string;
  prepare: string[];
  execute: () => string;
  answer: RegExp;
  answers: number;
  // Redemptions or events of one execution.
  size: number;
  counted: number;
};
type Caller = { tenantId: number; takeCalls: (count: number) => string };
type Stored = { tenantId: number; takeGroup: (size: number) => number };

export async function benchInstructions(
  server: Server,
  { countedCount, coupons, kinds: names }: Settings,
): Promise<Report> {
  const dataDir = path.join(server.folder, "instructions");
  const [steps, stepSize] = [Math.ceil(countedCount / 4), Math.min(mostPerStep, countedCount * groupSize)];
  const [groups, events] = [2 * warmCount + countedCount, (2 * warmCount + steps) * stepSize];
  const embedded = await startEmbedded(dataDir);
  let running: { stop(): Promise<void> } = embedded;
  try {
    const { address } = embedded;
    const database = await prepareDatabase(
      { ...server, address },
      {
        filled: Math.min(mostFilled, coupons),
        fresh: groups * (groupSize + 1) + events,
      },
    );
    await writeEvents(database, events);
    const stored = await storeCalls(database, groups);
    await embedded.stop();

    const kinds = listKinds(stored, { counted: countedCount, steps, stepSize });
    const measured = new Map<string, Row>();
    for (const kind of kinds.filter(({ key }) => names.includes(key)))
      measured.set(kind.key, await measure(dataDir, database.address.database!, kind));

    running = await startEmbedded(dataDir);
    await checkInvariants(database.address);
    // The sum of what was counted; null if a part was not.
    const sum = (...keys: string[]): number | null =>
      keys.every((key) => measured.has(key))
        ? keys.reduce((total, key) => total + measured.get(key)!.values["all"]!, 0)
        : null;
    const unit = "thousand instructions";
    const results = [
      { name: `in a group of ${groupSize}, with its event`, value: sum("group", "event"), unit, aim: { atMost: 600 } },
      { name: "alone", value: sum("alone"), unit, aim: { atMost: 2_000 } },
      { name: "alone, with its event", value: sum("alone", "event"), unit },
    ];
    return {
      tables: { "instructions, in thousands": [...measured.values()] },
      results: results.flatMap(({ value, ...result }) => (value === null ? [] : [{ ...result, value }])),
    };
  } finally {
    await running.stop();
    removeFolder(embedded.folder);
  }
}

// A filled database, and calls that redeem further coupons.
async function prepareDatabase(server: Server, { filled, fresh }: { filled: number; fresh: number }) {
  const makeDatabase = databaseMaker(server.address);
  const createDatabase = async () => ({ ...(await makeDatabase()), drop: async () => {} });
  const environment = await openEnvironment({ ...server, createDatabase });
  const { address, tenantId, credentialId, keys } = environment;
  await environment.makePool(filled);
  await fillRedemptions(environment);
  const coupons = await (await environment.makePool(fresh)).draw(fresh);
  // Also sequences the events.
  await environment.close();
  const takeCalls = (count: number): string =>
    JSON.stringify(coupons.splice(0, count).map((coupon) => redeemCall(coupon, credentialId, keys)));
  return { address, tenantId, takeCalls };
}

// For the sequencer, by a server that runs at full speed.
async function writeEvents(
  { address, tenantId, takeCalls }: Caller & Pick<Server, "address">,
  count: number,
): Promise<void> {
  const session = openSession(address, { name: "coupon bench", role: "coupon_api" });
  for (let left = count; left > 0; left -= groupSize) {
    await session.rows("select http_status from gate.perform($1, $2::text::jsonb, false)", [
      tenantId,
      takeCalls(Math.min(groupSize, left)),
    ]);
  }
  await session.end();
  await settle({ address });
}

// The service sends calls as a parameter. Here each would be part of a statement, and the server would read it
// character by character: 45 thousand instructions for a call. So a table holds them, as the parameter would.
async function storeCalls(
  { address, tenantId, takeCalls }: Caller & Pick<Server, "address">,
  groups: number,
): Promise<Stored> {
  const session = openSession(address, { name: "coupon bench" });
  await session.run(`
    create schema bench create table bench.calls (id int primary key, calls text storage external);
    grant usage on schema bench to coupon_api; grant select on bench.calls to coupon_api`);
  const stored = new Map<number, number[]>([groupSize, 1].map((size) => [size, []]));
  for (let id = 1; id <= groups; id += 1) {
    for (const [size, ids] of stored) {
      const number = size * groups + id;
      ids.push(number);
      await session.rows("insert into bench.calls values ($1, $2)", [number, takeCalls(size)]);
    }
  }
  await session.run("analyze bench.calls");
  await session.end();
  return { tenantId, takeGroup: (size) => stored.get(size)!.pop()! };
}

function listKinds(
  { tenantId, takeGroup }: Stored,
  sizes: { counted: number; steps: number; stepSize: number },
): Kind[] {
  const { counted, steps, stepSize } = sizes;
  const call = (size: number) => ({
    answers: size,
    prepare: [
      "set role coupon_api",
      "prepare perform (int) as select http_status, body, is_replay " +
        `from gate.perform(${tenantId}, (select calls::jsonb from bench.calls where id = $1), false)`,
    ],
    execute: () => `execute perform (${takeGroup(size)})`,
    answer: /http_status = "200"/g,
    size,
    counted,
  });
  const step = {
    answers: 1,
    prepare: ["set role coupon_worker", `prepare step as select sequenced from jobs.sequence_events(${stepSize})`],
    execute: () => "execute step",
    answer: new RegExp(`sequenced = "${stepSize}"`, "g"),
    size: stepSize,
    counted: steps,
  };
  return [
    { key: "group", name: `a redemption in a group of ${groupSize}`, ...call(groupSize) },
    { key: "alone", name: "a redemption alone", ...call(1) },
    { key: "event", name: `an event in a step of ${stepSize}`, ...step },
  ];
}

async function measure(dataDir: string, database: string, kind: Kind): Promise<Row> {
  const short = await run(dataDir, database, kind, warmCount);
  const long = await run(dataDir, database, kind, warmCount + kind.counted);
  return { name: kind.name, values: describeParts(short, long, kind.counted * kind.size * 1_000) };
}

async function run(dataDir: string, database: string, kind: Kind, times: number): Promise<Profile> {
  const executions = Array.from({ length: times }, kind.execute);
  const { output, profile } = await countInstructions(dataDir, database, [...kind.prepare, ...executions]);
  const answers = output.match(kind.answer)?.length ?? 0;
  if (answers !== times * kind.answers)
    throw new Error(`${kind.name}: ${answers} of ${times * kind.answers} answers are right. ${output.slice(-2_000)}`);
  return profile;
}
