// Session defaults of the database and of the login change neither what the programs do nor what they show, and those
// of a psql session change nothing that functions and views return or write.
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { randomBytes } from "node:crypto";
import { text } from "node:stream/consumers";
import t, { type Test } from "tap";
import demoTenants from "../../src/commands/demo-tenants.json" with { type: "json" };
import { daySeconds, noonOffset, zoneOf } from "../support/business-days.ts";
import { postOk, sendPlain } from "../support/client.ts";
import { hostileDefaults, openPlace, setInPsql, type Defaults, type Place } from "../support/hostile-defaults.ts";
import { environmentOf, exitCodeOf, spawnProgram, untilPrinted, type Result } from "../support/program.ts";
import { startReceiver, type Receiver } from "../support/receiver.ts";
import { newRequestId } from "../support/service.ts";
import { createClient, type Client } from "../support/signing-client.ts";
import { snapshotTables } from "../support/table-snapshot.ts";
import { secretOf } from "../support/tenants.ts";
import { waitUntil } from "../support/wait-until.ts";

/** What the programs show: each answer and output, by what was asked. */
type Shown = Record<string, unknown>;
type Life = Place & { env: Record<string, string>; shown: Shown; receiver: Receiver };

const secret = `whsec_${Buffer.alloc(32).toString("base64")}`;
const credentials = demoTenants.tenants.flatMap((tenant) => tenant.credentials.map(({ access_key }) => access_key));
const merchant = "mch_bakery";

/** The tenants of the demo with webhooks, and a template with short locks. */
const declare = ({ url }: Receiver) => ({
  tenants: demoTenants.tenants.map((tenant) => ({
    ...tenant,
    parties: tenant.parties.map((each) => ({ ...each, webhook: { url: `${url}/${each.id}`, secret } })),
    templates: [...tenant.templates, { ...tenant.templates[0]!, id: "tpl_brief", lock_ttl_seconds: 1 }],
    credentials: tenant.credentials.map((each) => ({ ...each, secret: secretOf(each.access_key) })),
  })),
});

async function openLife(t: Test, defaults: Defaults): Promise<Life> {
  const place = await openPlace(t);
  for (const holder of place.holders.slice(0, 2)) await place.give(holder, defaults);
  const secrets = Object.fromEntries(credentials.map((accessKey) => [accessKey, secretOf(accessKey)]));
  const dataDir = t.testdir({ "demo.json": JSON.stringify(secrets) });
  const masterKeyText = randomBytes(32).toString("base64");
  const env = { ...environmentOf({ ...place, masterKeyText }), METRICS_PORT: "0", DATA_DIR: dataDir };
  return { ...place, env, shown: {}, receiver: await startReceiver(t) };
}

/** Runs a command and shows its result under `title`. */
async function run({ env, shown }: Life, title: string, words: string[], input = "", more = {}): Promise<Result> {
  const [name, ...args] = words as [string, ...string[]];
  const program = spawnProgram(name, { args, env: { ...env, ...more } }) as ChildProcessWithoutNullStreams;
  // `serve` and `work` run on if they are not refused.
  const timer = setTimeout(() => program.kill("SIGKILL"), 60_000);
  program.stdin.end(input);
  const [stdout, stderr] = await Promise.all([text(program.stdout), text(program.stderr)]);
  clearTimeout(timer);
  const result = { code: await exitCodeOf(program), stdout, stderr };
  shown[title] = result;
  return result;
}

/** Starts a program, and returns the match of `ready` in its log. At the end, only its warnings are shown. */
async function start(t: Test, { env, shown }: Life, name: string, ready: RegExp) {
  const program = spawnProgram(name, { env }) as ChildProcessWithoutNullStreams;
  t.teardown(() => program.kill("SIGKILL"));
  const log = text(program.stdout);
  const [, found = ""] = await untilPrinted(program, ready);
  return {
    found,
    async stop() {
      program.kill("SIGTERM");
      const code = await exitCodeOf(program);
      shown[name] = [code, (await log).split("\n").filter((line) => /"level":[456]0/.test(line))];
    },
  };
}

