// How the programs start and stop: what they write, and what they leave alone when their port is taken.
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { text } from "node:stream/consumers";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import t, { type Test } from "tap";
import { createEmptyDatabase } from "../support/database.ts";
import { readCatalog } from "../support/catalog.ts";
import { closeIdleConnections, sendPlain } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { listenOnLoopback } from "../support/listen.ts";
import { environmentOf, exitCodeOf, spawnProgram, untilPrinted } from "../support/program.ts";
import { scrape } from "../support/scrape.ts";
import { startService } from "../support/service.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";

type Line = { level: number; msg?: string; signal?: string; duration_ms?: number; url?: string };
// What a program with METRICS_PORT serves when it is ready: the programs that its metrics are about, and the status of
// the API description, null if it has no HTTP side.
type Served = { measured: string[]; description: number | null };
type Ended = { code: number | null; lines: Line[]; stdout: string; stderr: string; served: Served | null };

const info = 30;

function makeDataDir(t: Test): string {
  const folder = useTemporaryFolder(t, "coupon-start-");
  return path.join(folder, "data");
}

async function readServed([, url, metricsUrl]: RegExpExecArray): Promise<Served> {
  const description = url === undefined ? null : (await sendPlain(url, "GET", "/openapi/a.json")).status;
  const seen = await scrape({ url: metricsUrl! });
  closeIdleConnections();
  // On a busy machine the database may answer too late. Then the value is 0, but the metric is still there.
  const isMeasured = (program: string) => seen.has(`coupon_database_up{program="${program}"}`);
  return { measured: ["serve", "work"].filter(isMeasured), description };
}

// Starts a program, sends the signal when it has printed the pattern, and returns what it wrote until its end.
async function run(
  t: Test,
  name: string,
  env: Record<string, string>,
  { until, signal = "SIGTERM" }: { until?: RegExp; signal?: NodeJS.Signals } = {},
): Promise<Ended> {
  const program = spawnProgram(name, { env }) as ChildProcessWithoutNullStreams;
  t.teardown(() => program.kill("SIGKILL"));
  const output = Promise.all([text(program.stdout), text(program.stderr)]);
  let served: Served | null = null;
  if (until !== undefined) {
    const urls = /(?:"url":"(\S+?)",)?"metrics_url":"(\S+?)"/;
    const hasUrls = env["METRICS_PORT"] !== undefined;
    const [found] = await Promise.all([hasUrls && untilPrinted(program, urls), untilPrinted(program, until)]);
    if (found) served = await readServed(found);
    program.kill(signal);
  }
  const code = await exitCodeOf(program);
  const [stdout, stderr] = await output;
  const lines = stdout.split("\n").filter((line) => line.startsWith("{"));
  return { code, stdout, stderr, served, lines: lines.map((line) => JSON.parse(line) as Line) };
}

// Without answers, which have no message, and the nightly check, which may come in between.
const messagesOf = ({ lines }: Ended): string[] =>
  lines.map(({ msg = "" }) => msg.replace(/\d+/g, "n")).filter((message) => !/^($|self-check)/.test(message));

function endedInOrder(t: Test, ended: Ended, signal: NodeJS.Signals): void {
  t.strictSame([ended.code, ended.stderr], [0, ""]);
  fits(t, ended.lines.at(-1), { msg: "stopped", signal, duration_ms: Number });
  t.strictSame(
    ended.lines.filter(({ level }) => level !== info),
    [],
    "no warning",
  );
}

t.test("npm start logs one line when it is ready and one when it stops, and the server logs no error", async (t) => {
  const dataDir = makeDataDir(t);
  const env = { DATA_DIR: dataDir, PORT: "0", METRICS_PORT: "0" };
  const first = await run(t, "start", env, { until: /Listening on/ });
  endedInOrder(t, first, "SIGTERM");
  t.strictSame(messagesOf(first), ["migrated: n migrations, n functions and views", "serving and working", "stopped"]);
  t.strictSame(first.served, { measured: ["serve", "work"], description: 200 });
  const second = await run(t, "start", { ...env, DOCS: "off" }, { until: /Listening on/, signal: "SIGINT" });
  endedInOrder(t, second, "SIGINT");
  t.strictSame(messagesOf(second), ["serving and working", "stopped"]);
  t.strictSame(second.served, { measured: ["serve", "work"], description: 404 });
  fits(t, second.lines[0], { url: /^http:\/\/127\.0\.0\.1:\d+$/, metrics_url: /^http:\S+\/metrics$/ });
  const serverLog = readFileSync(path.join(dataDir, "postgres/server.log"), "utf8");
  t.strictSame(
    serverLog.split("\n").filter((line) => /\b(WARNING|ERROR|FATAL|PANIC):/.test(line)),
    [],
  );
});

t.test("serve and work log one line when they are ready and one when they stop", async (t) => {
  const env = { ...environmentOf(await startService(t)), METRICS_PORT: "0", DOCS: "off" };
  for (const [name, message, description] of [
    ["serve", "serving", 404],
    ["work", "working", null],
  ] as const) {
    const ended = await run(t, name, env, { until: new RegExp(`"${message}"`) });
    endedInOrder(t, ended, "SIGTERM");
    t.strictSame(messagesOf(ended), [message, "stopped"]);
    t.strictSame(ended.served, { measured: [name], description });
  }
});

t.test("npm start that is stopped while it starts ends with exit code 0", async (t) => {
  const env = { DATA_DIR: makeDataDir(t), PORT: "0" };
  const ended = await run(t, "start", env, { until: /migrated/ });
  endedInOrder(t, ended, "SIGTERM");
});

t.test("a program whose port is taken says which setting to change, and changes nothing", async (t) => {
  const other = createServer();
  const taken = String(await listenOnLoopback(other));
  t.teardown(() => other.close());
  const dataDir = makeDataDir(t);
  const { address, drop } = await createEmptyDatabase();
  t.teardown(drop);
  const database = environmentOf({ address, masterKeyText: Buffer.alloc(32, 1).toString("base64") });
  const before = await readCatalog(address);
  const message = (setting: string) =>
    `${setting}: 127.0.0.1:${taken} is in use: stop the program that listens there, or set another port\n`;
  const rows: [string, string, Record<string, string>][] = [
    ["start", "PORT", { DATA_DIR: dataDir }],
    ["start", "METRICS_PORT", { DATA_DIR: dataDir, PORT: "0" }],
    ["start", "PORT", database],
    ["serve", "PORT", database],
    ["serve", "METRICS_PORT", database],
    ["work", "METRICS_PORT", database],
  ];
  for (const [name, setting, env] of rows) {
    const { code, stdout, stderr } = await run(t, name, { ...env, [setting]: taken });
    t.strictSame({ code, stdout, stderr }, { code: 1, stdout: "", stderr: message(setting) }, `${name} ${setting}`);
  }
  t.notOk(existsSync(dataDir), "no embedded database was made");
  t.strictSame(await readCatalog(address), before);
});
