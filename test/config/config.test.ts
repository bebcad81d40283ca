// Each setting: its default, the field that it sets, and where its range ends. And URLs of databases: what we read, and
// what we write.
import path from "node:path";
import t from "tap";
import { ConfigError, listMisspelt, readConfig } from "../../src/config/config.ts";
import { type Address, formatUrl, parseUrl } from "../../src/config/database-address.ts";

const defaults = {
  port: 8080,
  host: "127.0.0.1",
  address: null,
  dataDir: path.resolve(".data"),
  masterKeyText: null,
  webhookAllow: [],
  requestRetentionDays: 90,
  deliveryLogRetentionDays: 30,
  feedRetentionDays: 400,
  logLevel: "info",
  limits: {
    bodyBytes: 65_536,
    headerBytes: 16_384,
    headersTimeoutSeconds: 10,
    requestTimeoutSeconds: 30,
    keepAliveTimeoutSeconds: 65,
    connections: 5_000,
    openRequests: 2_000,
    requestsPerSecond: null,
    requestBurst: 1,
    wrongCodesPerMinute: 60,
    exports: 8,
  },
  docs: true,
  metricsPort: null,
  metricsHost: "127.0.0.1",
  console: { port: 8081, host: "127.0.0.1", url: null, tokens: new Map<string, string>(), userHeader: null },
};

const consoleWith = (changed: object) => ({ console: { ...defaults.console, ...changed } });
const [token, otherToken] = ["t".repeat(32), "u".repeat(256)];

// The fields that a text sets.
const texts: Record<string, [text: string, fields: object]> = {
  HOST: [" 10.0.0.1 ", { host: "10.0.0.1" }],
  DATA_DIR: ["some/folder", { dataDir: path.resolve("some/folder") }],
  COUPON_MASTER_KEY: [" key ", { masterKeyText: "key" }],
  WEBHOOK_ALLOW: [
    "10.0.0.0/8, ,fd00::/128\n192.168.0.0/32 ::1/0,::ffff:0:0/96",
    { webhookAllow: ["10.0.0.0/8", "fd00::/128", "192.168.0.0/32", "::1/0", "::ffff:0:0/96"] },
  ],
  LOG_LEVEL: ["fatal", { logLevel: "fatal" }],
  DOCS: ["off", { docs: false }],
  METRICS_HOST: ["::1", { metricsHost: "::1" }],
  CONSOLE_PORT: ["off", consoleWith({ port: null })],
  CONSOLE_HOST: ["::1", consoleWith({ host: "::1" })],
  CONSOLE_URL: ["https://console.example.com/", consoleWith({ url: "https://console.example.com" })],
  CONSOLE_TOKENS: [
    ` anna:${token}, b.ob@example.com:${otherToken}\n`,
    consoleWith({
      tokens: new Map([
        ["anna", token],
        ["b.ob@example.com", otherToken],
      ]),
    }),
  ],
  CONSOLE_USER_HEADER: ["X-Forwarded-User", consoleWith({ userHeader: "X-Forwarded-User" })],
};

const limits = (changed: Record<string, number | null>) => ({ limits: { ...defaults.limits, ...changed } });

type Count = [min: number, max: number, fields: (count: number) => object];

// The range of a number, and the fields that it sets.
const counts: Record<string, Count> = {
  PORT: [0, 65_535, (port) => ({ port })],
  CONSOLE_PORT: [0, 65_535, (port) => consoleWith({ port })],
  METRICS_PORT: [0, 65_535, (metricsPort) => ({ metricsPort })],
  REQUEST_RETENTION_DAYS: [1, 36_500, (requestRetentionDays) => ({ requestRetentionDays })],
  DELIVERY_LOG_RETENTION_DAYS: [1, 36_500, (deliveryLogRetentionDays) => ({ deliveryLogRetentionDays })],
  FEED_RETENTION_DAYS: [1, 36_500, (feedRetentionDays) => ({ feedRetentionDays })],
  KEEP_ALIVE_TIMEOUT_SECONDS: [1, 3_600, (keepAliveTimeoutSeconds) => limits({ keepAliveTimeoutSeconds })],
  MAX_CONNECTIONS: [1, 1_000_000, (connections) => limits({ connections })],
  RATE_LIMIT: [
    0,
    1_000_000,
    // The burst is one second's worth.
    (count) => limits(count === 0 ? {} : { requestsPerSecond: count, requestBurst: count }),
  ],
  WRONG_CODE_LIMIT: [0, 10_000, (count) => limits({ wrongCodesPerMinute: count === 0 ? null : count })],
};

