// What /metrics tells, and that it tells it whatever happens.
import { readFileSync } from "node:fs";
import { createServer, type AddressInfo, type Socket } from "node:net";
import t, { type Test } from "tap";
import { defaultLimits, readConfig, ConfigError } from "../../src/common/config.ts";
import { connect, openSession } from "../../src/database/connect.ts";
import type { Address } from "../../src/common/database-address.ts";
import { createLog } from "../../src/common/log.ts";
import { startMetrics, type Metrics } from "../../src/common/metrics-server.ts";
import { routes } from "../../src/http/routes/table.ts";
import { serve } from "../../src/serve.ts";
import { createChecker } from "../../src/worker/tasks/check.ts";
import { createSequencer } from "../../src/worker/tasks/sequence.ts";
import { observeWork } from "../../src/worker/metrics.ts";
import { keepAnswering } from "../../src/database/reconnecting.ts";
import { work } from "../../src/work.ts";
import { createClient } from "../../src/commands/client.ts";
import { sendBytes, sendPlain } from "../support/client.ts";
import { untilLocksExpire } from "../support/arrange.ts";
import { document, secretOf } from "../support/provisioning.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";

const log = createLog("silent");
const merchant = "mch_a";

async function openMetrics(t: Test): Promise<Metrics> {
  const metrics = await startMetrics({ metricsPort: 0, metricsHost: "127.0.0.1" }, log);
  t.teardown(() => metrics!.stop());
  return metrics!;
}

// name{label="…"} → value
async function scrape({ url }: Metrics): Promise<Map<string, number>> {
  const { status, text } = await sendPlain(url, "GET", "/metrics");
  if (status !== 200) throw new Error(text);
  return new Map(
    text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]),
  );
}

async function serveBeside(
  t: Test,
  service: Pick<Running, "address" | "keys">,
  metrics: Metrics,
  limits = defaultLimits,
) {
  const { url, stop } = await serve({
    address: service.address,
    keys: service.keys,
    config: { host: "127.0.0.1", port: 0, limits },
    log,
    metrics,
  });
  t.teardown(stop);
  return { url, as: (accessKey: string) => createClient({ url, accessKey, secret: secretOf(accessKey) }) };
}

t.test(
  "answers are counted by operation, status and code, and by how long they took; groups and refusals too",
  async (t) => {
    const service = await startService(t);
    const metrics = await openMetrics(t);
    const { url, as } = await serveBeside(t, service, metrics, { ...defaultLimits, unknownCodesPerMinute: 1 });
    const { codes } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 3);
    const redeem = (coupon: string) =>
      as("ak_a").post("/v1/coupons/redeem", { request_id: newRequestId(), coupon, merchant });
    await Promise.all([redeem(codes[0]!), redeem(codes[1]!)]);
    await redeem(codes[0]!);
    for (let count = 0; count < 3; count += 1)
      await redeem(codes[0]!.slice(0, 15) + (codes[0]![15] === "7" ? "8" : "7"));
    await sendPlain(url, "GET", "/readyz");
    await sendBytes(url, "nonsense\r\n\r\n");
    const seen = await scrape(metrics);
    t.match(Object.fromEntries(seen), {
      'coupon_http_requests_total{operation="redeem",status="200",code="OK"}': 2,
      'coupon_http_requests_total{operation="redeem",status="409",code="COUPON_REDEEMED"}': 1,
      'coupon_http_requests_total{operation="redeem",status="422",code="COUPON_CODE_INVALID"}': 1,
      'coupon_http_requests_total{operation="redeem",status="429",code="RATE_LIMITED"}': 2,
      'coupon_http_requests_total{operation="readyz",status="200",code="OK"}': 1,
      'coupon_http_requests_total{operation="none",status="400",code="INVALID_REQUEST"}': 1,
      'coupon_http_request_duration_seconds_count{operation="redeem"}': 6,
      'coupon_limit_refused_total{limit="unknown_codes"}': 2,
      'coupon_limit_refused_total{limit="requests"}': 0,
      'coupon_database_up{program="serve"}': 1,
      'coupon_lane_connections{lane="quick"}': 12,
      coupon_http_open_requests: 0,
      coupon_calls_waiting: 0,
    });
    t.ok(seen.get("coupon_group_size_calls_sum")! >= 6 && seen.get("coupon_group_size_calls_count")! >= 5);
    t.ok(seen.get("coupon_http_connections")! >= 0);
    t.ok(seen.get("process_resident_memory_bytes")! > 0, "and the process's own");
  },
);

