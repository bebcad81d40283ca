// docker-compose.yml: what its text promises about passwords, secrets, logs and ports, and, where Docker runs, that a
// deployment does what docs/docker.md shows.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import { parse } from "yaml";
import { createClient, postOk, sendPlain } from "../support/client.ts";
import { change, copyCheckout, root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";
import { findFreePort } from "../support/listen.ts";
import { readResult, type Result } from "../support/program.ts";
import { merchant, party, template } from "../support/tenants.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

type Service = Record<string, any>;
const text = readFileSync(path.join(root, "docker-compose.yml"), "utf8");
const { services } = parse(text, { merge: true }) as { services: Record<string, Service> };
const { database, migrate, logins, serve, work, tool } = services as Record<string, Service>;
const programs = { migrate, serve, work, tool } as Record<string, Service>;

const listNames = (holds: (service: Service) => boolean): string[] =>
  Object.keys(services).filter((name) => holds(services[name]!));

t.test("a password may hold any character: it is a variable of its own and never part of a URL", async (t) => {
  const urls = Object.entries(programs).map(([name, { environment }]) => [name, environment.DATABASE_URL]);
  t.strictSame(Object.fromEntries(urls), {
    migrate: "postgres://postgres@127.0.0.1:5432/coupon",
    serve: "postgres://serve@database:5432/coupon",
    work: "postgres://work@database:5432/coupon",
    tool: "postgres://tool@127.0.0.1:5432/coupon",
  });
  t.match(serve!["environment"].PGPASSWORD, /^\$\{SERVE_PASSWORD:\?/);
  t.match(work!["environment"].PGPASSWORD, /^\$\{WORK_PASSWORD:\?/);
});

t.test("the image gets all that the Dockerfile copies, and of docs only the guides", async (t) => {
  const read = (name: string) => readFileSync(path.join(root, name), "utf8");
  const copied = [...read("Dockerfile").matchAll(/^COPY (.+) \S+$/gm)].flatMap(([, sources = ""]) =>
    sources.split(" "),
  );
  const allowed = read(".dockerignore").trim().split("\n");
  t.strictSame(allowed.shift(), "*");
  t.strictSame(copied.map((source) => `!${source}`).sort(), allowed.sort());
  t.ok(copied.includes("docs/*.md"));
});

t.test("a changed POSTGRES_PASSWORD does not stop migrate: it needs none, and logins sets it", async (t) => {
  const withoutPassword = listNames(({ network_mode }) => network_mode === "service:database");
  t.strictSame(withoutPassword, ["migrate", "logins", "tool"]);
  for (const name of withoutPassword) t.notOk("PGPASSWORD" in services[name]!["environment"], name);
  t.match(database!["environment"].POSTGRES_INITDB_ARGS, /--auth-local=trust --auth-host=trust/);
  for (const login of ["postgres", "serve", "work"]) {
    const variable = `${login.toUpperCase()}_PASSWORD`;
    t.match(logins!["environment"][variable], new RegExp(`^\\$\\{${variable}:\\?`));
    t.match(logins!["command"][0], new RegExp(`\\\\getenv ${login} ${variable}\n`));
    t.match(logins!["command"][0], new RegExp(`alter role ${login} password :'${login}';`));
  }
});

t.test("what tool prints reaches only its caller; every other log has a limit", async (t) => {
  fits(t, tool, { profiles: ["tool"], attach: false, logging: { driver: "none" }, restart: "no" });
  t.notOk("options" in tool!["logging"]);
  for (const [name, { logging }] of Object.entries(services))
    if (name !== "tool")
      t.strictSame(logging, { driver: "local", options: { "max-size": "20m", "max-file": "5" } }, name);
});

t.test("containers gain no privileges, and only the programs that use the master key have it", async (t) => {
  for (const [name, { security_opt }] of Object.entries(services))
    t.strictSame(security_opt, ["no-new-privileges:true"], name);
  for (const [name, { cap_drop, read_only }] of Object.entries(programs))
    t.strictSame({ cap_drop, read_only }, { cap_drop: ["ALL"], read_only: true }, name);
  const holders = listNames(({ environment }) => "COUPON_MASTER_KEY" in environment);
  t.strictSame(holders, ["serve", "work", "tool"]);
});

t.test("each program that keeps running has a health check, and only the API is published", async (t) => {
  const lasting = listNames(({ restart }) => restart === "unless-stopped");
  t.strictSame(lasting, ["database", "serve", "work"]);
  for (const name of lasting) fits(t, services[name], { healthcheck: { test: { 0: "CMD" }, retries: Number } }, name);
  t.strictSame(
    listNames(({ ports }) => ports !== undefined),
    ["serve"],
  );
  // On this machine only, unless the operator asks.
  t.strictSame(serve!["ports"], ["${PUBLISH_ADDRESS:-127.0.0.1}:${PORT:-8080}:8080"]);
});

t.test("the database has the settings of docs/operate.md, and its log holds no values", async (t) => {
  const settings = [...String(database!["command"]).matchAll(/-c (\S+)=(\S+)/g)].map(([, ...pair]) => pair);
  t.strictSame(Object.fromEntries(settings), {
    shared_buffers: "${SHARED_BUFFERS:-1GB}",
    max_wal_size: "4GB",
    checkpoint_timeout: "30min",
    random_page_cost: "1.1",
    restart_after_crash: "off",
    max_connections: "200",
    log_min_error_statement: "panic",
    log_parameter_max_length: "0",
    log_parameter_max_length_on_error: "0",
  });
});

// The rest runs on a real engine: a project of its own, made from a copy of the checkout.

/** Returns why the tests cannot run here, or false. */
function findMissing(...images: string[]): string | false {
  const docker = (...args: string[]) => spawnSync("docker", args, { encoding: "utf8", timeout: 120_000 }).status === 0;
  if (!docker("info")) return "no Docker engine runs";
  if (!docker("compose", "version")) return "needs Docker Compose";
  const missing = images.filter((image) => !docker("image", "inspect", image) && !docker("pull", image));
  return missing.length > 0 && `cannot get the image ${missing.join(", ")}`;
}

const blockMs = 300_000;
type Deployment = Awaited<ReturnType<typeof openDeployment>>;

/** Without a signal that Compose could answer by stopping the containers. */
const killGroup = ({ pid }: ChildProcess) => process.kill(-pid!, "SIGKILL");

/** Nothing is started. When the test ends, everything of the deployment is removed. */
async function openDeployment(t: Test) {
  const folder = copyCheckout();
  const image = path.basename(folder).toLowerCase();
  // An image of the developer keeps its name.
  change(folder, [{ file: "docker-compose.yml", find: "  image: coupon-service\n", replace: `  image: ${image}\n` }]);
  const port = await findFreePort();
  // Nothing else of the shell, because .env must do.
  const kept = ["PATH", "HOME", "DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CONTEXT"];
  const env = { ...Object.fromEntries(kept.map((name) => [name, process.env[name]])), PORT: String(port) };
  // A process group, so that kill reaches docker and its plugin.
  const start = (script: string): ChildProcess =>
    spawn("bash", ["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script], {
      cwd: folder,
      env,
      detached: true,
    });
  const run = async (script: string, input = ""): Promise<Result> => {
    const bash = start(script);
    const timer = setTimeout(() => killGroup(bash), blockMs);
    bash.stdin!.on("error", () => {}).end(input);
    // Longer than the timer that kills it.
    return waitFor(`the end of ${script}`, readResult(bash), { withinMs: 2 * blockMs }).finally(() =>
      clearTimeout(timer),
    );
  };
  const runOk = async (script: string, input = ""): Promise<string> => {
    const { code, stdout, stderr } = await run(script, input);
    if (code !== 0) throw new Error(`${script}\nended with ${code}: ${stdout}${stderr}`);
    return stdout;
  };
  t.teardown(async () => {
    await run(`docker compose --profile tool down --volumes --timeout 5; docker image rm --force ${image}`);
    rmSync(folder, { recursive: true, force: true });
  });

  /** The containers, such as "serve running healthy" or "migrate exited 0", with their ids. */
  async function list(): Promise<{ id: string; service: string; state: string }[]> {
    const format = "{{.ID}} {{.Service}} {{.State}} {{.Health}} {{.ExitCode}}";
    const lines = (await runOk(`docker compose ps --all --format '${format}'`)).trim().split("\n");
    return lines.map((line) => {
      const [id = "", service = "", state, health, code] = line.split(" ");
      return { id, service, state: `${service} ${state === "exited" ? `exited ${code}` : `${state} ${health}`}` };
    });
  }

  const url = `http://127.0.0.1:${port}`;
  return {
    folder,
    url,
    start,
    run,
    runOk,
    list,
    listServe: async () => (await list()).filter(({ service }) => service === "serve").map(({ id }) => id),
    /** The status of the service, 0 if nothing answers. */
    ask: async () => (await sendPlain(url, "GET", "/readyz").catch(() => ({ status: 0 }))).status,
  };
}

/** The blocks of a section of docs/docker.md. */
function section(title: string, language = "bash"): string[] {
  const document = readFileSync(path.join(root, "docs/docker.md"), "utf8");
  const found = document.split(/^## /m).find((part) => part.startsWith(`${title}\n`))!;
  const blocks = [...found.matchAll(/^```(\w+)\n([^]*?)^```$/gm)];
  return blocks.filter(([, name]) => name === language).map(([, , body = ""]) => body);
}

const compose = (args: string): string => `docker compose ${args}`;
const psql = (sql: string): string => compose(`exec -T database psql -U tool coupon -Atc "${sql}"`);
const nextVersion = "// The next version.\n";

t.test(
  "a deployment starts, shows no secret and no code, takes any password, and is upgraded and restored",
  { skip: findMissing("postgres:18", "node:24-slim"), timeout: 900_000 },
  async (t) => {
    const deployment = await openDeployment(t);
    await checkStart(t, deployment);
    await checkSecrecy(t, deployment);
    await checkPasswords(t, deployment);
    await checkUpgrade(t, deployment);
    await checkRestore(t, deployment);
  },
);

async function checkStart(t: Test, { run, runOk, list, ask }: Deployment): Promise<void> {
  await runOk(section("Start")[0]!);
  await waitUntil("the service", async () => (await ask()) === 200);
  const states = [
    "database running healthy",
    "logins exited 0",
    "migrate exited 0",
    "serve running healthy",
    "work running healthy",
  ];
  const areHealthy = async () => String((await list()).map(({ state }) => state).sort()) === String(states);
  await waitUntil("all containers", areHealthy, { everyMs: 500 });
  const { stdout: logs } = await run(compose("logs --no-color"));
  t.match(logs, /serve-1 .*"msg":"serving"/);
  const errors = logs.split("\n").filter((line) => /\b(ERROR|FATAL|PANIC|WARNING|warning)\b|"level":[456]0/.test(line));
  t.strictSame(errors, [], "a healthy start logs no error and no warning");
  const settings =
    "select current_setting(name) from unnest(array['shared_buffers', 'max_wal_size', 'checkpoint_timeout']) name";
  t.equal(await runOk(psql(settings)), "1GB\n4GB\n30min\n");
}

async function checkSecrecy(t: Test, { url, start, runOk }: Deployment): Promise<void> {
  const foreground = start(compose("up"));
  let output = "";
  for (const stream of [foreground.stdout!, foreground.stderr!]) stream.on("data", (chunk) => (output += chunk));
  await waitUntil("up to follow the logs", () => /^Attaching to .*serve-1/m.test(output));

  const tenant = {
    id: "ten_acme",
    name: "Acme",
    variant: "A",
    parties: [party("pty_maker")],
    merchants: [merchant("mch_1", "pty_maker")],
    templates: [template("tpl_1", "pty_maker")],
    credentials: [{ access_key: "ak_acme" }],
  };
  const applied = JSON.parse(await runOk(compose("run --rm -T tool apply -"), JSON.stringify({ tenants: [tenant] })));
  const { access_key: accessKey, secret } = applied.generated_secrets.credentials[0];
  const client = createClient({ url, accessKey, secret });
  const { batch } = await postOk(client, "/v1/batches", { request_id: "b1", template: "tpl_1", total_count: 3 });
  const readStatus = async () => (await client.get(`/v1/batches/${batch.external_id}`)).json.batch.status;
  await waitUntil("the batch to be minted", async () => (await readStatus()) === "COMPLETED");
  await postOk(client, "/v1/batches/allocate", { request_id: "r1", batch: batch.external_id });
  const csv = await runOk(compose(`run --rm -T tool codes ${batch.external_id}`));
  const codes = [...csv.matchAll(/,(\w{16})$/gm)].map(([, code = ""]) => code);
  t.equal(codes.length, 3);
  await postOk(client, "/v1/coupons/redeem", { request_id: "r2", coupon: codes[0], merchant: "mch_1" });

  await waitUntil("the last call in the output of up", () => output.includes('"request_id":"r2"'));
  killGroup(foreground);
  const logs = await runOk(compose("--profile tool logs --no-color"));
  for (const text of [secret, ...codes])
    t.notOk(
      output.includes(text) || logs.includes(text),
      "neither the output of up nor a log holds a secret or a code",
    );
  t.equal(await runOk(compose("run --rm -T tool webhooks status")), "none\n");
}

async function checkPasswords(t: Test, { folder, run, runOk, ask }: Deployment): Promise<void> {
  const special = "/#?%41@:$x\"'\\ ";
  for (const name of ["POSTGRES_PASSWORD", "SERVE_PASSWORD", "WORK_PASSWORD"])
    appendFileSync(path.join(folder, ".env"), `${name}='${`${name[0]}${special}`.replaceAll("'", "\\'")}'\n`);
  fits(t, await run(section("Upgrade")[0]!), { code: 0 }, "migrate needs no password");
  await waitUntil("the service with its new password", async () => (await ask()) === 200);
  const quoted = `P${special}`.replaceAll("'", "'\\''");
  const asPostgres = `exec -T -e 'PGPASSWORD=${quoted}' database psql -h database -U postgres -Atc 'select 1' coupon`;
  t.equal(await runOk(compose(asPostgres)), "1\n", "logins has set it");
}

async function checkUpgrade(t: Test, { folder, run, runOk, listServe, ask }: Deployment): Promise<void> {
  const before = await listServe();
  const file = path.join(folder, "db/code/api/lock.sql");
  const code = readFileSync(file, "utf8");
  writeFileSync(file, `${code}select 1 / 0;\n`);
  appendFileSync(path.join(folder, "src/serve.ts"), nextVersion);
  const failed = await run(section("Upgrade")[0]!);
  t.equal(failed.code, 1);
  t.match(failed.stdout + failed.stderr, /lock\.sql.*division by zero/);
  t.strictSame([await listServe(), await ask()], [before, 200], "the old program keeps running");

  writeFileSync(file, `${code}-- The next version.\n`);
  await runOk(section("Upgrade")[0]!);
  await waitUntil("the new program", async () => (await ask()) === 200);
  const after = await listServe();
  t.equal(after.length, 1);
  t.not(after[0], before[0]);
}

async function checkRestore(t: Test, { runOk, ask }: Deployment): Promise<void> {
  const apply = (id: string): Promise<string> =>
    runOk(compose("run --rm -T tool apply -"), JSON.stringify({ tenants: [{ id, name: id, variant: "A" }] }));
  const list = (): Promise<string> => runOk(psql("select target from report.audit order by audit_id"));
  await apply("ten_saved");
  const saved = await list();
  await runOk(section("Back up")[0]!);
  await apply("ten_lost");
  t.equal(await list(), `${saved}ten_lost\n`);
  const [restore, check, start] = section("Restore");
  await runOk(restore!);
  t.equal(await list(), saved);
  t.match(await runOk(check!), /\(0 rows\)/);
  await runOk(start!);
  await waitUntil("the restored service", async () => (await ask()) === 200);
}

t.test(
  "two serve behind one port: an upgrade leaves no gap",
  { skip: findMissing("postgres:18", "node:24-slim", "haproxy:3.2"), timeout: 900_000 },
  async (t) => {
    const { folder, runOk, listServe, ask } = await openDeployment(t);
    const title = "Several serve behind one port";
    writeFileSync(path.join(folder, "docker-compose.override.yml"), section(title, "yaml")[0]!);
    await runOk(section("Start")[0]!);
    await waitUntil("the proxy", async () => (await ask()) === 200);
    const before = await listServe();
    t.equal(before.length, 2);

    appendFileSync(path.join(folder, "src/serve.ts"), nextVersion);
    const statuses: number[] = [];
    let isOver = false;
    const askAgain = async () => {
      statuses.push(await ask());
      return isOver;
    };
    const asking = waitUntil("the end of the upgrade", askAgain, { everyMs: 10, withinMs: 2 * blockMs });
    await runOk(section(title)[0]!);
    isOver = true;
    await asking;
    t.strictSame([...new Set(statuses)], [200]);
    t.ok(statuses.length > 100);
    const after = await listServe();
    t.equal(after.length, 2);
    t.notOk(before.some((id) => after.includes(id)));
  },
);
