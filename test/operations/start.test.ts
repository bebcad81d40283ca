// How the programs start and stop: what they write, what they leave alone when their port is taken, and that an open
// call gets its answer.
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import t, { type Test } from "tap";
import { formatUrl, type Address } from "../../src/config/database-address.ts";
import { asOwner } from "../support/as-owner.ts";
import { createCaller } from "../support/caller.ts";
import { readCatalog } from "../support/catalog.ts";
import { closeIdleConnections, createClient, sendPlain } from "../support/client.ts";
import { asAdmin, createDatabase, createEmptyDatabase, readRun } from "../support/database.ts";
import { fits } from "../support/fits.ts";
import { listenOnLoopback } from "../support/listen.ts";
import { environmentOf, launch, runProgram, type Result } from "../support/program.ts";
import { untilBlocked } from "../support/race.ts";
import { scrape } from "../support/scrape.ts";
import { scenario } from "../support/scenario.ts";
import { holdCoupon } from "../support/sessions.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";
import { secretOf } from "../support/tenants.ts";
import { waitUntil } from "../support/wait-until.ts";

type Line = { level: number; msg?: string; signal?: string; duration_ms?: number; url?: string };

const info = 30;
const service = await scenario(t);
const empty = await createEmptyDatabase();
t.teardown(empty.drop);
const dataDir = path.join(useTemporaryFolder(t, "coupon-start-"), "data");

const linesOf = ({ stdout }: Result): Line[] =>
  stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Line);

function endedInOrder(t: Test, ended: Result, signal: NodeJS.Signals): void {
  t.strictSame([ended.code, ended.stderr], [0, ""]);
  const lines = linesOf(ended);
  fits(t, lines.at(-1), { msg: "stopped", signal, duration_ms: Number });
  const warnings = lines.filter(({ level }) => level !== info);
  t.strictSame(warnings, []);
}

// Without answers, which have no message, and the nightly check, which may come in between.
const messagesOf = (ended: Result): string[] =>
  linesOf(ended)
    .map(({ msg = "" }) => msg.replace(/\d+/g, "n"))
    .filter((message) => !/^($|self-check)/.test(message));

// Starts a program with metrics, and stops it when it is ready. Returns the programs that its metrics are about, and
// the status of the API description, null if it has no HTTP side.
async function startAndStop(
  t: Test,
  name: string,
  env: Record<string, string>,
  { ready, signal = "SIGTERM" }: { ready: RegExp; signal?: NodeJS.Signals },
) {
  const { untilPrinted, stop } = launch(t, name, { env: { ...env, METRICS_PORT: "0" } });
  const [, url, metricsUrl = ""] = await untilPrinted(/(?:"url":"(\S+?)",)?"metrics_url":"(\S+?)"/);
  await untilPrinted(ready);
  const description = url === undefined ? null : (await sendPlain(url, "GET", "/openapi/a.json")).status;
  const seen = await scrape({ url: metricsUrl });
  closeIdleConnections();
  // On a busy machine the database may answer too late. Then the value is 0, but the metric is still there.
  const isMeasured = (program: string) => seen.has(`coupon_database_up{program="${program}"}`);
  const ended = await stop(signal);
  endedInOrder(t, ended, signal);
  const hasConsole = ended.stdout.includes("console");
  return { messages: messagesOf(ended), measured: ["serve", "work"].filter(isMeasured), description, hasConsole };
}

t.test("a program whose port is taken says which setting to change, and changes nothing", async (t) => {
  const other = createServer();
  const taken = String(await listenOnLoopback(other));
  t.teardown(() => other.close());
  const database = environmentOf({ ...empty, masterKeyText: Buffer.alloc(32, 1).toString("base64") });
  const before = await readCatalog(empty.address);
  const rows: [name: string, setting: string, env: Record<string, string>][] = [
    ["start", "PORT", { DATA_DIR: dataDir }],
    ["start", "METRICS_PORT", { DATA_DIR: dataDir, PORT: "0" }],
    ["start", "CONSOLE_PORT", { DATA_DIR: dataDir, PORT: "0" }],
    ["serve", "PORT", database],
    ["serve", "METRICS_PORT", database],
    ["work", "METRICS_PORT", database],
    ["console", "CONSOLE_PORT", database],
  ];
  for (const [name, setting, env] of rows) {
    const ended = await runProgram(name, { env: { ...env, [setting]: taken } });
    const advice = "stop the program that listens there, or set another port";
    const stderr = `${setting}: 127.0.0.1:${taken} is in use: ${advice}\n`;
    t.strictSame(ended, { code: 1, stdout: "", stderr }, `${name} ${setting}`);
  }
  t.notOk(existsSync(dataDir), "no embedded database was made");
  t.strictSame(await readCatalog(empty.address), before);
});

