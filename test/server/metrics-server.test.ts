// The server for Prometheus: what it answers, how often it asks the database, and what it shows if that fails.
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Gauge } from "prom-client";
import t, { type Test } from "tap";
import { createLog } from "../../src/common/log.ts";
import { startMetrics, type Source } from "../../src/server/metrics-server.ts";
import { fits } from "../support/fits.ts";
import { stopClock } from "../support/stop-clock.ts";
import { createStubLog } from "../support/stub.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

const build = { version: "1.2.3", migration: "045-example" };

async function start(t: Test) {
  const { logger, log: lines } = createStubLog();
  const metrics = (await startMetrics({ metricsPort: 0, metricsHost: "127.0.0.1" }, logger, build))!;
  t.teardown(() => metrics.stop());
  const scrape = async (): Promise<string> => (await fetch(metrics.url)).text();
  return { metrics, scrape, lines };
}

const upOf = (text: string): string[] => text.split("\n").filter((line) => line.startsWith("coupon_database_up{"));

t.test("only GET /metrics answers, with the metrics of the process, and nobody keeps the answer", async (t) => {
  const { metrics } = await start(t);
  const { origin } = new URL(metrics.url);
  t.equal(metrics.url, `${origin}/metrics`);
  for (const target of ["/metrics", "/metrics?name=x", "/metrics?"]) {
    const response = await fetch(`${origin}${target}`);
    t.equal(response.status, 200, target);
    t.equal(response.headers.get("content-type"), metrics.registry.contentType);
    t.equal(response.headers.get("cache-control"), "no-store");
    t.match(await response.text(), /^process_cpu_seconds_total \d/m);
  }
  for (const target of ["/", "/metrics/", "/metricsx", "/x/metrics", "/?/metrics"])
    t.equal((await fetch(`${origin}${target}`)).status, 404, target);
  for (const method of ["POST", "HEAD", "PUT"]) t.equal((await fetch(metrics.url, { method })).status, 404, method);
});

t.test("a scrape asks each source, but none again within a few seconds", async (t) => {
  const { metrics, scrape } = await start(t);
  const clock = stopClock(t);
  let asked = 0;
  const source: Source = {
    program: "serve",
    async ask() {
      asked += 1;
    },
  };
  t.strictSame(upOf(await scrape()), [], "nothing is known without a source");
  metrics.watch(source);
  metrics.watch({ ...source, program: "work" });
  const texts = [await scrape(), await scrape(), ...(await Promise.all([scrape(), scrape()]))];
  for (const text of texts)
    t.strictSame(upOf(text), ['coupon_database_up{program="serve"} 1', 'coupon_database_up{program="work"} 1']);
  clock.pass(4_999);
  await scrape();
  t.equal(asked, 2, "each one once");
  clock.pass(1);
  await scrape();
  t.equal(asked, 4);
});

t.test("each program shows its version, its newest migration and its Node", async (t) => {
  const { metrics, scrape } = await start(t);
  const ask = () => Promise.reject(new Error("gone"));
  for (const program of ["serve", "work"] as const) metrics.watch({ program, ask });
  const labels = `version="1.2.3",migration="045-example",node="${process.versions.node}"`;
  t.strictSame(
    (await scrape()).split("\n").filter((line) => line.startsWith("coupon_build_info{")),
    [`coupon_build_info{program="serve",${labels}} 1`, `coupon_build_info{program="work",${labels}} 1`],
  );
});

t.test("a source that fails or does not answer is down, and hides its values", async (t) => {
  const { metrics, scrape, lines } = await start(t);
  stopClock(t);
  const hidden: string[] = [];
  metrics.watch({
    program: "serve",
    ask: () => Promise.reject(new Error("gone")),
    hide: () => hidden.push("serve"),
  });
  metrics.watch({ program: "work", ask: () => new Promise(() => {}) });
  const [text, again] = await waitFor("the scrapes", Promise.all([scrape(), scrape()]), { withinMs: 20_000 });
  for (const one of [text, again])
    t.strictSame(upOf(one!), ['coupon_database_up{program="serve"} 0', 'coupon_database_up{program="work"} 0']);
  t.strictSame(hidden, ["serve"]);
  t.strictSame(lines, [], "the programs log what is wrong with their database");
});

t.test("if the metrics cannot be read, the answer is 500 and the log says why", async (t) => {
  const { metrics, lines } = await start(t);
  const registers = [metrics.registry];
  const broken = () => {
    throw new Error("broken gauge");
  };
  new Gauge({ name: "coupon_broken", help: "Fails.", registers, collect: broken });
  const response = await fetch(metrics.url);
  t.strictSame([response.status, await response.text()], [500, ""]);
  fits(t, lines, [{ level: 50, msg: "metrics failed", err: { message: "broken gauge" } }]);
});

t.test("of 51 silent connections, the first one is closed at once", async (t) => {
  const { metrics } = await start(t);
  const sockets = Array.from({ length: 51 }, () => connect(Number(new URL(metrics.url).port), "127.0.0.1"));
  t.teardown(() => sockets.forEach((socket) => socket.destroy()));
  let closed = 0;
  for (const socket of sockets)
    socket
      .on("error", () => {})
      .resume()
      .once("close", () => (closed += 1));
  await waitUntil("a connection that is closed", () => closed > 0);
  await sleep(100);
  t.equal(closed, 1);
});

t.test("stop ends the server beside open connections; without a port there is none", async (t) => {
  const { metrics, scrape } = await start(t);
  await scrape();
  // Only the server can end this one.
  const silent = connect(Number(new URL(metrics.url).port), "127.0.0.1");
  t.teardown(() => silent.destroy());
  silent.on("error", () => {});
  await waitFor("a connection", once(silent, "connect"));
  await waitFor("the end of the server", metrics.stop(), { withinMs: 20_000 });
  await t.rejects(scrape());
  t.equal(await startMetrics({ metricsPort: null, metricsHost: "127.0.0.1" }, createLog("silent"), build), null);
});
