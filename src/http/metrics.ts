// The metrics of the HTTP side: answers, group sizes, queues, and refusals by limits. Without METRICS_PORT the service
// has no observer and counts nothing.
import type { Counter, Histogram } from "prom-client";
import type { CellLoad } from "../gate/cell-calls.ts";
import type { LimitName } from "./rate-limiter.ts";
import type { Metrics } from "../server/metrics-server.ts";

export type Observer = {
  // operation null: the request matched no route.
  answered(operation: string | null, status: number, code: string | null, seconds: number): void;
  /** A refusal that the database does not record. accessKey null: the caller is not known. */
  declined(reason: string, accessKey: string | null): void;
  grouped(size: number): void;
  refused(limit: LimitName | "connections" | "open_requests" | "exports"): void;
};
// Read at each scrape.
export type Load = { openRequests: () => number; connections: () => number; gate: () => CellLoad[] };
type Parts = Pick<Metrics, "registry" | "kinds">;

/** Credentials with a label of their own; further ones share "other". */
const mostCredentials = 200;
const secondsBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4];

export function observeServe(parts: Parts): { observer: Observer; show(load: Load): void } {
  return { observer: createObserver(parts), show: (load) => showLoad(parts, load) };
}

function createObserver({ registry, kinds: { Counter, Histogram } }: Parts): Observer {
  const registers = [registry];
  const requests = new Counter({
    name: "coupon_http_requests_total",
    help: "Answers by operation, HTTP status and error code.",
    labelNames: ["operation", "status", "code"],
    registers,
  });
  const seconds = new Histogram({
    name: "coupon_http_request_duration_seconds",
    help: "Time from a request's head to its answer.",
    labelNames: ["operation"],
    buckets: secondsBuckets,
    registers,
  });
  const groups = new Histogram({
    name: "coupon_group_size_calls",
    help: "Calls that shared one transaction.",
    buckets: [1, 2, 4, 8, 16, 32, 64],
    registers,
  });
  const refused = new Counter({
    name: "coupon_limit_refused_total",
    help: "Requests and connections refused by a limit.",
    labelNames: ["limit"],
    registers,
  });
  const declined = new Counter({
    name: "coupon_unrecorded_refusals_total",
    help: "Refusals that the database does not record, by reason and credential.",
    labelNames: ["reason", "credential"],
    registers,
  });
  const credentials = new Set<string>();
  // A metric keeps each label for the life of the process, so their number is bounded.
  const labelOf = (accessKey: string | null): string => {
    if (accessKey === null) return "none";
    if (credentials.size < mostCredentials) credentials.add(accessKey);
    return credentials.has(accessKey) ? accessKey : "other";
  };
  // Limits start at 0, so that alerts see the first refusal as an increase.
  for (const limit of ["requests", "wrong_codes", "connections", "open_requests", "exports"]) refused.inc({ limit }, 0);

  // Labels are resolved once: doing it for each answer would be most of the cost.
  const counters = new Map<string, Counter.Internal>();
  const timers = new Map<string, Histogram.Internal<string>>();

  return {
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
    declined: (reason, accessKey) => declined.inc({ reason, credential: labelOf(accessKey) }),
    grouped: (size) => groups.observe(size),
    refused: (limit) => refused.inc({ limit }),
  };
}

function showLoad({ registry, kinds: { Gauge } }: Parts, { openRequests, connections, gate }: Load): void {
  const registers = [registry];
  const show = (name: string, help: string, read: () => number | Promise<number>) =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set(await read());
      },
    });
  const showByLane = (name: string, help: string, read: (lane: CellLoad["lanes"][string]) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ["lane", "cell"],
      registers,
      collect() {
        for (const { cell, lanes } of gate())
          for (const [lane, load] of Object.entries(lanes))
            this.set(cell === null ? { lane } : { lane, cell }, read(load));
      },
    });
  show("coupon_http_connections", "Open connections.", connections);
  show("coupon_http_open_requests", "Requests in progress.", openRequests);
  show("coupon_calls_waiting", "Calls that wait for their group to start.", () =>
    gate().reduce((sum, { waiting }) => sum + waiting, 0),
  );
  show("coupon_database_disk_full", "1 while calls fail because the database's disk is full, else 0.", () =>
    gate().some(({ isDiskFull }) => isDiskFull) ? 1 : 0,
  );
  showByLane("coupon_lane_busy_connections", "Database connections in use, by lane.", ({ busy }) => busy);
  showByLane("coupon_lane_connections", "Database connections of each lane.", ({ width }) => width);
  showByLane(
    "coupon_lane_waiting_statements",
    "Statements that wait for a connection, by lane.",
    ({ waiting }) => waiting,
  );
}
