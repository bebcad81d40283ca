// What the HTTP side counts: answers, groups of calls, what waits, what limits refused. Without metrics the service has no
// observer, and counts nothing.
import { Counter, Gauge, Histogram } from "prom-client";
import type { GateLoad } from "../gate/gate.ts";
import type { LimitName } from "./rate-limiter.ts";
import type { Metrics } from "../common/metrics-server.ts";

export type Observer = {
  // operation null: no route.
  answered(operation: string | null, status: number, code: string | null, seconds: number): void;
  grouped(size: number): void;
  refused(limit: LimitName | "connections" | "open_requests"): void;
};
// Asked at each scrape.
export type Load = { openRequests: () => number; connections: () => Promise<number>; gate: () => GateLoad };

const secondsBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4];

export function observeServe({ registry }: Pick<Metrics, "registry">): { observer: Observer; show(load: Load): void } {
  const registers = [registry];
  const requests = new Counter({
    name: "coupon_http_requests_total",
    help: "Answers by operation, HTTP status and error code.",
    labelNames: ["operation", "status", "code"],
    registers,
  });
  const seconds = new Histogram({
    name: "coupon_http_request_duration_seconds",
    help: "From a request's head to its answer.",
    labelNames: ["operation"],
    buckets: secondsBuckets,
    registers,
  });
  const groups = new Histogram({
    name: "coupon_group_size_calls",
    help: "Calls that were carried out as one transaction.",
    buckets: [1, 2, 4, 8, 16, 32, 64],
    registers,
  });
  const refused = new Counter({
    name: "coupon_limit_refused_total",
    help: "Requests and connections refused by a limit.",
    labelNames: ["limit"],
    registers,
  });
  // A limit that has refused nobody shows 0, so that its first refusal is an increase.
  for (const limit of ["requests", "unknown_codes", "connections", "open_requests"]) refused.inc({ limit }, 0);

  // Bound once: to make the labels of each answer anew would be most of the cost.
  const counters = new Map<string, Counter.Internal>();
  const timers = new Map<string, Histogram.Internal<string>>();

  return {
    observer: {
      answered(operation, status, code, took) {
        const name = operation ?? "none";
        const key = `${name} ${status} ${code}`;
        let counter = counters.get(key);
        if (counter === undefined) counters.set(key, (counter = requests.labels(name, String(status), code ?? "OK")));
        counter.inc();
        let timer = timers.get(name);
        if (timer === undefined) timers.set(name, (timer = seconds.labels(name)));
        timer.observe(took);
      },
      grouped: (size) => groups.observe(size),
      refused: (limit) => refused.inc({ limit }),
    },
    show({ openRequests, connections, gate }) {
      const gauge = (name: string, help: string, read: () => number | Promise<number>) =>
        new Gauge({
          name,
          help,
          registers,
          async collect() {
            this.set(await read());
          },
        });
      gauge("coupon_http_connections", "Open connections.", connections);
      gauge("coupon_http_open_requests", "Requests that are worked on.", openRequests);
      gauge("coupon_calls_waiting", "Calls that wait for their group to be carried out.", () => gate().waiting);
      const byLane = (name: string, help: string, read: (lane: GateLoad["lanes"][string]) => number) =>
        new Gauge({
          name,
          help,
          labelNames: ["lane"],
          registers,
          collect() {
            for (const [lane, load] of Object.entries(gate().lanes)) this.set({ lane }, read(load));
          },
        });
      byLane(
        "coupon_lane_busy_connections",
        "Connections to the database that are at work, by lane.",
        ({ busy }) => busy,
      );
      byLane("coupon_lane_connections", "Connections that a lane may use.", ({ width }) => width);
      byLane(
        "coupon_lane_waiting_statements",
        "Statements that wait for a connection, by lane.",
        ({ waiting }) => waiting,
      );
    },
  };
}
