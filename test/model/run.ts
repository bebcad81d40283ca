// npm run model is the long form of the model tests, on a new server (see test/support/server.ts). It ends after the
// given number of runs or minutes, or at the first mismatch, which it shrinks and prints. Without --variant it tests
// both. The runs are split into parts, each with a new database, because a large database is slower to compare. Each
// part ends by comparing feed and statement.
import { dropDatabases, makeTemplate } from "../support/database.ts";
import { startServer } from "../support/server.ts";
import { defineCommand } from "../../src/common/command.ts";
import { runCommand } from "../../src/common/run-command.ts";
import { search, type Plan } from "./search.ts";
import { compareTotals } from "./totals.ts";
import { openEnvironment } from "./environment.ts";

type LongPlan = Plan & { lanes: number };
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

async function runModel(variants: readonly ("A" | "B")[], plan: LongPlan): Promise<void> {
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
}

const bothVariants = ["A", "B"] as const;
const replayForm = /^(-?\d+):([\d:]+)$/;

const command = defineCommand({
  name: "model",
  about:
    "Compares random coupon lives with a small model of the rules. It ends after the given runs or minutes, or at " +
    "the first mismatch, which it shrinks and prints with its --replay.",
  flags: {
    variant: { type: "text", value: "NAME", about: "A or B (both, one after the other)", choices: bothVariants },
    runs: { type: "count", value: "N", about: "coupon lives per variant", default: 10_000 },
    seed: { type: "count", value: "N", about: "repeats a run (a new seed)" },
    lanes: { type: "count", value: "N", about: "lives at the same time", default: 24 },
    minutes: { type: "count", value: "N", about: "ends after so many minutes (no limit)" },
    replay: { type: "text", value: "SEED:PATH", about: "repeats one life that a run has printed" },
  },
  examples: ["--variant A --runs 500 --seed 1 --minutes 3"],
  exitCodes: "0 no mismatch, 1 a mismatch or failed",
  refuse({ flags: { replay, variant } }) {
    if (replay === undefined) return null;
    if (variant === undefined) return "--replay needs --variant";
    return replayForm.test(replay) ? null : "--replay must be SEED:PATH";
  },
  async run({ flags: { variant, runs, seed, lanes, minutes, replay } }) {
    const [, replaySeed, path] = replayForm.exec(replay ?? "") ?? [];
    await runModel(
      bothVariants.filter((name) => variant === undefined || name === variant),
      {
        lanes,
        runs: replay === undefined ? runs : 1,
        seed: seed ?? 1 + (Date.now() % 999_999_999),
        ...(minutes !== undefined && { withinMs: minutes * 60_000 }),
        ...(path !== undefined && { replay: { seed: Number(replaySeed), path } }),
      },
    );
  },
});

await runCommand("npm run model", command);