/** A life of the service, from migrate on. Returns all that its programs show. */
async function live(t: Test, defaults: Defaults): Promise<Life> {
  const life = await openLife(t, defaults);
  const { shown, psql, receiver } = life;
  const isHostile = Object.keys(defaults).length > 0;
  await run(life, "migrate", ["migrate"]);
  shown["tables"] = await snapshotTables(life.address);
  await run(life, "status", ["migrate", "--status", "--json"]);
  await run(life, "apply", ["apply", "-"], JSON.stringify(declare(receiver)));
  const setZones = (seconds: number) =>
    psql.rows("update core.party set time_zone = $1", [zoneOf(noonOffset() + seconds)]);
  await setZones(0);
  if (isHostile) await psql.run(setInPsql);

  const [serve, work] = await Promise.all([
    start(t, life, "serve", /"url":"([^"]+)"/),
    start(t, life, "work", /"metrics_url":"([^"]+)"/),
  ]);
  const by = createClient({ url: serve.found, accessKey: "ak_demo_a", secret: secretOf("ak_demo_a") });
  const batch = await sell(life, by);
  await run(life, "demo", ["demo"], "", { PORT: new URL(serve.found).port });
  // The last step of the demo in each variant: then all entries are posted to the day that ends.
  await untilReceived(life, "coupon.voided", 2);
  await setZones(daySeconds);
  await untilReceived(life, "reconciliation.ready", 2);
  await untilDelivered(life);
  await download(life, by);
  const metrics = await sendPlain(work.found, "GET", "/metrics");
  shown["metrics"] = metrics.text.split("\n").filter((line) => / \S+$/.test(line) && !/^#| [\d.e+-]+$/.test(line));
  await operate(life, batch);
  await Promise.all([serve.stop(), work.stop()]);
  shown["received"] = [...new Set(receiver.received.map(({ path, body }) => withoutNames(`${path} ${body}`)))].sort();
  shown["audit"] = [
    ...(await psql.rows("select action, target, reason, details::text from report.audit order by audit_id")),
  ];
  return life;
}

/** Coupons of which one is redeemed, one locked, and one expires. Returns their batch. */
async function sell(life: Life, by: Client): Promise<string> {
  const order = { request_id: newRequestId(), template: "tpl_brief", total_count: 3 };
  const batch = (await postOk(by, "/v1/batches", order)).batch.external_id as string;
  const isMinted = async () => (await by.get(`/v1/batches/${batch}`)).json.batch.status === "COMPLETED";
  await waitUntil("the batch to be minted", isMinted);
  const { stdout } = await run(life, "codes", ["codes", batch, "--unreleased"]);
  await postOk(by, "/v1/batches/allocate", { request_id: newRequestId(), batch });
  const coupons = stdout.trim().split("\n").slice(1);
  const [[, redeemed], [, locked], [expiring]] = coupons.map((line) => line.split(",")) as [
    string[],
    string[],
    string[],
  ];
  for (const [path, coupon] of [
    ["/v1/coupons/redeem", redeemed],
    ["/v1/coupons/lock", locked],
  ] as const) {
    const body = { request_id: newRequestId(), coupon, merchant, store: "Škoda, „3“", order_amount: 64.5 };
    const { status, json } = await by.post(path, body);
    life.shown[path] = { status, json };
  }
  const [from, to] = ["2026-02-03 04:05:06.789+00", "2026-02-04 00:00+00"];
  await life.psql.rows("select admin.extend_coupon('ten_demoa', $1, $2::text::timestamptz, 'gone')", [expiring, from]);
  await life.psql.rows(
    "select admin.replay_range('ten_demoa', 'pty_bakery', $1::text::timestamptz, $2::text::timestamptz, 'none')",
    [from, to],
  );
  await untilReceived(life, "coupon.expired", 1);
  return batch;
}

const untilReceived = ({ receiver }: Life, type: string, count: number) =>
  waitUntil(
    `${count} ${type}`,
    () => new Set(receiver.received.filter(({ body }) => body.includes(type)).map(({ id }) => id)).size >= count,
  );

const untilDelivered = ({ psql }: Life) =>
  waitUntil("all deliveries", async () => (await psql.rows("select from report.delivery")).length === 0);

/** What a caller reads: the feed, the statements with their files, its webhook. */
async function download({ shown }: Life, by: Client): Promise<void> {
  for (const path of ["/v1/events?limit=1000", "/v1/reconciliations"]) shown[path] = (await by.get(path)).text;
  const [day] = (await by.get("/v1/reconciliations")).json.reconciliations;
  for (const { kind, href } of day.files) shown[kind] = (await by.get(href)).text;
  const { attempts, ...webhook } = (await by.get("/v1/webhook")).json.webhook;
  shown["webhook"] = [webhook, attempts.map((each: unknown) => withoutNames(JSON.stringify(each))).sort()];
}

