// A real Prometheus with the rules of docs/monitoring, where the Debian package `prometheus` is installed.
import { spawn, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Test } from "tap";
import { root } from "./copy.ts";
import { findFreePort } from "./listen.ts";
import { endOf } from "./program.ts";
import { useTemporaryFolder } from "./temporary-folder.ts";
import { waitUntil } from "./wait-until.ts";

export const lacksPrometheus =
  spawnSync("prometheus", ["--version"]).error !== undefined && "prometheus is not installed (Debian: prometheus)";

/** Scrapes these URLs and evaluates the rules each second. Alerts fire at once: `for` is left out. */
export async function startPrometheus(t: Test, urls: string[]) {
  const folder = useTemporaryFolder(t, "coupon-prometheus-");
  const rules = readFileSync(path.join(root, "docs/monitoring/prometheus-rules.yml"), "utf8");
  writeFileSync(path.join(folder, "rules.yml"), rules.replaceAll(/^ +for: .*\n/gm, ""));
  const config = {
    global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
    rule_files: ["rules.yml"],
    scrape_configs: [{ job_name: "coupon", static_configs: [{ targets: urls.map((url) => new URL(url).host) }] }],
  };
  // JSON is YAML.
  writeFileSync(path.join(folder, "prometheus.yml"), JSON.stringify(config));
  const address = `127.0.0.1:${await findFreePort()}`;
  const args = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", `--web.listen-address=${address}`];
  const program = spawn("prometheus", [...args, "--log.level=error"], { cwd: folder, stdio: "ignore" });
  t.teardown(async () => {
    program.kill("SIGKILL");
    await endOf(program);
  });
  const get = async (target: string): Promise<any> => {
    const { data } = (await (await fetch(`http://${address}${target}`)).json()) as { data: unknown };
    return data;
  };
  const count = async (query: string): Promise<number> =>
    Number((await get(`/api/v1/query?query=${encodeURIComponent(query)}`)).result[0]?.value[1] ?? 0);
  await waitUntil("the first scrapes", () =>
    count('sum(up{job="coupon"})').then(
      (up) => up === urls.length,
      () => false,
    ),
  );
  return {
    /** The names of the alerts that fire now. */
    async listFiring(): Promise<string[]> {
      const { alerts } = await get("/api/v1/alerts");
      return [...new Set<string>(alerts.map(({ labels }: any) => labels.alertname as string))];
    },
  };
}
