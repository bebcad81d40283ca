// The metrics of a process: one registry, and a server with its own port that answers GET /metrics for Prometheus. The
// parts of the program register their metrics here, with names that begin with coupon_. No label contains an ID, an
// access key or any other data of a caller.
import { createServer } from "node:http";
import type { Registry } from "prom-client";
import type { Config } from "../config/config.ts";
import { beforeDeadline } from "../common/deadline.ts";
import type { Logger } from "../common/log.ts";
import { boundConnections } from "./connections.ts";
import { openPort } from "./open-port.ts";

/**
 * `ask` reads metrics from the database and sets them. `hide` removes them if that fails: a stale 0 would look as if
 * nothing waited.
 */
export type Source = { program: "serve" | "work"; ask: () => Promise<void>; hide?: () => void };
export type Metrics = {
  url: string;
  registry: Registry;
  /** The package, which is loaded only where there are metrics: without it, a program starts faster. */
  kinds: Pick<typeof import("prom-client"), "Counter" | "Gauge" | "Histogram">;
  /** Calls `source` before a scrape and reports whether it reached the database. */
  watch(source: Source): void;
  stop(): Promise<void>;
};

// Scrapes query the database at most once per `freshForMs` and wait for it at most `askWithinMs`.
const freshForMs = 5_000;
const askWithinMs = 2_500;
// Further scrapes get the text of the last one, because each scrape takes some milliseconds in which no till is served.
const mostScrapes = 10;
const perMs = 1_000;
const mostConnections = 50;
// Gauges of prom-client that are named like counters. They are sums of nodejs_active_handles and so on, which stay.
const misnamed = ["handles", "requests", "resources"].map((what) => `nodejs_active_${what}_total`);

/** Returns null without METRICS_PORT: then nothing is counted. */
export async function startMetrics(
  { metricsPort, metricsHost }: Pick<Config, "metricsPort" | "metricsHost">,
  log: Logger,
  build: { version: string; migration: string },
): Promise<Metrics | null> {
  if (metricsPort === null) return null;
  const kinds = await import("prom-client");
  const { registry, up, info } = createRegistry(kinds);
  const refreshes: (() => Promise<void>)[] = [];

  const render = limitRate(async () => {
    await Promise.all(refreshes.map((refresh) => refresh()));
    return Buffer.from(await registry.metrics());
  });

  // equivalent mutant (literal 1_000): only the time until a late request is cut changes
  const times = { headersTimeout: 5_000, requestTimeout: 5_000, connectionsCheckingInterval: 1_000 };
  const server = createServer(times);
  const connections = boundConnections(server, { most: mostConnections });
  server.on("request", async (request, response) => {
    if (!connections.admit(request, response)) return;
    if (request.method !== "GET" || request.url!.split("?")[0] !== "/metrics")
      return void response.writeHead(404).end();
    try {
      const text = await render();
      response.writeHead(200, { "content-type": registry.contentType, "cache-control": "no-store" }).end(text);
    } catch (error) {
      log.error({ err: error }, "metrics failed");
      response.writeHead(500).end();
    }
  });
  const settings = { host: "METRICS_HOST", port: "METRICS_PORT" };
  const origin = await openPort(server, { host: metricsHost, port: metricsPort, settings });

  return {
    url: `${origin}/metrics`,
    registry,
    kinds,
    watch({ program, ask, hide }) {
      info.set({ program, ...build, node: process.versions.node }, 1);
      let askedAt = -Infinity;
      let running = Promise.resolve();
      refreshes.push(() => {
        const now = performance.now();
        if (now - askedAt < freshForMs) return running;
        askedAt = now;
        running = beforeDeadline(ask(), now + askWithinMs).then(
          () => up.set({ program }, 1),
          () => {
            up.set({ program }, 0);
            hide?.();
          },
        );
        return running;
      });
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function createRegistry({ collectDefaultMetrics, Gauge, Registry }: typeof import("prom-client")) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of misnamed) registry.removeSingleMetric(name);
  const up = new Gauge({
    name: "coupon_database_up",
    help: "1 if the database answered within the last seconds, else 0.",
    labelNames: ["program"],
    registers: [registry],
  });
  const info = new Gauge({
    name: "coupon_build_info",
    help: "Always 1. The labels are the version, its newest migration, and the version of Node.",
    labelNames: ["program", "version", "migration", "node"],
    registers: [registry],
  });
  return { registry, up, info };
}

function limitRate<T>(render: () => Promise<T>): () => Promise<T> {
  let since = -Infinity;
  let rendered = 0;
  let last: Promise<T>;
  return () => {
    const now = performance.now();
    if (now - since >= perMs) [since, rendered] = [now, 0];
    if (rendered < mostScrapes) last = render();
    rendered += 1;
    return last;
  };
}