t.test("without settings, every field has its default; an empty or blank value counts as absent", async (t) => {
  t.strictSame(readConfig({}), defaults);
  const names = [...Object.keys(counts), ...Object.keys(texts), "DATABASE_URL", "PGPASSWORD"];
  t.strictSame(readConfig(Object.fromEntries(names.map((name) => [name, ""]))), defaults);
  t.strictSame(readConfig({ HOST: " ", PORT: " \t", LOG_LEVEL: "  ", METRICS_PORT: " " }), defaults);
});

t.test("a text sets its field and no other", async (t) => {
  for (const [name, [text, fields]] of Object.entries(texts))
    t.strictSame(readConfig({ [name]: text }), { ...defaults, ...fields }, name);
  for (const level of ["fatal", "error", "warn", "info", "debug", "trace", "silent"])
    t.equal(readConfig({ LOG_LEVEL: level }).logLevel, level);
  t.equal(readConfig({ DOCS: "on" }).docs, true);
});

t.test("a number sets its field and no other, from the first to the last of its range", async (t) => {
  for (const [name, [min, max, fields]] of Object.entries(counts)) {
    for (const count of [min, min + 1, max - 1, max]) {
      const found = readConfig({ [name]: String(count) });
      t.strictSame(found, { ...defaults, ...fields(count) }, `${name}=${count}`);
    }
    const other = name === "CONSOLE_PORT" ? ", or off" : "";
    for (const text of [String(min - 1), String(max + 1), "12a", "x", "1.5", "1e3", "0x10", "+1", "00000001"])
      t.throws(
        () => readConfig({ [name]: text }),
        new ConfigError(`${name} must be a number from ${min} to ${max}${other}, not "${text}"`),
        `${name}=${text}`,
      );
  }
});

const wrongCidrs = `10.0.0.0 10.0.0.0/ 10.0.0.0/33 ::1/129 10.0.0.0/8/8 10.0.0.0/0008 10.0/8 name/8 fe80::1%eth0/64
  ::ffff:10.0.0.0%1/112 010.0.0.0/8 ::ffff:10.0.0.0/8 ::FFFF:a00:0/95 0:0:0:0:0:ffff:10.0.0.0/95 10.0.0.0/+8
  10.0.0.0/8;192.168.0.0/16 [fd00::]/8 10.0.0.0/x 10.0.0.0/1x`.split(/\s+/);

t.test("settings that make no sense are refused, each with its message", async (t) => {
  const levels = "fatal, error, warn, info, debug, trace, silent";
  const rows: [name: string, text: string, message: string][] = [
    ["LOG_LEVEL", "loud", `must be one of ${levels}, not "loud"`],
    ["DATA_DIR", "a\nb", "must be a path without a line break"],
    ["DATA_DIR", "/a/b\r/c", "must be a path without a line break"],
    ["DOCS", "no", 'must be on or off, not "no"'],
  ];
  for (const wrong of [
    token,
    `anna:${token.slice(1)}`,
    `anna:${otherToken}u`,
    `a:${token},a:${otherToken}`,
    "a:b:c",
    `ann a:${token}`,
  ])
    t.throws(() => readConfig({ CONSOLE_TOKENS: wrong }), {
      message: /^CONSOLE_TOKENS must be name:token pairs(?!.*ttt)/,
    });
  const perCell = readConfig({ CONSOLE_URL: "https://cell-{cell}.example.com/" });
  t.equal(perCell.console.url, "https://cell-{cell}.example.com");
  for (const wrong of ["console.example.com", "ftp://a.example", "https://a.example/x", "https://a.example/?x=1"])
    rows.push(["CONSOLE_URL", wrong, "must be the address of the console, such as https://console.example.com"]);
  rows.push(["CONSOLE_USER_HEADER", "X User", "must be the name of a header, such as X-Forwarded-User"]);
  for (const cidr of wrongCidrs)
    rows.push(["WEBHOOK_ALLOW", `10.0.0.0/8 ${cidr}`, `must list CIDRs such as 10.0.0.0/8, not "${cidr}"`]);
  for (const [name, text, message] of rows)
    t.throws(() => readConfig({ [name]: text }), new ConfigError(`${name} ${message}`), text);
});

