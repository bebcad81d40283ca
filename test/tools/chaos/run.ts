// npm run chaos causes every known fault while clients use the service, and checks that nothing is lost, done twice or
// invented, and that every answer has an explanation.
import { cpSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { defineCommand } from "../../../src/command-line/command.ts";
import { onStop } from "../../../src/common/program.ts";
import { runCommand } from "../../../src/command-line/run-command.ts";
import { runCycles } from "./chaos.ts";
import { openEnvironment, type Environment } from "./environment.ts";
import { chooseFaults, faults } from "./faults.ts";

type Options = { seed: number; cycles: number; clients: number; fault: string | null };

async function runFaults({ seed, cycles, clients, fault }: Options): Promise<void> {
  // The programs and the server end with this process. The next run removes leftover folders.
  onStop(async () => {});
  const names = chooseFaults(seed, cycles, fault);
  const print = (line: string) => console.log(line);
  print(`seed ${seed}: ${cycles} cycles with ${clients} clients`);
  const ends: (() => unknown)[] = [];
  const coupons = Math.max(2_000, cycles * clients * 20);
  const environment = await openEnvironment({ teardown: (end: () => unknown) => void ends.push(end) }, coupons);
  const report = await runCycles(environment, { seed, clients, names, slack: 1, print });
  const { failures, slowestMs } = report;
  const verdict = failures.length === 0 ? "all held" : `${failures.length} failures`;
  print(
    `${verdict}, the slowest answer took ${Math.round(slowestMs)} ms; repeat with --seed ${seed} --cycles ${cycles}`,
  );
  if (failures.length > 0) print(`logs: ${keepLogs(environment)}`);
  for (const end of ends.reverse()) await end();
  process.exit(failures.length === 0 ? 0 : 1);
}

// Keeps the logs of a failed run for analysis.
function keepLogs({ logFolder, serverLog }: Environment): string {
  const kept = mkdtempSync(path.join(tmpdir(), "coupon-chaos-logs-"));
  cpSync(logFolder, kept, { recursive: true, filter: (name) => name === logFolder || name.endsWith(".log") });
  writeFileSync(path.join(kept, "server.log"), serverLog());
  return kept;
}

const command = defineCommand({
  name: "chaos",
  about:
    "Breaks the service under load, then proves that nothing was lost, done twice or made up, and that every answer " +
    "has an explanation. It starts a database, serve and work for this run.",
  flags: {
    seed: { type: "count", value: "N", about: "repeats a run: the same operations and faults (a new seed)" },
    cycles: { type: "count", value: "N", about: "number of faults, one after the other", default: 30 },
    clients: { type: "count", value: "N", about: "each sends about five requests per second", default: 40 },
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
