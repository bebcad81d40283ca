// npm run bench [-- NAME…]: measures the service on this machine, prints tables, and writes a file of results.
// Every benchmark ends by reading report.invariants. A broken invariant or a wrong answer makes the exit code 1.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import path from "node:path";
import { connect } from "../../src/database/connect.ts";
import { defineCommand } from "../../src/common/command.ts";
import { onStop } from "../../src/common/program.ts";
import { runCommand } from "../../src/common/run-command.ts";
import { benchExpire } from "./expire.ts";
import { benchFeed } from "./feed.ts";
import { printReport, type Report } from "./results.ts";
import { benchScale } from "./scale.ts";
import { endChildProcesses } from "./child-process.ts";
import { benchFloods } from "./floods.ts";
import { benchFootprint } from "./footprint.ts";
import { requireValgrind } from "./callgrind.ts";
import { benchInstructions } from "./instructions.ts";
import { benchHeld } from "./latency.ts";
import { benchMint } from "./mint.ts";
import { stopLoggedPrograms } from "../support/logged-program.ts";
import { leaveProgramsAlone } from "../support/watch-answers.ts";
import { rateNames, type RateName } from "./rate-names.ts";
import { benchRates } from "./rates.ts";
import { benchRecovery } from "./recovery.ts";
import { startServer, type Server } from "./server.ts";
import { readSettings, settingTexts, type Settings } from "./settings.ts";
import { openEnvironment } from "./environment.ts";
import { benchReports } from "./reports.ts";
import { benchStatement } from "./statement.ts";
import { benchWebhooks } from "./webhooks.ts";

type Bench = (server: Server, settings: Settings) => Promise<Report>;

// Each of these has its own environment and coupon pool; sharedNames share one.
const benches: Record<string, Bench> = {
  mint: benchMint,
  expire: benchExpire,
  feed: benchFeed,
  webhooks: benchWebhooks,
  statement: benchStatement,
  scale: benchScale,
  footprint: benchFootprint,
  floods: benchFloods,
  reports: benchReports,
  instructions: benchInstructions,
  recovery: benchRecovery,
};
const sharedNames = [...rateNames, "held"] as const;
const byNameOnly = new Set(["scale", "footprint", "floods", "reports", "instructions", "recovery"]);
const names = [...sharedNames, ...Object.keys(benches)];

async function measure(wanted: string[]): Promise<void> {
  const isShort = wanted.length === 0;
  const chosen: string[] = isShort ? names.filter((name) => !byNameOnly.has(name)) : wanted;
  const settings = readSettings(isShort);
  if (chosen.includes("instructions")) requireValgrind();
  // A test only wants to know whether the benchmarks work.
  if (process.env["COUPON_TEST_RUN"] === undefined) leaveProgramsAlone();
  const server = await startServer(settings.databaseUrl);
  let ending: Promise<void> | undefined;
  const end = () => (ending ??= endAll(server));
  onStop(end);
  try {
    const machine = await describeMachine(server);
    console.log(Object.values(machine).join(", "));
    const reports: Record<string, Report> = {};
    const add = (name: string, report: Report): void => {
      printReport(name, report);
      reports[name] = report;
      const shown = { ...settings, databaseUrl: undefined, resultsFile: undefined };
      const written = { at: new Date(), machine, settings: shown, reports };
      writeFileSync(settings.resultsFile, `${JSON.stringify(written, null, 2)}\n`);
    };
    await runShared(chosen, server, settings, add);
    for (const [name, bench] of Object.entries(benches))
      if (chosen.includes(name)) add(name, await bench(server, settings));
    console.log(`\n${path.relative(process.cwd(), settings.resultsFile)} written`);
  } finally {
    await end();
  }
  process.exit(0);
}

async function endAll(server: Server): Promise<void> {
  endChildProcesses();
  await stopLoggedPrograms();
  await server.stop();
}

async function runShared(
  chosen: string[],
  server: Server,
  settings: Settings,
  add: (name: string, report: Report) => void,
): Promise<void> {
  if (!sharedNames.some((name) => chosen.includes(name))) return;
  const environment = await openEnvironment(server);
  const pool = await environment.makePool(settings.coupons);
  const rates = rateNames.filter((name): name is RateName => chosen.includes(name));
  if (rates.length > 0) add("rates", await benchRates(environment, pool, rates, settings));
  if (chosen.includes("held")) add("held", await benchHeld(environment, pool, settings));
  await environment.close();
}

async function describeMachine(server: Server): Promise<Record<string, string>> {
  const database = connect(server.address, { name: "coupon bench", max: 1 });
  const [row] = await database.rows<{ version: string }>("select current_setting('server_version') as version");
  await database.end();
  return {
    cores: `${cpus().length} × ${cpus()[0]?.model ?? "unknown"}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    system: `Linux ${release()}`,
    node: `Node ${process.version}`,
    database: `PostgreSQL ${row!.version}${server.postmasterPid === null ? ", existing" : ", embedded"}`,
    commit: commitOf(),
  };
}

function commitOf(): string {
  try {
    return execFileSync("git", ["describe", "--always", "--dirty"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return "no git";
  }
}

const command = defineCommand({
  name: "bench",
  about:
    "Measures the service on this machine, prints tables and writes a file of results. It creates and drops " +
    "databases coupon_bench_…, and ignores DATABASE_URL, so that nobody measures on a database in use by mistake.",
  words: {
    name: {
      about: `one or more of ${names.join(", ")}; without a name all except ${[...byNameOnly].join(", ")}`,
      isOptional: true,
      isRepeated: true,
      choices: names,
    },
  },
  settings: settingTexts,
  examples: ["floor http fixed", "BENCH_SECONDS=20 fixed", "instructions"],
  exitCodes: "0 done, 1 a wrong answer, a broken invariant, valgrind is missing or failed",
  run: ({ words }) => measure(words.name),
});

await runCommand("npm run bench", command);
