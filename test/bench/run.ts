// npm run bench [-- NAME…]: measures the service on this machine, prints tables, and writes a file of the results.
// Every bench ends with a look at report.invariants; a broken law, or a wrong answer, is exit code 1.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import path from "node:path";
import { connect } from "../../src/database/connect.ts";
import { onStop, runProgram } from "../../src/common/program.ts";
import { benchExpire } from "./expire.ts";
import { benchFeed } from "./feed.ts";
import { printTable, type Report } from "./figures.ts";
import { benchScale } from "./scale.ts";
import { endHelpers } from "./child-process.ts";
import { benchFloods } from "./floods.ts";
import { benchFootprint } from "./footprint.ts";
import { benchFixed, benchHeld, benchSingle } from "./latency.ts";
import { benchMint } from "./mint.ts";
import { stopPrograms } from "./programs.ts";
import { benchRates, rateNames, type RateName } from "./rates.ts";
import { startServer, type Server } from "./server.ts";
import { readSettings, settingsText, type Settings } from "./settings.ts";
import { openStage } from "./environment.ts";
import { benchStatement } from "./statement.ts";
import { benchWebhooks } from "./webhooks.ts";

type Bench = (server: Server, settings: Settings) => Promise<Report>;

// With a stage and a deck of its own each, but for those that share one.
const benches: Record<string, Bench> = {
  mint: benchMint,
  expire: benchExpire,
  feed: benchFeed,
  webhooks: benchWebhooks,
  statement: benchStatement,
  scale: benchScale,
  footprint: benchFootprint,
  floods: benchFloods,
};
const onOneStage = [...rateNames, "fixed", "single", "held"] as const;
const byNameOnly = new Set(["scale", "footprint", "floods"]);
const names = [...onOneStage, ...Object.keys(benches)];

await runProgram(async () => {
  const wanted = process.argv.slice(2);
  if (wanted.some((name) => name.startsWith("-")))
    return console.log(
      `${settingsText}\n\nNAME: ${names.join(", ")}\nWithout a name: all but ${[...byNameOnly].join(" and ")}`,
    );
  const unknown = wanted.find((name) => !(names as string[]).includes(name));
  if (unknown !== undefined) throw new Error(`no bench ${unknown}: ${names.join(", ")}`);
  const isShort = wanted.length === 0;
  const chosen: string[] = isShort ? names.filter((name) => !byNameOnly.has(name)) : wanted;
  const settings = readSettings(isShort);
  const server = await startServer(settings.databaseUrl);
  let ending: Promise<void> | undefined;
  const end = () => (ending ??= endAll(server));
  onStop(end);
  try {
    const machine = await describeMachine(server);
    console.log(Object.values(machine).join(", "));
    const reports: Record<string, Report> = {};
    const add = (name: string, report: Report): void => {
      printTable(name, report.figures);
      reports[name] = report;
      writeFileSync(
        settings.resultsFile,
        `${JSON.stringify({ at: new Date(), machine, settings: { ...settings, databaseUrl: undefined, resultsFile: undefined }, reports }, null, 2)}\n`,
      );
    };
    await runOnOneStage(chosen, server, settings, add);
    for (const [name, bench] of Object.entries(benches))
      if (chosen.includes(name)) add(name, await bench(server, settings));
    console.log(`\n${path.relative(process.cwd(), settings.resultsFile)} written`);
  } finally {
    await end();
  }
  process.exit(0);
});

async function endAll(server: Server): Promise<void> {
  endHelpers();
  await stopPrograms();
  await server.stop();
}

async function runOnOneStage(
  chosen: string[],
  server: Server,
  settings: Settings,
  add: (name: string, report: Report) => void,
): Promise<void> {
  if (!onOneStage.some((name) => chosen.includes(name))) return;
  const stage = await openStage(server);
  const deck = await stage.makeDeck(settings.coupons);
  const rates = rateNames.filter((name): name is RateName => chosen.includes(name));
  if (rates.length > 0) add("rates", await benchRates(stage, deck, rates, settings));
  if (chosen.includes("fixed")) add("fixed", await benchFixed(stage, deck, settings));
  if (chosen.includes("single")) add("single", await benchSingle(stage, deck, settings));
  if (chosen.includes("held")) add("held", await benchHeld(stage, deck, settings));
  await stage.close();
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
    database: `PostgreSQL ${row!.version}${server.postmasterPid === null ? ", given" : ", embedded"}`,
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
