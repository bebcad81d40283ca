// docs/monitoring and docs/deploy: the alerts, their cases and the dashboard use metrics that exist; promtool accepts
// them; units and manifests name commands and settings that exist, and the manifests fit the schemas of Kubernetes.
import { spawnSync } from "node:child_process";
import { globSync, writeFileSync } from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import { parse, parseAllDocuments } from "yaml";
import type { Command } from "../../src/command-line/command.ts";
import { createLog } from "../../src/common/log.ts";
import { readConfig } from "../../src/config/config.ts";
import { consoleSettings, programSettings, serveSettings, workSettings } from "../../src/config/settings.ts";
import { loadCoupon } from "../../src/coupon.ts";
import { work } from "../../src/work.ts";
import { alerts } from "../support/alerts.ts";
import { sendPlain } from "../support/client.ts";
import { root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";
import { findErrors } from "../support/kubernetes.ts";
import { scenario } from "../support/scenario.ts";
import { openMetrics } from "../support/scrape.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";
import { read } from "./markdown.ts";

const folder = "docs/monitoring";
type Rule = { alert: string; expr: string };
type Case = { alert_rule_test: { alertname: string; exp_alerts?: object[] }[] };
const rules = (parse(read(`${folder}/prometheus-rules.yml`)) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);
const dashboard = JSON.parse(read(`${folder}/dashboard.json`));
const queries: string[] = dashboard.panels.flatMap((panel: any) => (panel.targets ?? []).map(({ expr }: any) => expr));

const promtool = (args: string[], input = "") =>
  spawnSync("promtool", args, { cwd: root, input, encoding: "utf8", timeout: 120_000 });
const skip = promtool(["--version"]).error !== undefined && "promtool is not installed (Debian: prometheus)";

/** The text of a scrape of serve, and of one of work. */
async function scrapeBoth(t: Test): Promise<[serve: string, work: string]> {
  const [ofServe, ofWork] = [await openMetrics(t), await openMetrics(t)];
  const { address, keys, url } = await scenario(t, { http: true, metrics: ofServe });
  const worker = await work({ address, keys, config: readConfig({}), log: createLog("silent"), metrics: ofWork });
  t.teardown(() => worker.stop());
  await sendPlain(url, "GET", "/readyz");
  const scrape = async (origin: string) => (await sendPlain(origin, "GET", "/metrics")).text;
  return [await scrape(ofServe.url), await scrape(ofWork.url)];
}

t.test("docs/operate.md and the rules have the same alerts with the same expressions", (t) => {
  t.strictSame(
    rules.map(({ alert, expr }) => `${alert}: ${expr}`),
    alerts.map(({ name, expression }) => `${name}: ${expression}`),
  );
  t.ok(rules.length > 10);
  t.end();
});

t.test("each alert has a case in which it fires, and one in which it does not", (t) => {
  const { tests } = parse(read(`${folder}/alerts.test.yml`)) as { tests: Case[] };
  const cases = tests.flatMap((one) => one.alert_rule_test);
  const namesOf = (some: typeof cases) => [...new Set(some.map(({ alertname }) => alertname))].sort();
  const names = rules.map(({ alert }) => alert).sort();
  t.strictSame(namesOf(cases.filter(({ exp_alerts }) => exp_alerts !== undefined)), names);
  t.strictSame(namesOf(tests[0]!.alert_rule_test), names, "the first case is a healthy service");
  t.notOk(tests[0]!.alert_rule_test.some(({ exp_alerts }) => exp_alerts !== undefined));
  t.end();
});

t.test("rules and dashboard use only metrics of a live scrape, and only counters end in _total", async (t) => {
  const texts = await scrapeBoth(t);
  const types = new Map(
    texts.flatMap((text) => [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => [name!, type!])),
  );
  const isThere = (name: string) =>
    types.has(name) || types.get(name.replace(/_(bucket|sum|count)$/, "")) === "histogram";
  // Prometheus makes `up` itself.
  const namesOf = (expression: string) =>
    [...expression.replace(/\{[^}]*\}|by \([^)]*\)/g, "").matchAll(/\b(?!up\b)[a-z]+_\w+/g)].map(([name]) => name);
  const used = new Set([...rules.map(({ expr }) => expr), ...queries].flatMap(namesOf));
  t.ok(used.size > 30);
  for (const name of used) if (name !== "histogram_quantile") t.ok(isThere(name), name);
  const ours = [...types.keys()].filter((name) => name.startsWith("coupon_"));
  const shown = new Set(queries.flatMap(namesOf).map((name) => name.replace(/_(bucket|sum|count)$/, "")));
  t.strictSame(
    ours.filter((name) => !shown.has(name)),
    [],
    "the dashboard shows every metric",
  );
  for (const [name, type] of types) t.equal(name.endsWith("_total"), type === "counter", name);
});

