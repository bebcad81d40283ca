// A code is in no answer, log line, metric, error, last word, table, index, WAL record or dump: canaries are redeemed, refused, mistyped and
// exported, and then looked for everywhere. A marker that is no secret goes the same ways, to show that looking finds.
import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { makeCode } from "../../src/crypto/coupon-code.ts";
import { connect } from "../../src/database/connect.ts";
import { formatUrl } from "../../src/common/database-address.ts";
import type { Database } from "../../src/database/types.ts";
import { client, sendPlain, type Client, type Reply } from "../support/client.ts";
import { exitCodeOf, runProgram } from "../support/program.ts";
import { secretOf } from "../support/provisioning.ts";
import { searchFor, type Search } from "../support/search.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";
import { holdCoupon } from "../support/sessions.ts";

// Of the alphabet of codes and as long, so that it is found in the same spellings.
const marker =
  "MARKERMARKER" +
  process.pid
    .toString(32)
    .toUpperCase()
    .replace(/[ILOU]/g, "0")
    .padStart(4, "0")
    .slice(-4);

// The real programs, as talkative as they get; all that they say.
function startTalking(service: Running, name: string): { program: ChildProcessWithoutNullStreams; said: () => Buffer } {
  const env = {
    PATH: process.env["PATH"],
    DATABASE_URL: formatUrl(service.address),
    COUPON_MASTER_KEY: service.masterKeyText,
    LOG_LEVEL: "trace",
    PORT: "0",
    METRICS_PORT: "0",
  };
  const program = spawn(process.execPath, [`src/${name}.ts`], { env });
  t.teardown(() => program.kill("SIGKILL"));
  const chunks: Buffer[] = [];
  for (const stream of [program.stdout, program.stderr]) stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  return { program, said: () => Buffer.concat(chunks) };
}

let service: Running;
let login: Database;
let search: Search;
let canaries: string[];
let walBegin: string;
const answers: Reply[] = [];
const said = new Map<string, () => Buffer>();

t.before(async () => {
  service = await startService(t);
  login = connect(service.address, { name: "coupon test", max: 1 });
  t.teardown(() => login.end());
  [{ name: walBegin }] = (await login.rows<{ name: string }>(
    "select pg_walfile_name(pg_current_wal_lsn()) as name",
  )) as [{ name: string }];
  const [serve, work] = [startTalking(service, "serve"), startTalking(service, "work")];
  said.set("serve", serve.said).set("work", work.said);
  const told = (program: ChildProcessWithoutNullStreams, what: string) =>
    new Promise<string>((resolve) =>
      createInterface(program.stdout).on("line", (line) => {
        const { msg, url, metrics_url } = JSON.parse(line) as { msg?: string; url?: string; metrics_url?: string };
        if (msg === what) resolve((url ?? metrics_url)!);
      }),
    );
  const [url, ...metrics] = await Promise.all([
    told(serve.program, "serving"),
    told(serve.program, "metrics"),
    told(work.program, "metrics"),
  ]);
  await live(
    client({ url, accessKey: "ak_a", secret: secretOf("ak_a") }),
    client({ url, accessKey: "ak_a_stranger", secret: secretOf("ak_a_stranger") }),
  );
  for (const metricsUrl of metrics) {
    const { text } = await sendPlain(metricsUrl, "GET", "/metrics");
    said.set(`metrics at ${metricsUrl}`, () => Buffer.from(text));
  }
  for (const { program } of [serve, work]) {
    program.kill("SIGTERM");
    t.equal(await exitCodeOf(program), 0);
  }
});

