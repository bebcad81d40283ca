// npm run chaos [-- --seed N --cycles 30 --rate 200 --fault NAME]: breaks the service in every way it knows while clients use it,
// and proves that nothing was lost, done twice or made up. Exit code 1 when something was, or when an answer came too late.
import { parseArgs } from "node:util";
import { onStop, runProgram } from "../../src/common/program.ts";
import { runChaos, type Report } from "./chaos.ts";
import { chooseFaults, faults } from "./faults.ts";

const usage = `npm run chaos [-- OPTIONS]
  --seed N      of a run that is to be had again: the same operations, the same faults (a new one)
  --cycles N    faults, one after the other (30)
  --rate N      requests a second (200)
  --fault NAME  this one only: ${Object.keys(faults).join(", ")}`;

await runProgram(async () => {
  const options = readOptions();
  if (options === null) return console.log(usage);
  const { seed, cycles, rate, fault } = options;
  // The programs and the server end with us; what is left in folders is removed by the next run.
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

function printReport(
  { cycles, resumed, calls, answers, slowestMs, overdue, ownPauseMs, findings, failures }: Report,
  seed: number,
): void {
  const worst = (within: number): string => {
    const times = cycles
      .filter(({ withinMs }) => withinMs === within)
      .map(({ servedAfterMs }) => servedAfterMs ?? Infinity);
    return times.length === 0 ? "-" : `${(Math.max(...times) / 1_000).toFixed(2)} s`;
  };
  const paused = (work: string): string => {
    const times = resumed.filter((one) => one.work === work).map(({ afterMs }) => afterMs ?? Infinity);
    return times.length === 0 ? "-" : `${(Math.max(...times) / 1_000).toFixed(1)} s`;
  };
  const { checked } = findings;
  console.log(`
calls                          ${calls}: ok ${checked.ok}, refused ${checked.refused}, turned away ${checked.turnedAway}
answers                        ${Object.entries(answers)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ")}
slowest answer                 ${(slowestMs / 1_000).toFixed(2)} s at the client; ${overdue} took longer than 4 s; the client itself stood still for up to ${(ownPauseMs / 1_000).toFixed(2)} s
served again, API harmed       at most ${worst(2_000)} after
served again, database harmed  at most ${worst(5_000)} after
worker goes on                 mint ${paused("mint")}, deliver ${paused("deliver")}, sequence ${paused("sequence")} after, at most
lost ok ${findings.lost.length}, phantom refused ${findings.phantom.length}, contradictions ${findings.contradictions.length}, invariants ${findings.invariants.length} rows, corruption ${findings.corruption.length}, deadlocks ${findings.deadlocks}
${failures.length === 0 ? "all held" : `${failures.length} failures; again with: npm run chaos -- --seed ${seed}`}`);
}
