// What the measured rounds of the contenders say: a table of rates, one of CPU time, and the ratios with their aims.
import { cpuGroups, type CpuGroup } from "./measure.ts";
import type { Measurement, Measurements, RateName } from "./rate-names.ts";
import { joined, median, quantile, type Result, type Row } from "./results.ts";

const columns: Record<CpuGroup, string> = {
  sessions: "sessions",
  workerSessions: "worker's sessions",
  server: "other postgres",
  serve: "serve",
  work: "work",
};
// These work for a floor; the programs of the service are idle beside it.
const floorGroups = new Set<CpuGroup>(["sessions", "server"]);

const isFloor = (name: RateName): boolean => name.startsWith("floor");
const floorOf = (name: RateName): RateName => (/-[18]$/.exec(name) ? `floor${name.slice(-2) as "-8" | "-1"}` : "floor");
const rateOf = ({ count, seconds }: Measurement): number => count / seconds;

function medianOf(list: readonly Measurement[] | undefined, read: (one: Measurement) => number | null): number | null {
  const values = (list ?? []).map(read).filter((value) => value !== null);
  return values.length === 0 ? null : median(values);
}

// Of all requests: those of http-lock-confirm are locks and confirms.
const latency = (share: number) => (one: Measurement) =>
  one.latencies === undefined ? null : quantile(joined(one.latencies), share);

// Microseconds for each call, without the load generator.
function wholeCpu(name: RateName, list: readonly Measurement[] | undefined): number | null {
  const groups = cpuGroups.filter((group) => !isFloor(name) || floorGroups.has(group));
  return medianOf(
    list,
    ({ costs: { cpu }, count }) => cpu && (groups.reduce((sum, group) => sum + cpu[group], 0) * 1e6) / count,
  );
}

function ratio(a: number | null | undefined, b: number | null | undefined): number | null {
  return a == null || b == null ? null : a / b;
}

export function tabulate(measured: Measurements): Record<string, Row[]> {
  const floorRate = (name: RateName) => (isFloor(name) ? null : medianOf(measured.get(floorOf(name)), rateOf));
  const rates = [...measured].map(([name, list]): Row => {
    const rate = medianOf(list, rateOf);
    return {
      name,
      values: {
        "/s": rate,
        "of the floor": name === "fixed" ? null : ratio(rate, floorRate(name)),
        "p50 ms": medianOf(list, latency(0.5)),
        "p99 ms": medianOf(list, latency(0.99)),
        "WAL B": medianOf(list, ({ costs, count }) => costs.walBytes / count),
        "page images": medianOf(list, ({ costs, count }) => costs.fullPageImages / count),
        "feed after s": medianOf(list, ({ feedSeconds }) => feedSeconds),
      },
    };
  });
  const cpu = [...measured].map(([name, list]): Row => {
    const whole = wholeCpu(name, list);
    const floor = isFloor(name) ? null : wholeCpu(floorOf(name), measured.get(floorOf(name)));
    return {
      name,
      values: {
        ...Object.fromEntries(
          cpuGroups.map((group) => [
            columns[group],
            medianOf(list, ({ costs, count }) => costs.cpu && (costs.cpu[group] * 1e6) / count),
          ]),
        ),
        whole: whole,
        "floor's / this": ratio(floor, whole),
        "load generator": medianOf(list, ({ loadCpuSeconds, count }) => (loadCpuSeconds * 1e6) / count),
      },
    };
  });
  return { "rates, beside a worker": rates, "CPU, µs for each call": cpu };
}

export function compareRates(measured: Measurements): Result[] {
  const rate = (name: RateName) => medianOf(measured.get(name), rateOf);
  const cpu = (name: RateName) => wholeCpu(name, measured.get(name));
  const p50 = (name: RateName) => medianOf(measured.get(name), latency(0.5));
  const [call, http] = [p50("function-1"), p50("http-1")];
  const all: [name: string, value: number | null, unit: string, aim?: Result["aim"]][] = [
    ["http / floor", ratio(rate("http"), rate("floor")), "", { atLeast: 0.8 }],
    ["CPU of floor / http", ratio(cpu("floor"), cpu("http")), "", { atLeast: 0.9 }],
    [
      "http: WAL with warm pages",
      medianOf(measured.get("http"), ({ costs, count }) => costs.walBytes / count),
      "bytes per redemption",
      { atMost: 1_000 },
    ],
    ["http / function", ratio(rate("http"), rate("function")), "", { atLeast: 1.3 }],
    ["http-8 / floor-8", ratio(rate("http-8"), rate("floor-8")), ""],
    ["one connection: p50 of the call / of the floor", ratio(call, p50("floor-1")), "", { atMost: 1.8 }],
    ["one connection: HTTP on top", call === null || http === null ? null : http - call, "ms", { atMost: 0.3 }],
    ["500/s: p50", p50("fixed"), "ms", { atMost: 3 }],
    ["500/s: p99", medianOf(measured.get("fixed"), latency(0.99)), "ms", { atMost: 20 }],
  ];
  return all.flatMap(([name, value, unit, aim]) =>
    value === null ? [] : [{ name, value, unit, ...(aim && { aim }) }],
  );
}
