// npm run model is the long form of the model test, on a new server. The lives are split into parts, each with a new
// database, because a large database is slower to compare.
import { defineCommand } from "../../../src/command-line/command.ts";
import { runCommand } from "../../../src/command-line/run-command.ts";
import { dropDatabases, makeTemplate } from "../../support/database.ts";
import { startServer } from "../../support/server.ts";
import { search, type Found, type Plan } from "./search.ts";
import { openService } from "./service.ts";

const variants = ["A", "B"] as const;
type Variant = (typeof variants)[number];
const livesPerPart = 500;

// Returns false when a mismatch was found.
async function runVariant(variant: Variant, plan: Plan): Promise<boolean> {
  const startedAt = performance.now();
  const deadline = startedAt + (plan.withinMs ?? Infinity);
  let [lives, steps] = [0, 0];
  for (let begun = 0; begun < plan.lives && performance.now() < deadline; begun += livesPerPart) {
    const found = await runPart(variant, {
      ...plan,
      lives: Math.min(livesPerPart, plan.lives - begun),
      seed: plan.seed + begun,
      withinMs: deadline - performance.now(),
    });
    lives += found.lives;
    steps += found.steps;
    const rate = Math.round((steps * 1_000) / (performance.now() - startedAt));
    console.log(`Variant ${variant}, seed ${plan.seed}: ${lives} lives of ${steps} steps, ${rate} steps/s`);
    if (found.failures.length > 0) return false;
  }
  console.log("no counterexample, and no broken invariant");
  return true;
}

async function runPart(variant: Variant, plan: Plan): Promise<Found> {
  const endings: (() => unknown)[] = [];
  try {
    const service = await openService({ teardown: (ending: () => unknown) => void endings.push(ending) }, variant, 300);
    const found = await search(service, plan);
    // Before the endings, which may throw.
    for (const failure of found.failures) console.log(failure);
    if (found.failures.length === 0) await service.close();
    return found;
  } finally {
    // The last of them checks the invariants, and throws if one is broken.
    for (const ending of endings.reverse()) await ending();
  }
}

async function runModel(chosen: Variant | undefined, plan: Plan): Promise<void> {
  const server = await startServer();
  const prefix = `coupon_model_${Date.now().toString(36)}_`;
  let isFine = true;
  try {
    const template = await makeTemplate(server.address, prefix);
    process.env["COUPON_TEST_RUN"] = JSON.stringify({ prefix, template, server: server.address });
    for (const variant of variants)
      if (variant === (chosen ?? variant)) isFine = (await runVariant(variant, plan)) && isFine;
  } finally {
    await dropDatabases(server.address, prefix);
    await server.stop();
  }
  process.exit(isFine ? 0 : 1);
}

const replayForm = /^(-?\d+):([\d:]+)$/;

const command = defineCommand({
  name: "model",
  about:
    "Compares random coupon lives with a small model of the rules. It ends after the given runs or minutes, or at " +
    "the first mismatch, which it shrinks and prints with its --replay.",
  flags: {
    variant: { type: "text", value: "NAME", about: "A or B (both, one after the other)", choices: variants },
    runs: { type: "count", value: "N", about: "coupon lives per variant", default: 10_000 },
    seed: { type: "count", value: "N", about: "repeats a run (a new seed)" },
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
  async run({ flags: { variant, runs, seed, minutes, replay } }) {
    const [, replaySeed, path] = replayForm.exec(replay ?? "") ?? [];
    await runModel(variant as Variant | undefined, {
      lives: replay === undefined ? runs : 1,
      seed: seed ?? 1 + (Date.now() % 999_999_999),
      ...(minutes !== undefined && { withinMs: minutes * 60_000 }),
      ...(path !== undefined && { replay: { seed: Number(replaySeed), path } }),
    });
  },
});

await runCommand("npm run model", command);