// Refuses every login, as a server does whose pg_hba.conf asks for a password.
async function startStrictServer(t: Test): Promise<string> {
  const fields = ["SFATAL", "VFATAL", "C28P01", 'Mpassword authentication failed for user "coupon"', ""];
  const body = Buffer.from(fields.map((field) => `${field}\0`).join(""));
  const head = Buffer.alloc(5);
  head.write("E");
  head.writeInt32BE(body.length + 4, 1);
  const server = createServer((socket) =>
    socket.on("error", () => {}).once("data", () => socket.end(Buffer.concat([head, body]))),
  );
  t.teardown(() => server.close());
  return `postgres://coupon:wrong@127.0.0.1:${await listenOnLoopback(server)}/coupon`;
}

async function makeDatabase(t: Test): Promise<Address> {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  return address;
}

t.test("a start that cannot work ends with one line that says what to change", async (t) => {
  const env = environmentOf(service);
  const urlOf = (address: object) => ({ ...env, DATABASE_URL: formatUrl({ ...service.address, ...address }) });
  const other = `${service.address.database}_login`;
  await asAdmin(readRun().server, (admin) => admin.rows(`create role "${other}" login`));
  t.teardown(() => asAdmin(readRun().server, (admin) => admin.rows(`drop role "${other}"`)));
  const older = await makeDatabase(t);
  await asOwner(older, "update core.code_version set sha256 = 'another'");
  const newer = await makeDatabase(t);
  await asOwner(newer, "insert into core.migration (name, sha256) values ('999-future', '')");
  await asOwner(newer, "update core.code_version set sha256 = 'another'");
  const lacking = await makeDatabase(t);
  await asOwner(lacking, "drop function rules.read_version()");

  const rows: [env: Record<string, string>, message: RegExp][] = [
    [{ ...env, DATABASE_URL: await startStrictServer(t) }, /^DATABASE_URL: password authentication failed for user/],
    [urlOf({ user: "nobody_at_all" }), /^DATABASE_URL: role "nobody_at_all" does not exist$/],
    [urlOf({ database: "none" }), /^DATABASE_URL: database "none" does not exist$/],
    [urlOf({ user: other }), /^DATABASE_URL: permission denied .*: grant that right to the login/],
    [urlOf(empty.address), /^the database is not migrated, or older than this checkout: run `npm run migrate`$/],
    [urlOf(lacking), /^the database is not migrated, or older than this checkout: run `npm run migrate`$/],
    [urlOf(older), /^the database is older than this checkout, or has other functions: .* Run `npm run migrate`$/],
    [urlOf(newer), /^the database is newer than this checkout: it has migration 999-future/],
  ];
  // All three ask the same function, so each row is for one of them, in turn.
  const programs: [name: string, ...args: string[]][] = [
    ["serve"],
    ["work"],
    ["apply", "src/commands/demo-tenants.json"],
  ];
  for (const [index, [given, message]] of rows.entries()) {
    const [name, ...args] = programs[index % programs.length]!;
    const { code, stdout, stderr } = await runProgram(name, { env: given, args });
    fits(t, { code, stdout, stderr: stderr.trimEnd() }, { code: 1, stdout: "", stderr: message }, name);
  }
  const misspelt = await runProgram("migrate", { env: { ...env, RATELIMIT: "5" }, args: ["--status"] });
  fits(t, misspelt, { code: 0, stderr: "RATELIMIT is not a setting; did you mean RATE_LIMIT?\n" });
});

t.test(
  "npm start logs one line when it is ready and one when it stops, and no error; CONSOLE_PORT=off has no console",
  async (t) => {
    const env = { DATA_DIR: dataDir, PORT: "0", CONSOLE_PORT: "off" };
    const ready = /Listening on/;
    fits(t, await startAndStop(t, "start", env, { ready }), {
      messages: ["migrated: n migrations, n functions and views", "serving and working", "stopped"],
      measured: ["serve", "work"],
      description: 200,
      hasConsole: false,
    });
    const second = await startAndStop(t, "start", { ...env, DOCS: "off" }, { ready, signal: "SIGINT" });
    const messages = ["serving and working", "stopped"];
    t.strictSame(second, { messages, measured: ["serve", "work"], description: 404, hasConsole: false });
    const serverLog = readFileSync(path.join(dataDir, "postgres/server.log"), "utf8");
    const errors = serverLog.split("\n").filter((line) => /\b(WARNING|ERROR|FATAL|PANIC):/.test(line));
    t.strictSame(errors, []);
  },
);

