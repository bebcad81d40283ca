// The metrics port of a program, as Prometheus reads it.
import type { Test } from "tap";
import { createLog } from "../../src/common/log.ts";
import { readBuild } from "../../src/migration/version.ts";
import { startMetrics, type Metrics } from "../../src/server/metrics-server.ts";
import { connect } from "../../src/database/connect.ts";
import { openReconnecting } from "../../src/database/reconnecting.ts";
import { sendPlain } from "./client.ts";
import type { Scenario } from "./scenario.ts";

const log = createLog("silent");

export async function openMetrics(t: Test): Promise<Metrics> {
  const metrics = await startMetrics({ metricsPort: 0, metricsHost: "127.0.0.1" }, log, readBuild());
  t.teardown(() => metrics!.stop());
  return metrics!;
}

/** Values by metric with its labels, such as name{label="…"}. */
export async function scrape({ url }: Pick<Metrics, "url">): Promise<Map<string, number>> {
  const { status, text } = await sendPlain(url, "GET", "/metrics");
  if (status !== 200) throw new Error(text);
  return new Map(
    text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]),
  );
}

/** The connection that a worker reads its metrics with. */
export function openMetricsDatabase(t: Test, address: Scenario["address"], role?: string) {
  const options = { name: "coupon test", max: 1, ...(role !== undefined && { role }) };
  const database = openReconnecting(() => connect(address, options));
  t.teardown(() => database.end());
  return database;
}