t.test("a misspelt setting is named, and no variable of another program is", async (t) => {
  const misspelt: Record<string, string> = {
    RATELIMIT: "RATE_LIMIT",
    rate_limit: "RATE_LIMIT",
    RATE_LIMTI: "RATE_LIMIT",
    COUPON_RATE_LIMIT: "RATE_LIMIT",
    DATABASE_URI: "DATABASE_URL",
    DATABSE_URL: "DATABASE_URL",
    DATADIR: "DATA_DIR",
    CONSOLE_TOKEN: "CONSOLE_TOKENS",
    CONSOLEPORT: "CONSOLE_PORT",
    PG_PASSWORD: "PGPASSWORD",
    MASTER_KEY: "COUPON_MASTER_KEY",
    WEBHOOK_ALLOWED: "WEBHOOK_ALLOW",
    WEBHOOK_SECRETS: "WEBHOOK_SECRET",
    METRIC_PORT: "METRICS_PORT",
    KEEPALIVE_TIMEOUT_SECOND: "KEEP_ALIVE_TIMEOUT_SECONDS",
    LOGLEVEL: "LOG_LEVEL",
    MAX_CONNECTION: "MAX_CONNECTIONS",
    REQUEST_RETENTION_DAY: "REQUEST_RETENTION_DAYS",
  };
  const sentences = Object.entries(misspelt).map(([name, near]) => `${name} is not a setting; did you mean ${near}?`);
  t.strictSame(listMisspelt(Object.fromEntries(Object.keys(misspelt).map((name) => [name, "1"]))), sentences);
  const foreign = `HOSTNAME HOSTS PORTS SPORT POST DOC DOC_S PGHOST PGPORT PGDATA PGDATABASE PGPASSFILE PGSSLMODE PATH
    TEST_DATABASE_URL BENCH_DATABASE_URL HEROKU_POSTGRESQL_URL DATABASE DATABASE_HOST XDG_DATA_DIRS XDG_DATA_HOME
    COUPON_PORT COUPON_SERVICE_HOST COUPON_PORT_8080_TCP METRICS_PORT_9090_TCP METRICS_SERVICE_PORT RATE LIMIT
    NODE_OPTIONS npm_config_loglevel LOG_FILE LOGNAME LOG_DIR DATA_FILE POSTGRES_PASSWORD PASSWORD WEBHOOK_URL
    MAX_MEMORY CONNECTIONS REQUEST_LIMIT SECRET_KEY MASTER KEEP_ALIVE`.split(/\s+/);
  t.strictSame(listMisspelt(Object.fromEntries(foreign.map((name) => [name, "1"]))), []);
  const names = [...Object.keys(counts), ...Object.keys(texts), "DATABASE_URL", "PGPASSWORD", "WEBHOOK_SECRET"];
  t.strictSame(listMisspelt(Object.fromEntries(names.map((name) => [name, "1"]))), []);
  t.strictSame(listMisspelt({ RATELIMIT: " " }), [], "an empty value counts as absent");
});

const tcp = { host: "db.example.com", port: 6432, user: "coupon", password: "pw", database: "coupon" };
const socket = { host: "/run/postgresql", port: 5433, user: "coupon", database: "coupon" };
const usual = { host: "db", port: 5432 };