t.test("the dashboard imports anywhere: each panel and variable takes its data source from the first variable", (t) => {
  const [first, job] = dashboard.templating.list;
  t.strictSame([first.name, first.type, first.query], ["datasource", "datasource", "prometheus"]);
  const source = { type: "prometheus", uid: "${datasource}" };
  const panels = dashboard.panels.filter(({ type }: { type: string }) => type !== "row");
  for (const { title, datasource } of [...panels, job]) t.strictSame(datasource, source, title);
  t.ok(queries.every((query) => query.includes('job="$job"')));
  const ids = dashboard.panels.map(({ id }: { id: number }) => id);
  t.equal(new Set(ids).size, ids.length);
  t.end();
});

t.test(
  "promtool accepts the rules, their cases, the queries of the dashboard, and a scrape of serve and work",
  { skip },
  async (t) => {
    const check = (args: string[], input = "") => {
      const { status, stdout, stderr } = promtool(args, input);
      t.equal(status, 0, `${args.join(" ")}\n${stdout}${stderr}`);
      return stdout + stderr;
    };
    check(["check", "rules", `${folder}/prometheus-rules.yml`]);
    check(["test", "rules", `${folder}/alerts.test.yml`]);
    const copies = useTemporaryFolder(t, "coupon-queries-");
    const filled = queries.map((query) => query.replaceAll("$job", "coupon").replaceAll("$__rate_interval", "5m"));
    const recorded = filled.map((expr, index) => ({ record: `query_${index}`, expr }));
    writeFileSync(path.join(copies, "queries.yml"), JSON.stringify({ groups: [{ name: "queries", rules: recorded }] }));
    check(["check", "rules", path.join(copies, "queries.yml")]);
    for (const text of await scrapeBoth(t)) t.equal(check(["check", "metrics"], text), "");
  },
);

const units = globSync("docs/deploy/*.service", { cwd: root }).sort();
const settings = new Set<string>([...programSettings, ...serveSettings, ...workSettings, ...consoleSettings]);
const commands = Object.keys(JSON.parse(read("package.json")).scripts);
const hasAnalyze = spawnSync("systemd-analyze", ["--version"]).error === undefined;