// All that can happen to a code.
async function live(a: Client, stranger: Client): Promise<void> {
  const send = async (by: Client, path: string, body: unknown, status: number, more = {}) => {
    const reply = await by.post(path, typeof body === "object" ? { request_id: newRequestId(), ...body } : body, more);
    if (reply.status !== status) throw new Error(`${path}: ${reply.status} ${reply.text}`);
    answers.push(reply);
    return reply.json;
  };
  const {
    batch: { external_id: batch },
  } = await send(a, "/v1/batches", { template: "tpl_fixed", total_count: 12 }, 200);
  while ((await a.get(`/v1/batches/${batch}`)).json.batch.status !== "COMPLETED") await sleep(20);
  await send(a, "/v1/batches/allocate", { batch }, 200);
  const exported = await runProgram(service, "codes", [batch]);
  const rows = exported.stdout
    .trimEnd()
    .split("\n")
    .slice(1)
    .map((line) => line.split(",") as [string, string]);
  said.set("the export's standard error", () => Buffer.from(exported.stderr));

  const merchant = "mch_a";
  const [locked, redeemed, voided, foreign, held, broken, wrongPlace] = rows.map(([, code]) => code) as [
    string,
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  const inGroups = (code: string) => code.toLowerCase().replace(/(.{4})(?=.)/g, "$1-");
  const lock = { request_id: newRequestId(), coupon: locked, merchant, order_id: marker, store: marker };
  await send(a, "/v1/coupons/lock", lock, 200, { idempotencyKey: newRequestId() });
  await send(a, "/v1/coupons/lock", { coupon: inGroups(locked), merchant }, 409);
  await send(a, "/v1/coupons/confirm", { coupon: locked, merchant, lock_request_id: lock.request_id }, 200);
  const { redemption } = await send(a, "/v1/coupons/redeem", { coupon: inGroups(redeemed), merchant }, 200);
  await send(a, "/v1/coupons/redeem", { coupon: redeemed, merchant }, 409);
  await send(a, "/v1/redemptions/reverse", { redemption, reason: marker }, 200);
  await send(a, "/v1/coupons/cancel", { coupon: redeemed, lock_request_id: "none" }, 409);
  await send(a, "/v1/coupons/void", { coupon: voided, merchant, reason: marker }, 200);
  await send(a, "/v1/coupons/query", { coupon: voided, merchant }, 200);
  await send(stranger, "/v1/coupons/redeem", { coupon: foreign, merchant: "mch_a2s" }, 404);

  // Mistyped: another body under the old tag, another tag, and what is no code at all.
  const other = (character: string) => (character === "7" ? "8" : "7");
  const mistyped = [
    foreign.slice(0, 5) + other(foreign[5]!) + foreign.slice(6),
    foreign.slice(0, 15) + other(foreign[15]!),
  ];
  for (const coupon of mistyped) await send(a, "/v1/coupons/redeem", { coupon, merchant }, 422);
  await send(a, "/v1/coupons/redeem", { coupon: `${foreign}X`, merchant }, 400);

  // In the wrong place, so that whoever repeats what came repeats a code.
  await send(a, "/v1/coupons/redeem", { coupon: "none", merchant: wrongPlace }, 400);
  await send(a, "/v1/coupons/void", { coupon: foreign, merchant: wrongPlace }, 404);
  await send(a, "/v1/redemptions/reverse", { redemption: wrongPlace }, 404);
  await send(a, "/v1/batches", { template: wrongPlace, total_count: 1 }, 404);
  await send(a, "/v1/coupons/redeem", { [wrongPlace]: 1, coupon: foreign, merchant }, 400);
  await send(a, "/v1/coupons/redeem", `{"coupon":"${wrongPlace}"`, 400);
  await send(
    a,
    "/v1/coupons/redeem",
    { request_id: `redeem-${inGroups(wrongPlace)}`, coupon: wrongPlace, merchant },
    400,
  );
  await send(a, "/v1/coupons/redeem", { order_id: `${wrongPlace}/1`, coupon: wrongPlace, merchant }, 400);
  await send(a, "/v1/coupons/void", { reason: `sheet ${wrongPlace} is torn`, coupon: wrongPlace, merchant }, 400);
  await send(a, `/v1/coupons/${wrongPlace}`, {}, 404);
  await send(a, `/v1/coupons/redeem?coupon=${wrongPlace}`, { coupon: foreign, merchant }, 400);
  answers.push(await a.get(`/v1/batches/${wrongPlace}`), await a.get(`/v1/requests/${wrongPlace}`));

  // When the machine fails: a row that somebody holds, and a table that is not there.
  const release = await holdCoupon(service, rows[4]![0]);
  await send(a, "/v1/coupons/redeem", { coupon: held, merchant }, 503);
  await release();
  await service.owner.rows("alter table core.redemption rename to redemption_away");
  await send(a, "/v1/coupons/redeem", { coupon: broken, merchant }, 500);
  await service.owner.rows("alter table core.redemption_away rename to redemption");
  await send(a, "/v1/coupons/redeem", { coupon: broken, merchant }, 200);

  canaries = [...rows.map(([, code]) => code), ...mistyped];
  search = searchFor([...canaries, marker]);
  t.strictSame(
    search.inBytes(Buffer.from(exported.stdout)).sort(),
    rows.map(([, code]) => code).sort(),
    "the search finds every code in its export",
  );
}

const onlyMarker = (t: Test, found: string[], where: string) =>
  t.strictSame(found, [marker], `${where}: the marker and no code`);

t.test("the search finds every spelling, also across the pieces in which a file is read", (t) => {
  const [code] = canaries as [string];
  const groups = code.replace(/(.{4})(?=.)/g, "$1-");
  const spellings = [
    code,
    code.toLowerCase(),
    groups,
    groups.toLowerCase(),
    Buffer.from(code).toString("hex"),
    `\\x${Buffer.from(code).toString("hex").toUpperCase()}`,
  ];
  for (const before of ["", "a", "ab", "abc"])
    spellings.push(
      Buffer.from(`${before}${code}zz`).toString("base64"),
      Buffer.from(`${before}${code}`).toString("base64url"),
    );
  for (const spelling of spellings)
    t.strictSame(search.inBytes(Buffer.from(`x${spelling}y`)), [code], spelling.replace(code, "…"));
  t.strictSame(search.inBytes(Buffer.from(makeCode(service.keys, "1", service.keys.versions.get("1")!.master, 1))), []);
  const file = path.join(t.testdir({ file: "-".repeat((1 << 22) - 7) + code }), "file");
  t.strictSame(search.inFile(file), [code]);
  t.end();
});

t.test("in no answer", (t) => {
  t.ok(answers.length > 20);
  for (const { text, headers } of answers)
    t.strictSame(search.inBytes(Buffer.from(text + JSON.stringify(headers))), []);
  t.end();
});

t.test("in no log of the programs, however talkative, and in no metric", (t) => {
  for (const [name, bytes] of said) t.strictSame(search.inBytes(bytes()), [], name);
  const counted = [...said]
    .filter(([name]) => name.startsWith("metrics"))
    .map(([, bytes]) => bytes().toString())
    .join("");
  t.match(
    counted,
    /coupon_http_requests_total\{operation="redeem",status="500",code="INTERNAL_ERROR"\} 1/,
    "metrics were there",
  );
  t.match(counted, /coupon_feed_lag_seconds/);
  const lines = said.get("serve")!().toString();
  t.match(lines, /"status":503/);
  t.match(lines, /redemption.*does not exist/, "which tell what went wrong");
  t.end();
});

t.test(
  "in no last word of a program that dies of an error with values in it, which is one line of the log and exit code 1",
  (t) => {
    const env = { PATH: process.env["PATH"], DATABASE_URL: formatUrl(service.address) };
    for (const how of ["exception", "rejection"]) {
      const { status, stdout, stderr } = spawnSync(process.execPath, ["test/support/crash.ts", how, canaries[0]!], {
        env,
      });
      t.equal(status, 1, how);
      t.strictSame(search.inBytes(Buffer.concat([stdout, stderr])), [], how);
      t.match(JSON.parse(stderr.toString()), {
        level: 60,
        err: { code: "23505", message: /duplicate key/, stack: /PostgresError/ },
        msg: new RegExp(how),
      });
    }
    t.end();
  },
);

t.test("in no table, as text", async (t) => {
  const tables = await login.rows<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'm') and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`,
  );
  t.ok(tables.some(({ name }) => name.startsWith("graphile_worker.")));
  const found = new Set<string>();
  for (const { name } of [...tables, { name: "pg_stat_activity" }]) {
    const [row] = await login.rows<{ text: string | null }>(
      `select string_agg(t::text, E'\\n') as text from ${name} t`,
    );
    for (const code of search.inBytes(Buffer.from(row!.text ?? ""))) found.add(code);
  }
  onlyMarker(t, [...found], `${tables.length} tables`);
});

t.test("in no dump", async (t) => {
  const [{ version } = { version: 0 }] = await login.rows<{ version: number }>(
    "select current_setting('server_version_num')::int / 10000 as version",
  );
  const homes = existsSync("/usr/lib/postgresql")
    ? readdirSync("/usr/lib/postgresql").map((home) => `/usr/lib/postgresql/${home}/bin/pg_dump`)
    : [];
  const program = [...homes, "pg_dump"].find(
    (one) => Number(/ (\d+)/.exec(spawnSync(one, ["--version"], { encoding: "utf8" }).stdout ?? "")?.[1]) >= version,
  );
  if (program === undefined) return void t.pass("no dump", { skip: `no pg_dump of version ${version} or newer here` });
  const { status, stdout, stderr } = spawnSync(program, ["--dbname", formatUrl(service.address)], {
    maxBuffer: 1 << 28,
  });
  t.equal(status, 0, String(stderr));
  onlyMarker(t, search.inBytes(stdout), `${stdout.length} bytes`);
});

// The folder of the server, when it is on this machine and we may read it.
async function findFolder(): Promise<{ folder: string } | { reason: string }> {
  const [server] = await login.rows<{ folder: string | null; identifier: string }>(
    "select current_setting('data_directory', true) as folder, (select system_identifier::text from pg_control_system()) as identifier",
  );
  const folder = server!.folder ?? "";
  try {
    const identifier = readFileSync(path.join(folder, "global/pg_control")).readBigUInt64LE(0).toString();
    return identifier === server!.identifier ? { folder } : { reason: "another server's data are in that folder" };
  } catch (error) {
    return { reason: `the data folder cannot be read from here: ${(error as NodeJS.ErrnoException).code}` };
  }
}

// What belongs to other databases, and log that was full before we began, is left out.
function listFiles(folder: string, database: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => {
    const [area, part] = name.split(path.sep) as [string, string | undefined];
    if (area === "base" && part !== undefined && part !== database) return false;
    if (area === "pg_wal" && /^[0-9A-F]{24}$/.test(part ?? "") && part! < walBegin) return false;
    return statSync(path.join(folder, name), { throwIfNoEntry: false })?.isFile() ?? false;
  });
}

t.test("in no file of the server: tables, indexes, WAL", async (t) => {
  const found = await findFolder();
  if ("reason" in found) return void t.pass("not looked", { skip: found.reason });
  await login.rows("checkpoint");
  const [{ oid } = { oid: "" }] = await login.rows<{ oid: string }>(
    "select oid::text from pg_database where datname = current_database()",
  );
  const byArea = new Map<string, Set<string>>();
  for (const name of listFiles(found.folder, oid)) {
    const area = name.split(path.sep)[0]!;
    const codes = byArea.get(area) ?? new Set();
    byArea.set(area, codes);
    // A file may go while we look.
    if (existsSync(path.join(found.folder, name)))
      for (const code of search.inFile(path.join(found.folder, name))) codes.add(code);
  }
  onlyMarker(t, [...byArea.get("base")!], "tables and indexes");
  onlyMarker(t, [...byArea.get("pg_wal")!], "WAL");
  for (const [area, codes] of byArea)
    t.notOk(
      canaries.some((code) => codes.has(code)),
      area,
    );
});

t.test("in no line of the server's log", async (t) => {
  const found = await findFolder();
  if ("reason" in found) return void t.pass("not looked", { skip: found.reason });
  await login.rows(`do $$ begin raise log '${marker}'; end $$`);
  const [{ file } = { file: null }] = await login.rows<{ file: string | null }>("select pg_current_logfile() as file");
  const logs =
    file !== null
      ? [path.resolve(found.folder, file)]
      : readdirSync(path.dirname(found.folder))
          .filter((name) => name.endsWith(".log"))
          .map((name) => path.join(path.dirname(found.folder), name));
  const codes = new Set(logs.flatMap((log) => search.inFile(log)));
  if (codes.size === 0) return void t.pass("not looked", { skip: "the server's log is not to be found" });
  onlyMarker(t, [...codes], logs.join(", "));
});
