// The metrics of the HTTP side. For the port see test/server/metrics-server.test.ts, and for the worker's metrics
// test/worker/metrics.test.ts.
import { readFileSync } from "node:fs";
import t from "tap";
import { createLog } from "../../src/common/log.ts";
import { defaultLimits, readConfig } from "../../src/config/config.ts";
import type { Address } from "../../src/config/database-address.ts";
import { listen } from "../../src/http/listener.ts";
import { observeServe } from "../../src/http/metrics.ts";
import { routes } from "../../src/http/routes/table.ts";
import { serve } from "../../src/serve.ts";
import { work } from "../../src/work.ts";
import { observeWork } from "../../src/worker/metrics.ts";
import { findFiring } from "../support/alerts.ts";
import type { Coupon } from "../support/caller.ts";
import { sendBytes, sendPlain } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { scenario } from "../support/scenario.ts";
import { openMetrics, openMetricsDatabase, scrape } from "../support/scrape.ts";

const log = createLog("silent");

t.test(
  "Answers are counted by operation, status and code, with their durations; groups and refusals too",
  async (t) => {
    const metrics = await openMetrics(t);
    const world = await scenario(t, { http: true, metrics, limits: { wrongCodesPerMinute: 1 } });
    const { till, makeCoupons } = world.a;
    const [first, second] = (await makeCoupons(2)) as [Coupon, Coupon];
    await Promise.all([till.redeem(first), till.redeem(second)]);
    await till.redeem(first);
    const mistyped = first.code.slice(0, 15) + (first.code[15] === "7" ? "8" : "7");
    for (let count = 0; count < 3; count += 1) await till.redeem(first, { coupon: mistyped });
    const [foreign] = (await world.b.makeCoupons(1)) as [Coupon];
    await world.a.otherTill.query(foreign);
    await sendPlain(world.url, "GET", "/readyz");
    await sendPlain(world.url, "GET", "/v1/webhook");
    await sendBytes(world.url, "nonsense\r\n\r\n");
    const seen = await scrape(metrics);
    fits(t, Object.fromEntries(seen), {
      'coupon_http_requests_total{operation="redeem",status="200",code="OK"}': 2,
      'coupon_http_requests_total{operation="redeem",status="409",code="COUPON_REDEEMED"}': 1,
      'coupon_http_requests_total{operation="redeem",status="422",code="COUPON_CODE_INVALID"}': 1,
      'coupon_http_requests_total{operation="redeem",status="429",code="RATE_LIMITED"}': 2,
      'coupon_http_requests_total{operation="readyz",status="200",code="OK"}': 1,
      'coupon_http_requests_total{operation="none",status="400",code="INVALID_REQUEST"}': 1,
      'coupon_http_request_duration_seconds_count{operation="redeem"}': 6,
      'coupon_limit_refused_total{limit="wrong_codes"}': 2,
      'coupon_unrecorded_refusals_total{reason="invalid_code",credential="ak_a"}': 1,
      'coupon_unrecorded_refusals_total{reason="limit_of_wrong_codes",credential="ak_a"}': 2,
      'coupon_unrecorded_refusals_total{reason="unknown_code",credential="ak_a_second"}': 1,
      'coupon_unrecorded_refusals_total{reason="unauthenticated",credential="none"}': 1,
      'coupon_limit_refused_total{limit="requests"}': 0,
      'coupon_database_up{program="serve"}': 1,
      'coupon_lane_connections{lane="quick"}': 10,
      coupon_http_open_requests: 0,
      coupon_calls_waiting: 0,
      coupon_database_disk_full: 0,
    });
    const lines = world.log.filter(({ operation }) => operation === "redeem");
    const loggedMs = lines.reduce((sum, line) => sum + Number(line["duration_ms"]), 0);
    const summedMs = seen.get('coupon_http_request_duration_seconds_sum{operation="redeem"}')! * 1_000;
    // The log has two decimals of each.
    t.ok(Math.abs(loggedMs - summedMs) < 6 * 0.006, "the log has the same durations");
    t.ok(seen.get("coupon_group_size_calls_sum")! >= 6 && seen.get("coupon_group_size_calls_count")! >= 5);
    t.ok(seen.get("process_resident_memory_bytes")! > 0, "the process's own metrics are there too");
  },
);

t.test("Refusals are counted for 200 credentials, and for all others together", async (t) => {
  const metrics = await openMetrics(t);
  const { observer } = observeServe(metrics);
  for (let count = 0; count < 203; count += 1) observer.declined("nonce_reused", `ak_${count}`);
  observer.declined("nonce_reused", "ak_0");
  observer.declined("unknown_code", null);
  const seen = await scrape(metrics);
  const of = (reason: string, credential: string) =>
    seen.get(`coupon_unrecorded_refusals_total{reason="${reason}",credential="${credential}"}`);
  t.strictSame(
    [of("nonce_reused", "ak_0"), of("nonce_reused", "ak_199"), of("nonce_reused", "ak_200")],
    [2, 1, undefined],
  );
  t.strictSame([of("nonce_reused", "other"), of("unknown_code", "none")], [3, 1]);
});