t.test("a URL names hosts or folders of unix sockets", async (t) => {
  const one = { host: "one", port: 5432 };
  const others = [
    { host: "::1", port: 5433 },
    { host: "two", port: 5432 },
  ];
  const urls: Record<string, Address> = {
    "postgres://coupon:p,w@one,[::1]:5433,two/coupon": {
      ...one,
      others,
      user: "coupon",
      password: "p,w",
      database: "coupon",
    },
    "postgres:///?host=one,::1,two&port=5432,5433,5432": { ...one, others },
    "postgres:///?host=one,two&port=6432": { host: "one", port: 6432, others: [{ host: "two", port: 6432 }] },
    "postgres://one/?target_session_attrs=primary": { ...one, parameters: { target_session_attrs: "primary" } },
    "postgres://one/?target_session_attrs=read-write": { ...one, parameters: { target_session_attrs: "read-write" } },
    "postgres://coupon:pw@db.example.com:6432/coupon": tcp,
    "postgresql://coupon:pw@db.example.com:6432/coupon": tcp,
    "postgres://coupon@/coupon?host=/run/postgresql&port=5433": socket,
    "postgres://coupon@%2Frun%2Fpostgresql:5433/coupon": socket,
    "postgres:///coupon?host=%2Frun": { host: "/run", port: 5432, database: "coupon" },
    "postgres://": { host: "localhost", port: 5432 },
    "postgres://[::1]:6432/coupon": { host: "::1", port: 6432, database: "coupon" },
    "postgres://db:1/coupon": { host: "db", port: 1, database: "coupon" },
    "postgres://db:65535/coupon": { host: "db", port: 65_535, database: "coupon" },
    "postgres://db/coupon?sslmode=verify-full": {
      ...usual,
      database: "coupon",
      parameters: { sslmode: "verify-full" },
    },
    "postgres://db/m%C3%A4rz%20%25-_.!~*'()": { ...usual, database: "märz %-_.!~*'()" },
  };
  for (const [url, address] of Object.entries(urls))
    t.strictSame(readConfig({ DATABASE_URL: url }).address, address, url);
});

t.test("a password may hold any character if it is encoded or in PGPASSWORD, and / # @ : as they are", async (t) => {
  const plain = ["a/b", "a#b", "a@b", "a:b", "a+b=", "/", "#"];
  const urlOf = (password: string) => `postgres://coupon:${password}@db.example.com:6432/coupon`;
  for (const password of plain) t.strictSame(parseUrl(urlOf(password)), { ...tcp, password });
  for (const password of [...plain, "a?b", "a%b", "ü %2F", "'\\$x\"", " ü "]) {
    t.strictSame(parseUrl(urlOf(encodeURIComponent(password))), { ...tcp, password });
    const DATABASE_URL = "postgres://coupon@db.example.com:6432/coupon";
    t.strictSame(readConfig({ DATABASE_URL, PGPASSWORD: password }).address, { ...tcp, password });
  }
  t.equal(readConfig({ DATABASE_URL: formatUrl(tcp), PGPASSWORD: "other" }).address?.password, "pw");
  t.equal(readConfig({ PGPASSWORD: "pw" }).address, null);
});

t.test("other texts are refused, and the message does not repeat them", async (t) => {
  const message = "DATABASE_URL must be a URL such as postgres://user:password@host:5432/database";
  for (const text of [
    "coupon",
    "mysql://secret@db/coupon",
    "postgres:db/coupon",
    "postgres://db:port/coupon",
    "postgres://db:65536/coupon",
    "postgres://db:0/coupon",
    "postgres://coupon:50%@db/coupon",
    "postgres://one,/coupon",
    "postgres://one:1:2,two/coupon",
    "postgres:///coupon?host=one,two,three&port=1,2",
    "postgres:///coupon?host=one&port=1,2",
  ])
    t.throws(() => readConfig({ DATABASE_URL: text }), new ConfigError(message), text);
  const aboutName = "DATABASE_URL: the name of the database must not contain any of ; / ? : @ & = + $ , #";
  for (const character of ";/?:@&=+$,#") {
    const url = `postgres://db/coupon${encodeURIComponent(character)}eu`;
    t.throws(() => readConfig({ DATABASE_URL: url }), new ConfigError(aboutName), character);
  }
});
