// A code never appears in an answer, a log line, a metric, an error, a crash report, a table, an index or a WAL record,
// so no dump has one either. Canary codes are redeemed, refused, mistyped and exported, over the real programs at their
// most verbose log level, and then searched for everywhere. A marker, which is no secret, takes the same ways and shows
// that the search works.
import { generateX25519Identity, identityToRecipient } from "age-encryption";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import { formatUrl } from "../../src/config/database-address.ts";
import { connect, openSession } from "../../src/database/connect.ts";
import { createClient, sendPlain, type Client, type Reply } from "../support/client.ts";
import { root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";
import { environmentOf, launch, runProgram } from "../support/program.ts";
import { newRequestId } from "../support/request-id.ts";
import { scenario } from "../support/scenario.ts";
import { searchFor } from "../support/search.ts";
import { holdCoupon } from "../support/sessions.ts";
import { inGroups } from "../support/spellings.ts";
import { party, secretOf } from "../support/tenants.ts";
import { waitUntil } from "../support/wait-until.ts";

// As long as a code and of the same alphabet, so that the search finds it in the same forms.
const pid = process.pid
  .toString(32)
  .toUpperCase()
  .replace(/[ILOU]/g, "0");
const marker = `MARKERMARKER${pid.padStart(4, "0").slice(-4)}`;
const merchant = "mch_a";
const redeem = "/v1/coupons/redeem";

const service = await scenario(t);
const login = connect(service.address, { name: "coupon test", max: 1 });
t.teardown(() => login.end());
// A replication slot keeps the log until it is searched. It is gone with its session.
const keeper = openSession(service.address, { name: "coupon test" });
t.teardown(() => keeper.end());
await keeper.rows("select pg_create_physical_replication_slot($1, true, true)", [`canary_${process.pid}`]);
const [wal] = await login.rows<{ file: string }>("select pg_walfile_name(pg_current_wal_lsn()) as file");

const publicKey = await identityToRecipient(await generateX25519Identity());
await service.apply({
  tenants: [{ id: "ten_a", name: "A", variant: "A", parties: [party("pty_a", { public_key: publicKey })] }],
});

const verbose = { ...environmentOf(service), LOG_LEVEL: "trace", METRICS_PORT: "0" };
const [serve, work] = [launch(t, "serve", { env: verbose }), launch(t, "work", { env: verbose })];
const [, url = "", serveMetrics = ""] = await serve.untilPrinted(/"url":"(\S+?)","metrics_url":"(\S+?)"/);
const [, workMetrics = ""] = await work.untilPrinted(/"metrics_url":"(\S+?)"/);
const as = (accessKey: string) => createClient({ url, accessKey, secret: secretOf(accessKey) });
const [a, stranger] = [as("ak_a"), as("ak_a_stranger")];

const answers: Reply[] = [];
async function send(by: Client, target: string, body: unknown, status: number, more: object = {}): Promise<any> {
  const reply = await by.post(target, typeof body === "object" ? { request_id: newRequestId(), ...body } : body, more);
  if (reply.status !== status) throw new Error(`${target}: ${reply.status} ${reply.text}`);
  answers.push(reply);
  return reply.json;
}

// Makes a batch with the programs. Returns what the export wrote.
async function exportBatch() {
  const created = await send(a, "/v1/batches", { template: "tpl_fixed", total_count: 12 }, 200);
  const batch = created.batch.external_id as string;
  await waitUntil("the coupons", async () => (await a.get(`/v1/batches/${batch}`)).json.batch.status === "COMPLETED");
  await send(a, "/v1/batches/allocate", { batch }, 200);
  // The service sends the codes too, but encrypted.
  const encrypted = await a.get(`/v1/batches/${batch}/codes`);
  if (encrypted.status !== 200) throw new Error(encrypted.text);
  answers.push(encrypted);
  return runProgram("codes", { args: [batch], env: environmentOf(service) });
}

// Everything that can happen to a code happens to one of these. Returns two more, which are mistyped.
async function useCodes(codes: string[], couponIds: string[]): Promise<string[]> {
  const [locked, redeemed, voided, foreign, held, broken, misplaced] = codes as [string, string, string, ...string[]];
  const lock = { request_id: newRequestId(), coupon: locked, merchant, order_id: marker, store: marker };
  await send(a, "/v1/coupons/lock", lock, 200, { idempotencyKey: newRequestId() });
  await send(a, "/v1/coupons/lock", { coupon: inGroups(locked).toLowerCase(), merchant }, 409);
  await send(a, "/v1/coupons/confirm", { coupon: locked, merchant, lock_request_id: lock.request_id }, 200);
  const { redemption } = await send(a, redeem, { coupon: inGroups(redeemed).toLowerCase(), merchant }, 200);
  await send(a, redeem, { coupon: redeemed, merchant }, 409);
  await send(a, "/v1/redemptions/reverse", { redemption, reason: marker }, 200);
  await send(a, "/v1/coupons/cancel", { coupon: redeemed, lock_request_id: "none" }, 409);
  await send(a, "/v1/coupons/void", { coupon: voided, merchant, reason: marker }, 200);
  await send(a, "/v1/coupons/query", { coupon: voided, merchant }, 200);
  await send(stranger, redeem, { coupon: foreign, merchant: "mch_a2s" }, 404);
  // In wrong places. test/http/code-places.test.ts tries all of them.
  await send(a, redeem, { coupon: foreign, merchant: inGroups(misplaced!) }, 400);
  await send(a, redeem, { [misplaced!]: 1, coupon: foreign, merchant }, 400);
  await send(a, redeem, `{"coupon":"${misplaced}"`, 400);
  await send(a, `/v1/coupons/${misplaced}`, {}, 404);

  // A code with another body, one with another tag, and something that is no code.
  const change = (at: number) => foreign!.slice(0, at) + (foreign![at] === "7" ? "8" : "7") + foreign!.slice(at + 1);
  const mistyped = [change(5), change(15)];
  for (const coupon of mistyped) await send(a, redeem, { coupon, merchant }, 422);
  await send(a, redeem, { coupon: `${foreign}X`, merchant }, 400);

  // Failures: a psql session holds the row, or a table is missing.
  const release = await holdCoupon(service, couponIds[4]!);
  await send(a, redeem, { coupon: held, merchant }, 503);
  await release();
  await service.owner.rows("alter table core.redemption rename to redemption_away");
  await send(a, redeem, { coupon: broken, merchant }, 500);
  await service.owner.rows("alter table core.redemption_away rename to redemption");
  await send(a, redeem, { coupon: broken, merchant }, 200);
  return mistyped;
}

const exported = await exportBatch();
const rows = exported.stdout
  .trimEnd()
  .split("\n")
  .slice(1)
  .map((line) => line.split(",") as [string, string]);
const minted = rows.map(([, code]) => code);
const mistyped = await useCodes(
  minted,
  rows.map(([couponId]) => couponId),
);
const codes = [...minted, ...mistyped];
const metrics = await Promise.all([serveMetrics, workMetrics].map((one) => sendPlain(one, "GET", "/metrics")));
const [served, worked] = [await serve.stop(), await work.stop()];
const search = searchFor([...codes, marker]);
const find = (text: string | Uint8Array): string[] => search(Buffer.from(text as Uint8Array));

const onlyMarker = (t: Test, found: Iterable<string>, where: string) =>
  t.strictSame([...found], [marker], `${where}: the marker and no code`);

t.test("no answer contains a code, and the search finds every code in its export", async (t) => {
  t.ok(answers.length > 20);
  for (const { text, headers } of answers) t.strictSame(find(text + JSON.stringify(headers)), []);
  t.strictSame(find(exported.stdout).sort(), minted.toSorted());
});

t.test("no log of the programs contains a code, even at the most verbose level, and no metric does", async (t) => {
  for (const { stdout, stderr } of [served, worked]) t.strictSame(find(stdout + stderr), []);
  t.strictSame(find(exported.stderr), []);
  for (const { text } of metrics) t.strictSame(find(text), []);
  t.match(metrics[0]!.text, /coupon_http_requests_total\{operation="redeem",status="500",code="INTERNAL_ERROR"\} 1/);
  t.match(metrics[1]!.text, /coupon_feed_lag_seconds/);
  t.match(served.stdout, /"status":503/);
  t.match(served.stdout, /redemption.*does not exist/, "the log says what failed");
});

// Dies of an uncaught error of the driver, the most dangerous kind: it carries the values of a statement and of a row.
const crash = `
  import { connect } from "./src/database/connect.ts";
  import { readConfig } from "./src/config/config.ts";
  import { runProgram } from "./src/common/program.ts";
  const [how, value] = process.argv.slice(1);
  await runProgram(async () => {
    const database = connect(readConfig().address, { name: "coupon test", max: 1 });
    const insert = () => database.rows("insert into seen values ($1)", [value]);
    await database.rows("create temporary table seen (value text primary key)");
    await insert();
    if (how === "rejection") void insert();
    else insert().catch((error) => setImmediate(() => { throw error; }));
  });`;

t.test("a program that dies of an error with values in it logs one line without a code", async (t) => {
  const env = { PATH: process.env["PATH"], DATABASE_URL: formatUrl(service.address) };
  for (const how of ["exception", "rejection"]) {
    const args = ["--input-type=module", "-e", crash, how, codes[0]!];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, env });
    t.equal(status, 1, how);
    t.strictSame([...find(stdout), ...find(stderr)], [], how);
    const err = { code: "23505", message: /duplicate key/, stack: /PostgresError/ };
    fits(t, JSON.parse(stderr.toString()), { level: 60, err, msg: new RegExp(how) });
  }
});