t.test("A refusal is counted under the limit that caused it, whether open requests or connections", async (t) => {
  const metrics = await openMetrics(t);
  // No request may be in progress.
  const world = await scenario(t, { http: true, metrics, limits: { openRequests: 0, connections: 1 } });
  for (let count = 0; count < 2; count += 1)
    fits(t, await world.as("ak_a").get("/v1/webhook"), { status: 503, json: { code: "UNAVAILABLE" } });
  // The connection of these calls is still open. It is closed for this one.
  const answer = await sendBytes(world.url, "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  t.match(answer, /^HTTP\/1.1 200 OK\r\n/, "with its reason phrase");
  const seen = await scrape(metrics);
  const refused = ["requests", "wrong_codes", "connections", "open_requests"].map((limit) => [
    limit,
    seen.get(`coupon_limit_refused_total{limit="${limit}"}`),
  ]);
  t.strictSame(Object.fromEntries(refused), { requests: 0, wrong_codes: 0, connections: 1, open_requests: 2 });
});

t.test("Each metric of the load shows its own number, by lane and cell", async (t) => {
  const metrics = await openMetrics(t);
  const lanes = { quick: { busy: 4, waiting: 5, width: 6 }, bulk: { busy: 7, waiting: 8, width: 9 } };
  const second = { quick: { busy: 10, waiting: 11, width: 12 } };
  const gate = () => [
    { cell: null, waiting: 1, lanes, isDiskFull: false },
    { cell: 2, waiting: 2, lanes: second, isDiskFull: true },
  ];
  observeServe(metrics).show({ openRequests: () => 1, connections: () => 2, gate });
  const seen = [...(await scrape(metrics))].filter(([name]) => /^coupon_(?!limit_|group_|build_)/.test(name));
  t.strictSame(Object.fromEntries(seen), {
    coupon_http_open_requests: 1,
    coupon_http_connections: 2,
    coupon_calls_waiting: 3,
    coupon_database_disk_full: 1,
    'coupon_lane_busy_connections{lane="quick"}': 4,
    'coupon_lane_waiting_statements{lane="quick"}': 5,
    'coupon_lane_connections{lane="quick"}': 6,
    'coupon_lane_busy_connections{lane="bulk"}': 7,
    'coupon_lane_waiting_statements{lane="bulk"}': 8,
    'coupon_lane_connections{lane="bulk"}': 9,
    'coupon_lane_busy_connections{lane="quick",cell="2"}': 10,
    'coupon_lane_waiting_statements{lane="quick",cell="2"}': 11,
    'coupon_lane_connections{lane="quick",cell="2"}': 12,
  });
});

t.test("Labels have few values, whatever clients send; docs/operate.md lists every metric and no others", async (t) => {
  const metrics = await openMetrics(t);
  const { url, address, keys, as } = await scenario(t, { http: true, metrics });
  for (let count = 0; count < 20; count += 1) {
    await sendPlain(url, ["GET", "PUT", "POST", "PROPFIND"][count % 4]!, `/v1/made-up-${count}`);
    await as("ak_a").post("/v1/coupons/redeem", { request_id: `r-${count}`, [`field_${count}`]: count });
    await as("ak_a").get(`/v1/requests/unknown-${count}`);
  }
  const values = new Map<string, Set<string>>();
  for (const name of (await scrape(metrics)).keys()) {
    if (!name.startsWith("coupon_")) continue;
    for (const [, label, value] of name.matchAll(/(\w+)="([^"]*)"/g))
      values.set(label!, (values.get(label!) ?? new Set()).add(value!));
  }
  // Only behind a router.
  values.delete("cell");
  t.strictSame([...values.keys()].sort(), [
    "code",
    "lane",
    "le",
    "limit",
    "migration",
    "node",
    "operation",
    "program",
    "status",
    "version",
  ]);
  const known = ["none", "healthz", "readyz", ...routes.map(({ operation }) => operation)];
  t.ok([...values.get("operation")!].every((operation) => known.includes(operation)));
  t.ok([...values.get("code")!].every((code) => /^[A-Z_]+$/.test(code)) && values.get("code")!.size < 10);

  const worker = await work({ address, keys, config: readConfig({}), log, metrics });
  t.teardown(() => worker.stop());
  const { text } = await sendPlain(metrics.url, "GET", "/metrics");
  const made = [...text.matchAll(/^# TYPE (coupon_\w+)/gm)].map(([, name]) => name!);
  const table = readFileSync("docs/operate.md", "utf8").split(/<!-- metrics:(?:begin|end) -->/)[1]!;
  const listed = [...table.matchAll(/^\| (`coupon_[^|]*) \|/gm)].flatMap(([, cell]) =>
    [...cell!.matchAll(/`(coupon_\w+)/g)].map(([, name]) => name!),
  );
  t.strictSame(listed.toSorted(), made.toSorted());
});

t.test("Without its database a program has its own metrics and none of the database's", async (t) => {
  const { keys } = await scenario(t);
  const address = { host: "127.0.0.1", port: 1, user: "x", database: "x" } as Address;
  const metrics = await openMetrics(t);
  const listening = await listen({ host: "127.0.0.1", port: 0, limits: defaultLimits }, log);
  const { stop } = await serve({ address, keys, limits: defaultLimits, listening, log, metrics });
  t.teardown(stop);
  observeWork(metrics, openMetricsDatabase(t, address));
  const seen = await scrape(metrics);
  fits(t, Object.fromEntries(seen), {
    'coupon_database_up{program="serve"}': 0,
    'coupon_database_up{program="work"}': 0,
    coupon_http_open_requests: 0,
  });
  t.notOk([...seen.keys()].some((name) => /^coupon_(\w+_lag_seconds|mint_)/.test(name)));
  t.strictSame(findFiring(seen), ["CouponDatabaseDown", "CouponNoWorker", "CouponInvariantsNeverChecked"]);
  await sendPlain(listening.url, "GET", "/healthz");
  const healthy = await scrape(metrics);
  t.notOk(findFiring(healthy, { before: seen }).includes("CouponServerErrors"));
  await sendPlain(listening.url, "GET", "/readyz");
  t.ok(findFiring(await scrape(metrics), { before: healthy }).includes("CouponServerErrors"));
});
