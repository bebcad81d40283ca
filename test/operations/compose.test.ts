// docker-compose.yml, as text: what it promises about passwords, secrets, logs and ports. docker.test.ts runs it.
import { readFileSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { parse } from "yaml";
import { root } from "../support/copy.ts";
import { fits } from "../support/fits.ts";

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

t.test("what tool prints reaches only its caller", async (t) => {
  fits(t, tool, { profiles: ["tool"], attach: false, logging: { driver: "none" }, restart: "no" });
  t.notOk("options" in tool!["logging"]);
});

t.test("only the programs that use the master key have it", async (t) => {
  const holders = listNames(({ environment }) => "COUPON_MASTER_KEY" in environment);
  t.strictSame(holders, ["serve", "work", "tool"]);
});

t.test("every other log has a limit, and no container gains privileges", async (t) => {
  for (const [name, { logging, security_opt }] of Object.entries(services)) {
    t.strictSame(security_opt, ["no-new-privileges:true"], name);
    if (name === "tool") continue;
    t.strictSame(logging, { driver: "local", options: { "max-size": "20m", "max-file": "5" } }, name);
  }
  for (const [name, { cap_drop, read_only }] of Object.entries(programs)) {
    t.strictSame({ cap_drop, read_only }, { cap_drop: ["ALL"], read_only: true }, name);
  }
});

t.test("the image is built once: one service builds it, and the others only use it", async (t) => {
  const users = listNames(({ image }) => image === "coupon-service");
  t.strictSame(users, Object.keys(programs));
  t.strictSame(
    listNames(({ build }) => build !== undefined),
    ["migrate"],
  );
  t.strictSame(
    users.map((name) => services[name]!["pull_policy"]),
    ["missing", "never", "never", "never"],
  );
});

t.test("each program that keeps running has a health check", async (t) => {
  const lasting = listNames(({ restart }) => restart === "unless-stopped");
  t.strictSame(lasting, ["database", "serve", "work"]);
  for (const name of lasting) fits(t, services[name], { healthcheck: { test: { 0: "CMD" }, retries: Number } }, name);
});

t.test("the database has the settings of docs/operate.md, and its log holds no values", async (t) => {
  const settings = [...String(database!["command"]).matchAll(/-c (\S+)=(\S+)/g)].map(([, name, value]) => [
    name,
    value,
  ]);
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

t.test("only the API is published, and only on this machine unless the operator asks", async (t) => {
  t.strictSame(
    listNames(({ ports }) => ports !== undefined),
    ["serve"],
  );
  t.strictSame(serve!["ports"], ["${PUBLISH_ADDRESS:-127.0.0.1}:${PORT:-8080}:8080"]);
});
