// What Prometheus is told, on an address of its own: one registry a process, and the server that answers /metrics. Who
// has something to tell registers it there, under a name that begins with coupon_. No label ever holds an id, an access key, or
// anything else of a caller's.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { Config } from "./config.ts";
import { beforeDeadline } from "./deadline.ts";
import type { Logger } from "./log.ts";

// `ask` reads figures and shows them; `hide` takes them away when that fails: absent is what no alert takes for "nothing waits".
export type Source = { program: "serve" | "work"; ask: () => Promise<void>; hide?: () => void };
export type Metrics = {
  url: string;
  registry: Registry;
  // The database, as one of our programs sees it.
  watch(source: Source): void;
  stop(): Promise<void>;
};

// The database is asked at most so often, however often somebody scrapes, and waited for only so long.
const freshForMs = 5_000;
const askWithinMs = 2_500;

// Null: no METRICS_PORT, no metrics, and nobody who keeps count.
export async function startMetrics(
  { metricsPort, metricsHost }: Pick<Config, "metricsPort" | "metricsHost">,
  log: Logger,
): Promise<Metrics | null> {
  if (metricsPort === null) return null;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const up = new Gauge({
    name: "coupon_database_up",
    help: "1: the database answered a moment ago, 0: it did not.",
    labelNames: ["program"],
    registers: [registry],
  });
  const refreshes: (() => Promise<void>)[] = [];

  const server = createServer(
    { headersTimeout: 5_000, requestTimeout: 5_000, connectionsCheckingInterval: 1_000 },
    async (request, response) => {
      if (request.method !== "GET" || request.url?.split("?", 1)[0] !== "/metrics")
        return void response.writeHead(404).end();
      try {
        await Promise.all(refreshes.map((refresh) => refresh()));
        const text = await registry.metrics();
        response.writeHead(200, { "content-type": registry.contentType, "cache-control": "no-store" }).end(text);
      } catch (error) {
        log.error({ err: error }, "metrics failed");
        response.writeHead(500).end();
      }
    },
  );
  server.maxConnections = 50;
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(metricsPort, metricsHost, resolve));
  const { address, family, port } = server.address() as AddressInfo;
  const url = `http://${family === "IPv6" ? `[${address}]` : address}:${port}/metrics`;
  log.info({ metrics_url: url }, "metrics");

  return {
    url,
    registry,
    watch({ program, ask, hide }) {
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