t.test("no table contains a code as text", async (t) => {
  // Without the temporary table of the crash, which may be going away.
  const tables = await login.rows<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'm') and c.relpersistence <> 't'
       and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`,
  );
  t.ok(tables.some(({ name }) => name.startsWith("graphile_worker.")));
  const found = new Set<string>();
  for (const { name } of [...tables, { name: "pg_stat_activity" }]) {
    const text = `select coalesce(string_agg(t::text, E'\\n'), '') as text from ${name} t`;
    const [row] = await login.rows<{ text: string }>(text);
    for (const code of find(row!.text)) found.add(code);
  }
  onlyMarker(t, found, `${tables.length} tables`);
});

// The data folder of the server, if it is on this machine and readable.
async function findFolder(): Promise<{ folder: string } | { reason: string }> {
  const [server] = await login.rows<{ folder: string | null; identifier: string }>(
    `select current_setting('data_directory', true) as folder,
            (select system_identifier::text from pg_control_system()) as identifier`,
  );
  const folder = server!.folder ?? "";
  try {
    const identifier = readFileSync(path.join(folder, "global/pg_control")).readBigUInt64LE(0).toString();
    return identifier === server!.identifier ? { folder } : { reason: "that folder holds the data of another server" };
  } catch (error) {
    return { reason: `the data folder is not readable here: ${(error as NodeJS.ErrnoException).code}` };
  }
}

// Omits the files of other databases, whose folders may vanish meanwhile, and WAL files from before the start.
function listFiles(folder: string, database: string, within = ""): string[] {
  return readdirSync(path.join(folder, within), { withFileTypes: true }).flatMap((entry) => {
    const name = path.join(within, entry.name);
    if (within === "base" && entry.name !== database) return [];
    if (within === "pg_wal" && /^[0-9A-F]{24}$/.test(entry.name) && entry.name < wal!.file) return [];
    return entry.isDirectory() ? listFiles(folder, database, name) : entry.isFile() ? [name] : [];
  });
}

t.test("no file of the server contains a code: tables, indexes, WAL", async (t) => {
  const found = await findFolder();
  if ("reason" in found) return void t.pass("not searched", { skip: found.reason });
  await login.rows("checkpoint");
  const [database] = await login.rows<{ oid: string }>(
    "select oid::text from pg_database where datname = current_database()",
  );
  const byArea = new Map<string, Set<string>>();
  for (const name of listFiles(found.folder, database!.oid)) {
    const area = name.split(path.sep)[0]!;
    const inArea = byArea.get(area) ?? new Set();
    byArea.set(area, inArea);
    // A file may be removed during the search.
    const file = path.join(found.folder, name);
    if (existsSync(file)) for (const code of search(readFileSync(file))) inArea.add(code);
  }
  onlyMarker(t, byArea.get("base")!, "tables and indexes");
  onlyMarker(t, byArea.get("pg_wal")!, "WAL");
  for (const [area, inArea] of byArea)
    t.notOk(
      codes.some((code) => inArea.has(code)),
      area,
    );
});

t.test("no line of the server's log contains a code", async (t) => {
  const found = await findFolder();
  if ("reason" in found) return void t.pass("not searched", { skip: found.reason });
  await login.rows(`do $$ begin raise log '${marker}'; end $$`);
  const [current] = await login.rows<{ file: string | null }>("select pg_current_logfile() as file");
  // The embedded server writes its log beside its data.
  const beside = path.dirname(found.folder);
  const logs =
    current!.file !== null
      ? [path.resolve(found.folder, current!.file)]
      : readdirSync(beside)
          .filter((name) => name.endsWith(".log"))
          .map((name) => path.join(beside, name));
  const inLogs = new Set(logs.flatMap((log) => search(readFileSync(log))));
  if (inLogs.size === 0) return void t.pass("not searched", { skip: "the server's log was not found" });
  onlyMarker(t, inLogs, logs.join(", "));
});