t.test("labels have few values, whatever somebody sends", async (t) => {
  const service = await startService(t);
  const metrics = await openMetrics(t);
  const { url, as } = await serveBeside(t, service, metrics);
  for (let count = 0; count < 20; count += 1) {
    await sendPlain(url, ["GET", "PUT", "POST", "PROPFIND"][count % 4]!, `/v1/made-up-${count}`);
    await as("ak_a").post("/v1/coupons/redeem", { request_id: newRequestId(), [`field_${count}`]: count });
    await as("ak_a").get(`/v1/requests/unknown-${count}`);
  }
  const values = new Map<string, Set<string>>();
  for (const name of (await scrape(metrics)).keys()) {
    if (!name.startsWith("coupon_")) continue;
    for (const [, label, value] of name.matchAll(/(\w+)="([^"]*)"/g))
      values.set(label!, (values.get(label!) ?? new Set()).add(value!));
  }
  t.strictSame([...values.keys()].sort(), ["code", "lane", "le", "limit", "operation", "program", "status"]);
  const known = ["none", "healthz", "readyz", ...routes.map(({ operation }) => operation)];
  t.ok([...values.get("operation")!].every((operation) => known.includes(operation)));
  t.ok([...values.get("code")!].every((code) => /^[A-Z_]+$/.test(code)) && values.get("code")!.size < 10);
});

t.test("the background shows what waits in the database, and for how long", async (t) => {
  const service = await startService(t, document, { mayBreakInvariants: true });
  const metrics = await openMetrics(t);
  const a = service.as("ak_a");
  const database = keepAnswering(() =>
    connect(service.address, { name: "coupon test", role: "coupon_worker", max: 1 }),
  );
  t.teardown(() => database.end());
  observeWork(metrics, database);
  t.match(Object.fromEntries(await scrape(metrics)), {
    'coupon_database_up{program="work"}': 1,
    coupon_feed_waiting_events: 0,
    coupon_feed_lag_seconds: 0,
    coupon_delivery_waiting_events: 0,
    coupon_delivery_lag_seconds: 0,
    coupon_mint_pending_batches: 0,
    coupon_days_overdue: 0,
    coupon_statements_waiting: 0,
    coupon_lock_lag_seconds: 0,
    coupon_webhooks_disabled: 0,
  });
  const webhook = { url: "https://hook.example/" };
  const brief = {
    id: "tpl_short",
    name: "short",
    maker: "pty_a",
    currency: "EUR",
    discount: { type: "fixed", amount: 5 },
    valid_from: "2020-01-01T00:00:00Z",
    valid_to: "2099-01-01T00:00:00Z",
    lock_ttl_seconds: 1,
  };
  await service.apply({
    tenants: [
      { id: "ten_a", name: "A", variant: "A", parties: [{ id: "pty_a", name: "a", webhook }], templates: [brief] },
    ],
  });
  const { codes } = await service.makeBatch(a, "tpl_fixed", 5);
  await createSequencer({ database, stopping: new AbortController().signal }).sequence();
  for (const coupon of codes.slice(0, 2))
    await a.post("/v1/coupons/redeem", { request_id: newRequestId(), coupon, merchant });
  const [short] = (await service.makeBatch(a, "tpl_short", 1)).codes;
  await a.post("/v1/coupons/lock", { request_id: newRequestId(), coupon: short, merchant });
  await untilLocksExpire(service);
  await a.post("/v1/batches", { request_id: newRequestId(), template: "tpl_fixed", total_count: 1_000 });
  // A distributor whose worker was away for days.
  await service.owner.rows(
    `insert into core.ledger_book (tenant_id, party_id, open_on)
     select p.tenant_id, p.party_id, current_date - 3 from core.party p where p.external_id = 'pty_other'`,
  );
  const [row] = await service.owner.rows<Record<string, number>>("select * from jobs.read_metrics()");
  t.match(row, {
    feed_waiting: 4,
    mint_batches: 1,
    mint_coupons: "1000",
    day_overdue: 1,
    statement_waiting: 0,
    webhook_disabled: 0,
  });
  t.ok(row!["feed_lag"]! > 0 && row!["feed_lag"]! < 60, `the events wait ${row!["feed_lag"]} s`);
  t.ok(row!["lock_lag"]! > 0 && row!["lock_lag"]! < 60);
  t.ok(row!["mint_lag"]! > 0 && row!["mint_lag"]! < 60);
  t.ok(row!["day_lag"]! > 86_400 && row!["day_lag"]! < 4 * 86_400, "since the end of the day that is open");
  t.ok(row!["delivery_waiting"]! > 0 && row!["delivery_lag"]! > 0, "batch.generated and allocation.completed");
});

t.test("the figures read little, whatever lies in the tables", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  const { codes } = await service.makeBatch(a, "tpl_fixed", 300);
  await Promise.all(
    codes.map((coupon) => a.post("/v1/coupons/redeem", { request_id: newRequestId(), coupon, merchant })),
  );
  const session = openSession(service.address, { name: "coupon test", role: "coupon_worker" });
  t.teardown(() => session.end());
  await createSequencer({ database: session, stopping: new AbortController().signal }).sequence();
  const read = async () =>
    (
      await session.rows<{ tables: number; rows: number }>(
        "select sum(s.seq_scan)::int as tables, sum(s.seq_tup_read + s.idx_tup_fetch)::int as rows from pg_stat_xact_user_tables s where s.schemaname = 'core'",
      )
    )[0]!;
  await session.run("begin");
  const before = await read();
  await session.rows("select * from jobs.read_metrics()");
  const after = await read();
  await session.run("rollback");
  t.ok(after.rows - before.rows < 20, `${after.rows - before.rows} rows`);
});

