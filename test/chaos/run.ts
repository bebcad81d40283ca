// npm run chaos [-- --seed N --cycles 30 --rate 200 --fault NAME]: causes every known fault while clients use the
// service, and checks that nothing is lost, done twice or invented. The exit code is 1 if something is, or if an answer
// came too late.
import { parseArgs } from "node:util";
import { onStop, runProgram } from "../../src/common/program.ts";
import { runChaos, type Report } from "./chaos.ts";
import { chooseFaults, faults } from "./faults.ts";

const usage = `npm run chaos [-- OPTIONS]
  --seed N      repeats a run: the same operations and faults (default: a new seed)
  --cycles N    number of faults, one after the other (30)
  --rate N      requests per second (200)
  --fault NAME  only this fault: ${Object.keys(faults).join(", ")}`;

await runProgram(async () => {
  const options = readOptions();
  if (options === null) return console.log(usage);
  const { seed, cycles, rate, fault } = options;
  // The programs and the server end with this process. The next run removes leftover folders.
  onStop(async () => {});
  const { names, skipped } = chooseFaults(seed, cycles, fault);
  for (const line of skipped) console.log(line);
  console.log(`seed ${seed}: ${cycles} cycles at ${rate} requests/s`);
  const report = await runChaos(
    { seed, perSecond: rate, names, print: (line) => console.log(line) },
    Math.max(2_000, cycles * rate * 4),
  );
  printReport(report, seed);
  process.exit(report.failures.length === 0 ? 0 : 1);
});

function readOptions(): { seed: number; cycles: number; rate: number; fault: string | null } | null {
  try {
    const { values } = parseArgs({
      options: {
        seed: { type: "string" },
        cycles: { type: "string", default: "30" },
        rate: { type: "string", default: "200" },
        fault: { type: "string" },
      },
    });
    const [seed, cycles, rate] = [
      Number(values.seed ?? Math.floor(Math.random() * 1_000_000)),
      Number(values.cycles),
      Number(values.rate),
    ];
    const isFault = values.fault === undefined || Object.hasOwn(faults, values.fault);
    return [seed, cycles, rate].every((number) => Number.isInteger(number) && number > 0) && isFault
      ? { seed, cycles, rate, fault: values.fault ?? null }
      : null;
  } catch {
    return null;
  }
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
