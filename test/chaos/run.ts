// npm run chaos causes every known fault while clients use the service, and checks that nothing is lost, done twice or
// invented.
import { defineCommand } from "../../src/common/command.ts";
import { onStop } from "../../src/common/program.ts";
import { runCommand } from "../../src/common/run-command.ts";
import { runChaos, type Report } from "./chaos.ts";
import { chooseFaults, faults } from "./faults.ts";

type Options = { seed: number; cycles: number; rate: number; fault: string | null };

async function runFaults({ seed, cycles, rate, fault }: Options): Promise<void> {
  // The programs and the server end with this process. The next run removes leftover folders.
  onStop(async () => {});
  const { names, skipped } = chooseFaults(seed, cycles, fault);
  for (const line of skipped) console.log(line);
  console.log(`seed ${seed}: ${cycles} cycles at ${rate} requests/s`);
  const report = await runChaos(
    { seed, perSecond: rate, names, slack: 1, print: (line) => console.log(line) },
    Math.max(2_000, cycles * rate * 4),
  );
  printReport(report, seed);
  process.exit(report.failures.length === 0 ? 0 : 1);
}

function printReport(report: Report, seed: number): void {
  const { cycles, resumed, calls, answers, slowestMs, overdue, ownPauseMs, findings, failures } = report;
  const { checked, lost, phantom, contradictions, invariants, corruption, deadlocks } = findings;
  const seconds = (ms: number, digits = 2) => `${(ms / 1_000).toFixed(digits)} s`;
  const longest = (times: (number | null)[], digits?: number): string =>
    times.length === 0 ? "-" : seconds(Math.max(...times.map((time) => time ?? Infinity)), digits);
  const servedAfter = (limitMs: number): string =>
    longest(cycles.filter(({ withinMs }) => withinMs === limitMs).map(({ servedAfterMs }) => servedAfterMs));
  const pauseOf = (work: string): string =>
    longest(
      resumed.filter((one) => one.work === work).map(({ afterMs }) => afterMs),
      1,
    );
  const resumes = ["mint", "deliver", "sequence"].map((kind) => `${kind} ${pauseOf(kind)}`);
  const lines = {
    calls: `${calls}: ok ${checked.ok}, refused ${checked.refused}, unprocessed ${checked.unprocessed}`,
    answers: Object.entries(answers)
      .map(([name, count]) => `${name} ${count}`)
      .join(", "),
    "slowest answer":
      `${seconds(slowestMs)} at the client; ${overdue} took longer than 4 s; ` +
      `the client itself paused for up to ${seconds(ownPauseMs)}`,
    "served after an API fault": `at most ${servedAfter(2_000)}`,
    "served after a database fault": `at most ${servedAfter(5_000)}`,
    "worker resumes": `${resumes.join(", ")}, at most`,
    findings:
      `lost ${lost.length}, phantom ${phantom.length}, contradictions ${contradictions.length}, ` +
      `broken invariants ${invariants.length}, corruption ${corruption.length}, deadlocks ${deadlocks}`,
  };
  console.log();
  for (const [name, text] of Object.entries(lines)) console.log(`${name.padEnd(31)}${text}`);
  console.log(
    failures.length === 0 ? "all held" : `${failures.length} failures; repeat with: npm run chaos -- --seed ${seed}`,
  );
}

const command = defineCommand({
  name: "chaos",
  about:
    "Breaks the service under load, then proves that nothing was lost, done twice or made up. It starts a database, " +
    "serve and work for this run.",
  flags: {
    seed: { type: "count", value: "N", about: "repeats a run: the same operations and faults (a new seed)" },
    cycles: { type: "count", value: "N", about: "number of faults, one after the other", default: 30 },
    rate: { type: "count", value: "N", about: "requests per second", default: 200 },
    fault: {
      type: "text",
      value: "NAME",
      about: `only this fault: ${Object.keys(faults).join(", ")}`,
      choices: Object.keys(faults),
    },
  },
  examples: ["--cycles 10", '--seed 7 --fault "kill api"'],
  exitCodes: "0 all held, 1 something was lost, wrong or too late, or failed",
  run: ({ flags: { seed, fault, ...more } }) =>
    runFaults({ ...more, seed: seed ?? 1 + Math.floor(Math.random() * 1_000_000), fault: fault ?? null }),
});

await runCommand("npm run chaos", command);