// A server that takes connections and says nothing, as one behind a broken network.
async function startSilent(t: Test): Promise<Address> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => void sockets.add(socket.on("error", () => {})));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.teardown(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { host: "127.0.0.1", port: (server.address() as AddressInfo).port, user: "x", database: "x" } as Address;
}

t.test(
  "while the database is away a scrape still answers in time, with the process's own figures and none of the database's",
  async (t) => {
    const { keys } = await startService(t);
    const away: Address = { host: "127.0.0.1", port: 1, user: "x", database: "x" } as Address;
    for (const [what, address] of [
      ["silent", await startSilent(t)],
      ["refusing", away],
    ] as const) {
      const metrics = await openMetrics(t);
      await serveBeside(t, { address, keys }, metrics);
      const database = keepAnswering(() => connect(address, { name: "coupon test", max: 1 }));
      t.teardown(() => database.end());
      observeWork(metrics, database);
      const startedAt = performance.now();
      const [seen, again] = await Promise.all([scrape(metrics), scrape(metrics)]);
      const took = performance.now() - startedAt;
      t.ok(took < 4_000, `${what}: ${Math.round(took)} ms`);
      t.match(Object.fromEntries(seen), {
        'coupon_database_up{program="serve"}': 0,
        'coupon_database_up{program="work"}': 0,
        coupon_http_open_requests: 0,
      });
      t.ok(seen.get("process_cpu_seconds_total")! > 0);
      t.notOk(
        [...seen.keys(), ...again.keys()].some((name) => /^coupon_(\w+_lag_seconds|mint_)/.test(name)),
        "what is not known is not there",
      );
    }
  },
);

t.test("the last self-check is shown by who made it, and nothing before", async (t) => {
  const service = await startService(t, document, { mayBreakInvariants: true });
  const metrics = await openMetrics(t);
  const database = keepAnswering(() =>
    connect(service.address, { name: "coupon test", role: "coupon_worker", max: 1 }),
  );
  t.teardown(() => database.end());
  const { checked } = observeWork(metrics, database);
  t.notOk([...(await scrape(metrics)).keys()].some((name) => name.startsWith("coupon_law")));
  const check = createChecker({
    address: service.address,
    role: "coupon_worker",
    log,
    stopping: new AbortController().signal,
    onChecked: checked,
  });
  await check();
  const seen = await scrape(metrics);
  t.equal(seen.get("coupon_laws_broken"), 0);
  t.ok(Math.abs(seen.get("coupon_laws_checked_timestamp_seconds")! - Date.now() / 1_000) < 10);
  checked([{ law: "each day adds up", rows: 3 }]);
  t.match(Object.fromEntries(await scrape(metrics)), {
    coupon_laws_broken: 1,
    'coupon_law_broken_rows{law="each day adds up"}': 3,
  });
});

t.test("docs/operate.md lists every metric, and no other", async (t) => {
  const service = await startService(t);
  const metrics = await openMetrics(t);
  await serveBeside(t, service, metrics);
  const worker = await work({ address: service.address, keys: service.keys, config: readConfig({}), log, metrics });
  t.teardown(() => worker.stop());
  const { text } = await sendPlain(metrics.url, "GET", "/metrics");
  const made = [...text.matchAll(/^# TYPE (coupon_\w+)/gm)].map(([, name]) => name!);
  const table = readFileSync("docs/operate.md", "utf8").split(/<!-- metrics:(?:begin|end) -->/)[1]!;
  const told = [...table.matchAll(/^\| (`coupon_[^|]*) \|/gm)].flatMap(([, cell]) =>
    [...cell!.matchAll(/`(coupon_\w+)/g)].map(([, name]) => name!),
  );
  t.strictSame(told.toSorted(), made.toSorted());
});

t.test("metrics are off without a port, and are at no other path or method", async (t) => {
  t.match(readConfig({}), { metricsPort: null, metricsHost: "127.0.0.1" });
  t.equal(await startMetrics(readConfig({}), log), null);
  t.match(readConfig({ METRICS_PORT: "9464", METRICS_HOST: "0.0.0.0" }), { metricsPort: 9464, metricsHost: "0.0.0.0" });
  t.throws(() => readConfig({ METRICS_PORT: "many" }), ConfigError);
  const metrics = await openMetrics(t);
  t.equal((await sendPlain(metrics.url, "GET", "/")).status, 404);
  t.equal((await sendPlain(metrics.url, "POST", "/metrics")).status, 404);
});