/** What an operator does with a running service. */
async function operate(life: Life, batch: string): Promise<void> {
  const hook = ["ten_demoa", "pty_bakery"];
  const why = ["--reason", "lost"];
  await run(life, "list", ["statements", "list"]);
  await run(life, "list as JSON", ["statements", "list", "--json"]);
  await run(life, "verify", ["statements", "verify", "--json"]);
  await run(life, "webhooks", ["webhooks", "status", "--json"]);
  await run(life, "log", ["webhooks", "log", ...hook, "--limit", "1", "--json"]);
  await run(life, "replay", ["webhooks", "replay", ...hook, "2026-02-03T04:05:06Z", "2099-01-01T00:00:00Z", ...why]);
  await run(life, "test", ["webhooks", "test", ...hook]);
  await untilDelivered(life);
  await run(life, "rotate", ["webhooks", "rotate", ...hook, ...why]);
  await run(life, "parked", ["webhooks", "parked", "--json"]);
  await run(life, "destroy", ["codes", batch, "--destroy", ...why]);
}

/** IDs, times, codes and durations differ from life to life. */
function withoutNames(shown: string): string {
  return shown
    .replaceAll(/(bat|cpn|evt|red|rvs|led)_[0-9a-z]{26}/g, "$1_…")
    .replaceAll(/\b20\d\d-\d\d-\d\d(T[\d:.]+Z)?/g, (_, time) => (time === undefined ? "DATE" : "TIME"))
    .replaceAll(/,[0-9A-Z]{16}\b|\b[0-9A-Z]{4}·{12}/g, "CODE")
    .replaceAll(/u[0-9a-f]{12}u[0-9a-f]{12}|test-\d+-\d+|[0-9a-f]{64}|whsec_[\w+/]+=*/g, "…")
    .replaceAll(/((duration|p95)_ms\w*\\*": ?)\d+|\d+ ms|127\.0\.0\.1:\d+/g, "$1…")
    .replaceAll(/ +/g, " ");
}

let [plain, hostile]: Life[] = [];
t.before(async () => {
  [plain, hostile] = await Promise.all([live(t, {}), live(t, hostileDefaults)]);
});

t.test("The programs do and show the same, whatever the defaults of the database and the login", (t) => {
  const read = ({ shown }: Life): Shown => JSON.parse(withoutNames(JSON.stringify(shown))) as Shown;
  const expected = read(plain!);
  t.strictSame(read(hostile!), expected);
  const failed = Object.entries(expected).filter(([, result]) => Boolean((result as Partial<Result>).code));
  t.strictSame(failed, []);
  t.end();
});

t.test("Views and functions return the same values to psql, whatever it has set", async (t) => {
  const { psql } = hostile!;
  const views = await psql.rows<{ name: string }>(
    `select 'report.' || relname as name
     from pg_class
     where relnamespace = 'report'::regnamespace and relkind = 'v' and relname <> 'invariants'`,
  );
  const page = (kind: string) =>
    `admin.list_statements(0, 0, '0001-01-01', 100) s,
     rules.read_statement_page(s.tenant_id, s.distributor_id, s.business_date, '${kind}', 0, 100) x`;
  const read = async (settings: string, source: string) => {
    await psql.run(`${settings}; create temp table seen as select x.* from ${source}; reset all`);
    const rows = await psql.rows<{ row: string }>("select to_jsonb(x)::text as row from pg_temp.seen x order by 1");
    await psql.run("drop table pg_temp.seen");
    return rows.map(({ row }) => row);
  };
  const empty: string[] = [];
  for (const source of [...views.map(({ name }) => `${name} x`), page("detail"), page("summary")]) {
    const expected = await read("reset all", source);
    t.strictSame(await read(setInPsql, source), expected, source);
    if (expected.length === 0) empty.push(source);
  }
  t.strictSame(empty, ["report.delivery x", "report.stuck_work x"], "all others have rows");
});

t.test("A default that no connection can set is refused in one line, by each program", async (t) => {
  const life = plain!;
  for (const [name, value] of [
    ["session_replication_role", "replica"],
    ["restrict_nonsystem_relation_kind", "view"],
  ] as const) {
    await life.give(life.holders.at(-1)!, { [name]: value });
    for (const words of [["migrate"], ["statements", "list"], ["serve"], ["work"]]) {
      const { code, stdout, stderr } = await run(life, "refused", words);
      t.strictSame([code, stdout], [1, ""], words.join(" "));
      t.match(stderr, new RegExp(`^${name} is set for this login, .*\\n$`));
    }
  }
});
