// npm run bench [-- NAME…]: measures the service on this machine and prints tables. README.md in this folder says what
// each bench measures. A run ends by reading report.invariants. A broken invariant or a wrong answer makes the exit
// code 1.
import { cpus, release, totalmem } from "node:os";
import { defineCommand } from "../../../src/command-line/command.ts";
import { onStop } from "../../../src/common/program.ts";
import { runCommand } from "../../../src/command-line/run-command.ts";
import { asAdmin } from "../../support/database.ts";
import { stopLoggedPrograms } from "../../support/logged-program.ts";
import { benchCells } from "./cells.ts";
import { openEnvironment, startServer, type Environment, type Run, type Server } from "./environment.ts";
import { benchFeed } from "./feed.ts";
import { benchInstructions } from "./instructions.ts";
import { printTable, type Row } from "./measure.ts";
import { benchMint } from "./mint.ts";
import { benchRedemptions } from "./redemptions.ts";
import { benchReports } from "./reports.ts";
import { benchRouter } from "./router.ts";
import { benchScale } from "./scale.ts";
import { benchStatement } from "./statement.ts";
import { benchTills } from "./tills.ts";
import { benchWebhooks } from "./webhooks.ts";

type Bench = {
  measure: (run: Run) => Promise<Row[]>;
  /** `size` counts these. */
  unit: string;
  size: number;
  /** With --small: only to see that the bench works. */
  small: number;
  /** Why it runs only when it is named. */
  byName?: string;
};

const benches: Record<string, Bench> = {
  redemptions: {
    measure: benchRedemptions,
    unit: "redemptions of a round on 64 connections",
    size: 25_000,
    small: 300,
  },
  tills: { measure: benchTills, unit: "seconds of a round", size: 5, small: 0.2 },
  mint: { measure: benchMint, unit: "coupons of the larger batch", size: 100_000, small: 2_000 },
  feed: { measure: benchFeed, unit: "events", size: 100_000, small: 300 },
  webhooks: { measure: benchWebhooks, unit: "events", size: 100_000, small: 300 },
  statement: { measure: benchStatement, unit: "entries of the day", size: 1_000_000, small: 500 },
  scale: { measure: benchScale, unit: "coupons", size: 10_000_000, small: 3_000, byName: "takes half an hour" },
  reports: { measure: benchReports, unit: "coupons", size: 1_000_000, small: 5_000, byName: "takes ten minutes" },
  router: {
    measure: benchRouter,
    unit: "redemptions of a round on 96 connections",
    size: 4_000,
    small: 100,
    byName: "needs PL/Proxy",
  },
  cells: {
    measure: benchCells,
    unit: "redemptions of a round for each cell",
    size: 1_000,
    small: 60,
    byName: "needs PL/Proxy",
  },
  instructions: { measure: benchInstructions, unit: "groups and calls", size: 20, small: 1, byName: "needs valgrind" },
};
const names = Object.keys(benches);
const usual = names.filter((name) => benches[name]!.byName === undefined);
const others = names.flatMap((name) => (usual.includes(name) ? [] : [`${name} (${benches[name]!.byName})`]));

type Options = { rounds: number; size: number | undefined; small: boolean; against: string | undefined };

async function measure(chosen: string[], { rounds, size, small, against }: Options): Promise<void> {
  const server = await startServer(process.env["BENCH_DATABASE_URL"]?.trim() || undefined);
  let ending: Promise<void> | undefined;
  const end = () => (ending ??= stopLoggedPrograms().then(server.stop));
  onStop(end);
  try {
    console.log(await describeMachine(server));
    let environment: Environment | undefined;
    const open = async () => (environment ??= await openEnvironment(server));
    for (const name of chosen) {
      const bench = benches[name]!;
      const amount = size ?? (small ? bench.small : bench.size);
      const run = { server, open, size: amount, rounds: small ? 1 : rounds, against };
      printTable(`${name} (${bench.unit}: ${run.size}, rounds: ${run.rounds})`, await bench.measure(run));
    }
    await environment?.close();
  } finally {
    await end();
  }
  process.exit(0);
}

async function describeMachine({ address }: Server): Promise<string> {
  const query = "select current_setting('server_version') as version";
  const [row] = await asAdmin(address, (admin) => admin.rows<{ version: string }>(query));
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? "unknown"}, ${memory}, Linux ${release()}`;
  return `${machine}, Node ${process.version}, PostgreSQL ${row!.version}`;
}

const command = defineCommand({
  name: "bench",
  about:
    "Measures the service on this machine and prints tables. It creates and drops databases coupon_bench_…, and " +
    "ignores DATABASE_URL, so that nobody measures on a database in use by mistake.",
  words: {
    name: {
      about: `any of ${names.join(", ")}; without a name all except ${others.join(", ")}`,
      isOptional: true,
      isRepeated: true,
      choices: names,
    },
  },
  flags: {
    rounds: {
      type: "count",
      value: "N",
      default: 3,
      about: "measured rounds of each program, of which the median counts",
    },
    size: { type: "count", value: "N", about: "how much is measured, of one bench; the title of its table says what" },
    against: {
      type: "text",
      value: "DIR",
      about: "a checkout of another revision, with its packages, that redemptions are compared with",
    },
    small: { type: "switch", about: "one round of the smallest size, only to see that the benches work" },
  },
  settings: { BENCH_DATABASE_URL: "an existing server, with a superuser's login (an embedded server for this run)" },
  examples: ["redemptions", "redemptions --against ../before", "scale --size 1000000", "--small"],
  exitCodes: "0 done, 1 a wrong answer, a broken invariant or a missing tool",
  refuse: ({ words: { name }, flags: { size, against } }) => {
    if (size !== undefined && name.length !== 1) return "--size needs the name of one bench";
    const isCompared = name.length === 0 || name.includes("redemptions");
    return against !== undefined && !isCompared ? "--against is for redemptions" : null;
  },
  run: ({ words, flags }) => measure(words.name.length === 0 ? usual : words.name, flags),
});

await runCommand("npm run bench", command);