t.test("the units start commands and name settings that exist, and systemd accepts them", (t) => {
  const started = units.map((unit) => /\/opt\/coupon\/bin\/coupon (\w+)/.exec(read(unit))?.[1]);
  t.strictSame(started, ["console", "serve", "work"]);
  for (const command of started) t.ok(commands.includes(command!), `${command}`);
  const named = units.flatMap((unit) => [...read(unit).matchAll(/\b([A-Z][A-Z_]+)=/g)].map(([, name]) => name!));
  for (const name of [...named, "CONSOLE_PORT", "CONSOLE_TOKENS"]) t.ok(settings.has(name), name);
  if (!hasAnalyze) return void t.end();
  const copies = useTemporaryFolder(t, "coupon-units-");
  const files = units.map((unit) => path.join(copies, path.basename(unit).replace("@", "@8081")));
  for (const [index, file] of files.entries()) writeFileSync(file, read(units[index]!).replaceAll("/opt/coupon", root));
  const { stdout, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", ...files], { encoding: "utf8" });
  t.equal(stdout + stderr, "");
  t.end();
});

const kubernetes = "docs/deploy/kubernetes";
const { resources } = parse(read(`${kubernetes}/kustomization.yaml`)) as { resources: string[] };
const manifests: any[] = resources.flatMap((name) =>
  parseAllDocuments(read(`${kubernetes}/${name}`)).map((each) => each.toJS()),
);
const programs = manifests.filter(({ kind }) => kind === "Deployment" || kind === "Job");
const containerOf = (program: any) => program.spec.template.spec.containers[0];

t.test("the manifests fit the schemas of Kubernetes, which refuse a wrong or unknown field", (t) => {
  const files = globSync(`${kubernetes}/*.yaml`, { cwd: root }).map((name) => path.basename(name));
  t.strictSame(files.sort(), [...resources, "kustomization.yaml"].sort());
  for (const manifest of manifests)
    t.strictSame(findErrors(manifest), [], `${manifest.kind} ${manifest.metadata.name}`);
  const change = (changed: object) => findErrors({ ...programs[1], spec: { ...programs[1].spec, ...changed } });
  t.match(change({ replicas: "2" }).join(), /replicas must be integer/);
  t.strictSame(change({ replica: 2 }), ["/spec/replica is unknown"]);
  t.end();
});

t.test("each manifest of a program runs a command that exists, with settings that it reads", async (t) => {
  const named = programs.map((program) => program.metadata.labels["app.kubernetes.io/component"]);
  t.strictSame(named, ["migrate", "serve", "work", "console"]);
  const { commands = [] } = await loadCoupon(named);
  for (const [index, program] of programs.entries()) {
    const { name, command, env = [], envFrom } = containerOf(program);
    t.strictSame([name, command], [named[index], ["bin/coupon", name]]);
    const { settings: known = [] } = commands[index] as Command;
    for (const { name: setting } of env) t.ok((known as string[]).includes(setting), `${name} reads ${setting}`);
    const secrets = envFrom.map(({ secretRef }: any) => secretRef.name);
    const key = (known as string[]).includes("COUPON_MASTER_KEY") ? ["coupon-key"] : [];
    t.strictSame(secrets, [...key, `coupon-${name}`]);
    for (const secret of secrets) t.match(read(`${kubernetes}/README.md`), `secret ${secret} <<end\n`);
  }
  t.notOk(manifests.some(({ kind }) => kind === "Secret"));
});

t.test("the pods may do little, and services, budgets and probes find them", (t) => {
  for (const program of programs) {
    const { spec, metadata } = program.spec.template;
    const { name, ports = [], securityContext, livenessProbe, readinessProbe } = containerOf(program);
    const strict = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } };
    t.strictSame(securityContext, strict, name);
    fits(t, spec.securityContext, { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
    t.equal(spec.automountServiceAccountToken, false);
    if (program.kind === "Deployment") t.strictSame(program.spec.selector.matchLabels, metadata.labels);
    const probes = [livenessProbe, readinessProbe].filter((probe) => probe !== undefined);
    for (const { httpGet } of probes)
      t.ok(
        ports.some((port: any) => port.name === httpGet.port),
        httpGet.path,
      );
    t.equal(probes.length, { migrate: 0, work: 1 }[name as string] ?? 2, name);
  }
  const labels = programs.map((program) => JSON.stringify(program.spec.template.metadata.labels));
  for (const { kind, spec } of manifests) {
    const selector = { Service: spec.selector, PodDisruptionBudget: spec.selector?.matchLabels }[kind as string];
    if (selector !== undefined) t.ok(labels.includes(JSON.stringify(selector)), kind);
  }
  t.end();
});
