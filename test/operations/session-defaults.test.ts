// Session defaults of the database and of the login change nothing that the programs do, and those of a psql session
// change nothing that functions and views return or write.
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { exportCodes } from "../../src/commands/codes.ts";
import { command as demo } from "../../src/commands/demo.ts";
import demoTenants from "../../src/commands/demo-tenants.json" with { type: "json" };
import { verify } from "../../src/commands/statements.ts";
import { readConfig } from "../../src/config/config.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { work } from "../../src/work.ts";
import { daySeconds, noonOffset, zoneOf } from "../support/business-days.ts";
import { postOk } from "../support/client.ts";
import { root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";
import { hostileDefaults, openPlace, setInPsql } from "../support/hostile-defaults.ts";
import { environmentOf, runProgram } from "../support/program.ts";
import { startReceiver } from "../support/receiver.ts";
import { newRequestId } from "../support/request-id.ts";
import { scenario } from "../support/scenario.ts";
import { createStubLog } from "../support/stub.ts";
import { snapshotTables } from "../support/table-snapshot.ts";
import { secretOf } from "../support/tenants.ts";
import { waitUntil } from "../support/wait-until.ts";

const receiver = await startReceiver(t);
const { address, psql, holders, give } = await openPlace(t);
for (const holder of holders.slice(0, 2)) await give(holder, hostileDefaults);
const masterKeyText = randomBytes(32).toString("base64");
const env = environmentOf({ address, masterKeyText });

/** The tenants of the demo with webhooks, and a template with short locks. */
const tenants = demoTenants.tenants.map((tenant) => ({
  ...tenant,
  parties: tenant.parties.map((each) => ({ ...each, webhook: { url: `${receiver.url}/${each.id}` } })),
  templates: [...tenant.templates, { ...tenant.templates[0]!, id: "tpl_brief", lock_ttl_seconds: 1 }],
  credentials: tenant.credentials.map((each) => ({ ...each, secret: secretOf(each.access_key) })),
}));
const accessKeys = tenants.flatMap(({ credentials }) => credentials.map(({ access_key }) => access_key));
const [tenant, party, merchant] = ["ten_demoa", "pty_bakery", "mch_bakery"];

const untilReceived = (type: string, count: number) => {
  const isReceived = () =>
    new Set(receiver.received.filter(({ body }) => body.includes(type)).map(({ id }) => id)).size >= count;
  return waitUntil(`${count} ${type}`, isReceived);
};

t.test("the service works whatever the defaults of the database and the login, and logs no warning", async (t) => {
  await migrate(address);
  t.equal(await snapshotTables(address), readFileSync(path.join(root, "db/tables.sql"), "utf8"));
  const service = await scenario(t, { http: true, file: { tenants }, on: { address, masterKeyText } });
  const setZones = (seconds: number) =>
    psql.rows("update core.party set time_zone = $1", [zoneOf(noonOffset() + seconds)]);
  await setZones(0);
  await psql.run(setInPsql);
  const { logger, log } = createStubLog();
  const worker = await work({ address, keys: service.keys, config: readConfig(env), log: logger });
  t.teardown(worker.stop);

  const by = service.as("ak_demo_a");
  const order = { request_id: newRequestId(), template: "tpl_brief", total_count: 3 };
  const batch = (await postOk(by, "/v1/batches", order)).batch.external_id as string;
  const isMinted = async () => (await by.get(`/v1/batches/${batch}`)).json.batch.status === "COMPLETED";
  await waitUntil("the batch to be minted", isMinted);
  const coupons = (await Array.fromAsync(exportCodes(service.admin, service.keys, batch, true))).flat();
  await postOk(by, "/v1/batches/allocate", { request_id: newRequestId(), batch });
  for (const [index, operation] of ["redeem", "lock"].entries()) {
    const place = { merchant, store: "Škoda, „3“", order_amount: 64.5 };
    const body = { request_id: newRequestId(), coupon: coupons[index]!.code, ...place };
    fits(t, await postOk(by, `/v1/coupons/${operation}`, body), { discount_amount: 6.45 }, operation);
  }
  const [from, to] = ["2026-02-03 04:05:06.789+00", "2026-02-04 00:00+00"];
  const extend = "select admin.extend_coupon($1, $2, $3::text::timestamptz, 'gone')";
  await psql.rows(extend, [tenant, coupons[2]!.coupon_id, from]);
  const replay = "select admin.replay_range($1, $2, $3::text::timestamptz, $4::text::timestamptz, 'none')";
  await psql.rows(replay, [tenant, party, from, to]);
  await untilReceived("coupon.expired", 1);

  // The demo checks the answers to every operation.
  const secrets = Object.fromEntries(accessKeys.map((accessKey) => [accessKey, secretOf(accessKey)]));
  const dataDir = t.testdir({});
  writeFileSync(path.join(dataDir, "demo.json"), JSON.stringify(secrets), { mode: 0o600 });
  Object.assign(process.env, env, { PORT: new URL(service.url).port, DATA_DIR: dataDir });
  const printed = t.capture(console, "log", () => {});
  await demo.read([])();
  t.ok(printed().length > 40, "it was played in both variants");
  // Its last step in each variant: then all entries are posted to the day that ends.
  await untilReceived("coupon.voided", 2);
  await setZones(daySeconds);
  await untilReceived("reconciliation.ready", 2);
  await service.admin.rows("select admin.test_webhook($1, $2, 'coupon.redeemed')", [tenant, party]);
  const delivered =
    "select where not exists (select from report.delivery) and not exists (select from core.test_delivery)";
  await waitUntil("all deliveries", async () => (await psql.rows(delivered)).length > 0);

  const [day] = (await by.get("/v1/reconciliations")).json.reconciliations;
  const { text } = await by.get(day.files.find(({ kind }: { kind: string }) => kind === "detail").href);
  t.match(text, /,mch_bakery,"Škoda, „3“",,,64\.50,6\.45,EUR,20\d\d-\d\d-\d\dT[\d:.]+Z,/);
  const verdicts = await Array.fromAsync(verify(service.admin));
  t.ok(verdicts.length > 0);
  for (const { statement, differences } of verdicts) t.strictSame(differences, [], statement);
  const audit = "select action, details from report.audit where reason in ('gone', 'none') order by audit_id";
  fits(t, await psql.rows(audit), [
    { action: "extend_coupon", details: { valid_to: "2026-02-03T04:05:06.789+00:00" } },
    { action: "replay_range", details: { from: "2026-02-03T04:05:06.789+00:00", to: "2026-02-04T00:00:00+00:00" } },
  ]);
  const warnings = [...log, ...service.log].filter(({ level }) => (level as number) > 30);
  t.strictSame(warnings, []);
});

t.test("views and functions return the same values to psql, whatever it has set", async (t) => {
  const views = await psql.rows<{ name: string }>(
    `select 'report.' || relname as name
     from pg_class
     where relnamespace = 'report'::regnamespace and relkind = 'v' and relname <> 'invariants' order by 1`,
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

t.test("a default that no connection can set is refused in one line, by each program", async (t) => {
  for (const [name, value, ...programs] of [
    ["session_replication_role", "replica", ["migrate"], ["statements", "list"], ["serve"], ["work"]],
    ["restrict_nonsystem_relation_kind", "view", ["statements", "list"]],
  ] as const) {
    await give(holders.at(-1)!, { [name]: value });
    for (const [program, ...args] of programs) {
      const stderr = new RegExp(`^${name} is set for this login, .*\\n$`);
      fits(t, await runProgram(program, { args: [...args], env }), { code: 1, stdout: "", stderr }, program);
    }
  }
});
