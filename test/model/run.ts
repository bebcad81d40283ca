// npm run model -- [--variant A] [--runs 10000] [--seed N] [--lanes 24] [--minutes M] [--replay SEED:PATH]
//
// The long form of the model tests, on a new server (see test/support/server.ts). It ends after the given number of
// runs or minutes, or at the first mismatch, which it shrinks and prints. Without --variant it tests both. The runs are
// split into parts, each with a new database, because a large database is slower to compare. Each part ends by
// comparing feed and statement.
import { parseArgs } from "node:util";
import { dropDatabases, makeTemplate } from "../support/database.ts";
import { startServer } from "../support/server.ts";
import { runProgram } from "../../src/common/program.ts";
import { search, type Plan } from "./search.ts";
import { compareTotals } from "./totals.ts";
import { openEnvironment } from "./environment.ts";

type LongPlan = Plan & { lanes: number };
type Options = LongPlan & { variants: ("A" | "B")[] };

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      variant: { type: "string" },
      runs: { type: "string", default: "10000" },
      seed: { type: "string" },
      lanes: { type: "string", default: "24" },
      minutes: { type: "string" },
      replay: { type: "string" },
    },
  });
  const count = (name: string, text: string) => {
    if (!/^\d{1,9}$/.test(text)) throw new Error(`--${name} must be a number`);
    return Number(text);
  };
  if (values.variant !== undefined && values.variant !== "A" && values.variant !== "B")
    throw new Error("--variant must be A or B");
  const replay = /^(-?\d+):([\d:]+)$/.exec(values.replay ?? "");
  if (values.replay !== undefined && (replay === null || values.variant === undefined))
    throw new Error("--replay must be SEED:PATH, and needs --variant");
  return {
    variants: values.variant === undefined ? ["A", "B"] : [values.variant],
    runs: replay === null ? count("runs", values.runs) : 1,
    lanes: count("lanes", values.lanes),
    seed: values.seed === undefined ? Date.now() % 1_000_000_000 : count("seed", values.seed),
    ...(values.minutes !== undefined && { withinMs: count("minutes", values.minutes) * 60_000 }),
    ...(replay !== null && { replay: { seed: Number(replay[1]), path: replay[2]! } }),
  };
}

const runsPerPart = 500;

// Returns false when a mismatch was found.
async function runVariant(variant: "A" | "B", plan: LongPlan): Promise<boolean> {
  const startedAt = performance.now();
  const deadline = startedAt + (plan.withinMs ?? Infinity);
  let [runs, steps] = [0, 0];
  for (let begun = 0; begun < plan.runs && performance.now() < deadline; begun += runsPerPart) {
    const found = await runPart(variant, {
      ...plan,
      runs: Math.min(runsPerPart, plan.runs - begun),
      firstLane: (begun / runsPerPart) * plan.lanes,
      withinMs: deadline - performance.now(),
    });
    runs += found.runs;
    steps += found.steps;
    const seconds = (performance.now() - startedAt) / 1000;
    console.log(
      `Variant ${variant}, seed ${plan.seed}: ${runs} runs of ${steps} steps, ${Math.round(steps / seconds)} steps/s`,
    );
    for (const problem of found.problems) console.log(problem);
    if (found.problems.length > 0) return false;
  }
  console.log("no counterexample; feed, statement and invariants agree");
  return true;
}

async function runPart(variant: "A" | "B", plan: Plan): Promise<{ runs: number; steps: number; problems: string[] }> {
  const endings: (() => unknown)[] = [];
  const teardown = { teardown: (ending: () => unknown) => void endings.push(ending) };
  try {
    const environment = await openEnvironment(teardown, variant, plan.replay === undefined ? 300 : 3);
    const { runs, steps, totals, failures } = await search(environment, plan);
    return {
      runs,
      steps,
      problems: failures.length > 0 ? failures : await compareTotals(teardown, environment, totals),
    };
  } finally {
    // The last of them checks the invariants, and throws if one is broken.
    for (const ending of endings.toReversed()) await ending();
  }
}

await runProgram(async () => {
  const { variants, ...plan } = readOptions();
  const server = await startServer();
  const prefix = `coupon_model_${Date.now().toString(36)}_`;
  let isFine = true;
  try {
    const template = await makeTemplate(server.address, prefix);
    process.env["COUPON_TEST_RUN"] = JSON.stringify({ prefix, template, server: server.address });
    for (const variant of variants) isFine = (await runVariant(variant, plan)) && isFine;
  } finally {
    await dropDatabases(server.address, prefix);
    await server.stop();
  }
  process.exit(isFine ? 0 : 1);
});