t.test("npm start prints a link that signs in to the console once, and logs none", async (t) => {
  const { untilPrinted, stop } = launch(t, "start", { env: environmentOf(service) });
  const [, console = "", token = ""] = await untilPrinted(/\n(http\S+)\/sign-in\?link=(\S+)\n/);
  const signIn = () =>
    fetch(`${console}/sign-in`, { method: "POST", body: new URLSearchParams({ token }), redirect: "manual" });
  const first = await signIn();
  const cookie = first.headers.get("set-cookie")!.split(";")[0]!;
  const overview = await fetch(console, { headers: { cookie }, redirect: "manual" });
  t.strictSame([first.status, overview.status, (await signIn()).status], [303, 200, 403]);
  t.match(await overview.text(), "Sign out link<");
  const ended = await stop();
  endedInOrder(t, ended, "SIGTERM");
  t.notMatch(JSON.stringify(linesOf(ended)), token);
});

t.test(
  "npm start whose login may not act as the console serves the tills, and logs why there are no pages",
  async (t) => {
    const login = `${service.address.database}_shop`;
    const { server } = readRun();
    const roles = "coupon_owner, coupon_api, coupon_worker, coupon_admin";
    await asAdmin(server, (admin) => admin.rows(`create role "${login}" login in role ${roles}`));
    t.teardown(() => asAdmin(server, (admin) => admin.rows(`drop role "${login}"`)));
    const env = environmentOf({ ...service, address: { ...service.address, user: login } });
    const { untilPrinted, stop } = launch(t, "start", { env });
    const [, url = ""] = await untilPrinted(/Listening on (\S+)\. /);
    t.equal((await sendPlain(url, "GET", "/readyz")).status, 200);
    const ended = await stop();
    t.strictSame([ended.code, ended.stderr], [0, ""]);
    t.notMatch(ended.stdout, "/sign-in");
    const failed = linesOf(ended).filter(({ level }) => level > info);
    fits(t, failed, [
      { msg: "the console cannot serve", err: { message: /permission denied to set role "coupon_console"/ } },
    ]);
  },
);

t.test("serve and work log one line when they are ready and one when they stop", async (t) => {
  const env = { ...environmentOf(service), DOCS: "off" };
  for (const [name, message, description] of [
    ["serve", "serving", 404],
    ["work", "working", null],
  ] as const) {
    const found = await startAndStop(t, name, env, { ready: new RegExp(`"${message}"`) });
    t.strictSame(found, { messages: [message, "stopped"], measured: [name], description, hasConsole: false });
  }
});

t.test("npm start that is stopped while it starts ends with exit code 0", async (t) => {
  const env = environmentOf({ ...empty, masterKeyText: service.masterKeyText });
  const { untilPrinted, stop } = launch(t, "start", { env: { ...env, DATA_DIR: dataDir } });
  await untilPrinted(/migrated/);
  endedInOrder(t, await stop(), "SIGTERM");
});

// Stops serve while a redeem waits for its coupon. Returns what the metrics show then, and the answer.
async function stopWhileCallWaits(t: Test) {
  const [coupon] = await service.a.makeCoupons(1);
  const { untilPrinted, stop } = launch(t, "serve", { env: { ...environmentOf(service), METRICS_PORT: "0" } });
  const [, url = "", metricsUrl = ""] = await untilPrinted(/"url":"(\S+?)","metrics_url":"(\S+?)"/);
  const till = createCaller(createClient({ url, accessKey: "ak_a", secret: secretOf("ak_a") }), "mch_a");
  const release = await holdCoupon(service, coupon!.id);
  const sentAt = performance.now();
  const answer = till.redeem(coupon!);
  await untilBlocked(service, 1);
  const stopped = stop();
  const isClosed = () =>
    sendPlain(url, "GET", "/healthz").then(
      () => false,
      (error: NodeJS.ErrnoException) => error.code === "ECONNREFUSED",
    );
  await waitUntil("the port to be closed", isClosed);
  const { text } = await sendPlain(metricsUrl, "GET", "/metrics").catch(() => ({ text: "serve has ended" }));
  await release();
  const { status } = await answer;
  const ms = performance.now() - sentAt;
  return { metrics: text, status, ms, code: (await stopped).code };
}

t.test("while serve stops, the metrics show an open request until it is answered", async (t) => {
  let stopped = await stopWhileCallWaits(t);
  // The call waits for 2 s and then gets 503. A busy machine may need longer to stop serve.
  for (let tries = 1; tries < 5 && stopped.status === 503 && stopped.ms >= 2_000; tries += 1)
    stopped = await stopWhileCallWaits(t);
  fits(t, stopped, { status: 200, code: 0, metrics: /^coupon_http_open_requests 1$/m });
});
