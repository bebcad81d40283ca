// What a connection sets, how it reaches the server and whether it trusts it, how arrays travel, and which errors mean
// that the server could not be reached. Two drivers connect: ours, and that of graphile-worker.
import { connect as connectSocket, createServer, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import pg from "pg";
import t, { type Test } from "tap";
import { ConfigError, readConfig } from "../../src/config/config.ts";
import { type Address, formatUrl, isSocketFolder, parseUrl } from "../../src/config/database-address.ts";
import {
  connect,
  formatRoleUrl,
  isConnectionError,
  openSession,
  sqlDetail,
  sqlPlace,
  sqlState,
} from "../../src/database/connect.ts";
import { readTls } from "../../src/database/tls.ts";
import type { Database, Options } from "../../src/database/types.ts";
import { makeCertificate, type Certificate } from "../support/certificate.ts";
import { createDatabase } from "../support/database.ts";
import { fits } from "../support/fits.ts";
import { hostileDefaults, openPlace } from "../support/hostile-defaults.ts";
import { listenOnLoopback } from "../support/listen.ts";

const { address, drop } = await createDatabase();
t.teardown(drop);

function open(t: Test, options: Partial<Options> = {}, to: Address = address): Database {
  const database = connect(to, { name: "coupon test", max: 1, ...options });
  t.teardown(() => database.end());
  return database;
}

t.test("a connection has its name, its role and its time limits, and plans for short statements", async (t) => {
  const readSettings = async (expected: Record<string, string>, options: Options) => {
    const list = Object.keys(expected).map((name) => `current_setting('${name}') as "${name}"`);
    const [row] = await open(t, options).rows<Record<string, string>>(`select ${list.join()}`);
    t.strictSame({ ...row }, expected);
  };
  const always = {
    TimeZone: "UTC",
    default_transaction_isolation: "read committed",
    search_path: "pg_catalog, pg_temp",
    jit: "off",
    max_parallel_workers_per_gather: "0",
  };
  const noLimits = { statement_timeout: "0", lock_timeout: "0", idle_session_timeout: "0" };
  const usual = { ...always, application_name: "coupon one", role: "none", ...noLimits };
  await readSettings(usual, { name: "coupon one" });
  const given = { statement_timeout: "1001ms", lock_timeout: "1002ms", idle_session_timeout: "1003ms" };
  const limits = { statementTimeoutMs: 1_001, lockTimeoutMs: 1_002, idleTimeoutMs: 1_003 };
  const options = { name: "coupon two", role: "coupon_owner", ...limits };
  await readSettings({ ...always, application_name: "coupon two", role: "coupon_owner", ...given }, options);

  const parameters = { synchronous_commit: "remote_apply" };
  const rows = await open(t, {}, { ...address, parameters }).rows(
    "select current_setting('synchronous_commit') as value",
  );
  t.strictSame([...rows], [{ value: "remote_apply" }], "what DATABASE_URL sets takes precedence");
});

// Nothing that we send or read depends on these.
const left = [
  "timezone_abbreviations",
  "xmlbinary",
  "xmloption",
  "backslash_quote",
  "transform_null_equals",
  "row_security",
  "plpgsql.extra_warnings",
  "plpgsql.check_asserts",
  "plpgsql.variable_conflict",
  "plan_cache_mode",
  "constraint_exclusion",
  "stats_fetch_consistency",
  "default_text_search_config",
  "check_function_bodies",
  "default_transaction_deferrable",
];

t.test("both drivers set what the programs depend on, whatever the database and the login have set", async (t) => {
  const place = await openPlace(t);
  const names = Object.keys(hostileDefaults);
  const text = `select ${names.map((name) => `current_setting('${name}', true) as "${name}"`).join()}`;
  async function readBoth(): Promise<Record<string, string>[]> {
    const ours = connect(place.address, { name: "coupon test", max: 1 });
    const theirs = new pg.Client(formatRoleUrl(place.address, "coupon_worker"));
    try {
      await theirs.connect();
      return [{ ...(await ours.rows<Record<string, string>>(text))[0] }, { ...(await theirs.query(text)).rows[0] }];
    } finally {
      await Promise.all([ours.end(), theirs.end()]);
    }
  }
  const [plain] = await readBoth();
  const expected = Object.fromEntries(
    names.map((name) => [name, (left.includes(name) ? hostileDefaults : plain!)[name]]),
  );
  const theirs = { ...expected, synchronous_commit: "local" };
  for (const holder of place.holders) {
    await place.give(holder, hostileDefaults);
    t.strictSame(await readBoth(), [expected, theirs], holder);
    await place.give(holder, {});
  }
});

t.test("both drivers read the URLs that we write", async (t) => {
  const tcp = { host: "db.example.com", port: 6432, user: "coupon", password: "pw", database: "coupon" };
  const socket = { host: "/run/postgresql", port: 5433, user: "coupon", database: "coupon" };
  t.strictSame(parseUrl(formatUrl({ host: "db", port: 5432 })), { host: "db", port: 5432 });
  for (const host of ["one", "::1", "/run/postgresql"]) {
    const several = { ...tcp, host, others: [{ host: "two", port: 5433 }] };
    t.strictSame(parseUrl(formatUrl(several)), several, "which several hosts in one URL are for us alone");
  }
  for (const there of [
    tcp,
    socket,
    { ...tcp, host: "::1" },
    { ...tcp, user: "a/b@c:d", password: "p/q#r?s@t:u%v w+ü" },
    { ...socket, password: "/#?" },
    { ...tcp, parameters: { application_name: "a b&c=d" } },
  ] as Address[]) {
    t.strictSame(parseUrl(formatUrl(there)), there);
    const theirs = new pg.Client(formatRoleUrl(there, "coupon_worker")) as unknown as {
      connectionParameters: Record<string, unknown>;
    };
    const { parameters: _, ...expected } = there;
    const options = /^-c DateStyle=ISO,\\ MDY .* -c role=coupon_worker$/;
    fits(t, theirs.connectionParameters, { ...expected, application_name: "coupon_worker", options });
  }
});

// Speaks TLS in front of the server: answers the request for TLS with S, and carries what comes then. Refuses clients
// that do not ask.
async function startTlsProxy(t: Test, { key, cert }: Certificate): Promise<number> {
  const { host, port } = address;
  const far = () => (isSocketFolder(host) ? connectSocket(`${host}/.s.PGSQL.${port}`) : connectSocket(port, host));
  const server = createServer((near: Socket) => {
    near.on("error", () => {});
    near.once("data", (request) => {
      if (request.length !== 8 || request.readInt32BE(4) !== 80_877_103) return void near.destroy();
      near.write("S");
      const secure = new TLSSocket(near, { isServer: true, key, cert });
      const behind = far();
      for (const socket of [secure, behind]) socket.on("error", () => [near, behind].forEach((one) => one.destroy()));
      secure.pipe(behind).pipe(secure);
    });
  });
  t.teardown(() => server.close());
  return listenOnLoopback(server);
}

async function askOurs(there: Address): Promise<unknown> {
  const session = openSession(there, { name: "coupon test" });
  const rows = session.rows<{ answer: number }>("select 42 as answer");
  return (await rows.finally(() => session.end()))[0]!.answer;
}

async function askTheirs(there: Address): Promise<unknown> {
  const client = new pg.Client({ connectionString: formatRoleUrl(there, "coupon_worker"), ssl: readTls(there) });
  client.on("error", () => {});
  try {
    await client.connect();
    return (await client.query("select 42 as answer")).rows[0].answer;
  } finally {
    await client.end();
  }
}

t.test("both drivers encrypt and verify as sslmode says", async (t) => {
  const folder = t.testdir({});
  const named = makeCertificate(`${folder}/named`, "DNS:localhost");
  const numbered = makeCertificate(`${folder}/numbered`, "IP:127.0.0.1");
  const isMade = named !== null && numbered !== null;
  if (!isMade) return void t.pass("not tried", { skip: "no openssl to make a certificate" });
  const ports = { named: await startTlsProxy(t, named), numbered: await startTlsProxy(t, numbered) };
  const cases: [host: string, port: number, parameters: Record<string, string>, works: boolean][] = [
    ["localhost", ports.named, { sslmode: "require" }, true],
    ["localhost", ports.named, { sslmode: "verify-ca" }, false],
    ["localhost", ports.named, { sslmode: "verify-full" }, false],
    ["localhost", ports.named, { sslmode: "verify-full", sslrootcert: named.file }, true],
    ["127.0.0.1", ports.named, { sslmode: "verify-full", sslrootcert: named.file }, false],
    ["127.0.0.1", ports.named, { sslmode: "verify-ca", sslrootcert: named.file }, true],
    ["localhost", ports.named, { sslmode: "verify-ca", sslrootcert: numbered.file }, false],
    ["127.0.0.1", ports.numbered, { sslmode: "verify-full", sslrootcert: numbered.file }, true],
  ];
  for (const [host, port, parameters, works] of cases) {
    const url = formatUrl({ ...address, host, port, parameters });
    const there = readConfig({ DATABASE_URL: url }).address!;
    for (const ask of [askOurs, askTheirs]) {
      const title = `${ask.name}: ${host} ${JSON.stringify(parameters)}`;
      t.equal(await ask(there).catch(() => "refused"), works ? 42 : "refused", title);
    }
  }
});

t.test("parameters for TLS that a driver would read otherwise are refused", async (t) => {
  const folder = t.testdir({ "ca.pem": "-----BEGIN CERTIFICATE-----", "empty.pem": "" });
  const file = `${folder}/ca.pem`;
  const modes = "sslmode must be one of disable, require, verify-ca, verify-full";
  const rootcert = "sslrootcert needs sslmode=verify-ca or sslmode=verify-full";
  const noCertificate = "the file sslrootcert cannot be read or has no certificate";
  const unsupported = (name: string) => `${name} is not supported; for TLS, use sslmode and sslrootcert`;
  const rows: [parameters: string, message: string][] = [
    ["sslmode=prefer", modes],
    ["sslmode=", modes],
    ["ssl=true", unsupported("ssl")],
    ["sslmode=require&sslcert=/c.pem", unsupported("sslcert")],
    ["sslmode=require&sslnegotiation=direct", unsupported("sslnegotiation")],
    ["channel_binding=require", unsupported("channel_binding")],
    [`sslrootcert=${file}`, rootcert],
    [`sslmode=require&sslrootcert=${file}`, rootcert],
    [`sslmode=verify-full&sslrootcert=${file}.none`, noCertificate],
    [`sslmode=verify-ca&sslrootcert=${folder}/empty.pem`, noCertificate],
  ];
  for (const [parameters, message] of rows) {
    const DATABASE_URL = `postgres://coupon:secret@db/coupon?${parameters}`;
    t.throws(() => readConfig({ DATABASE_URL }), new ConfigError(`DATABASE_URL: ${message}`), parameters);
  }
  for (const target of ["any", "standby", "read-only", "prefer-standby", "constructor", ""]) {
    const message = "DATABASE_URL: target_session_attrs must be read-write or primary";
    const DATABASE_URL = `postgres://one,two/coupon?target_session_attrs=${target}`;
    t.throws(() => readConfig({ DATABASE_URL }), new ConfigError(message), target);
  }
  const verified = parseUrl(`postgres://db/coupon?sslmode=verify-ca&sslrootcert=${file}`)!;
  t.equal(readTls({ ...verified, host: "/run/postgresql" }), false, "a socket has no TLS");
  for (const text of ["postgres://db/coupon", "postgres://db/coupon?sslmode=disable"])
    t.equal(readTls(parseUrl(text)!), false, text);
});

t.test("a session never ends because of its age; a connection of a pool lives 30 to 60 minutes", async (t) => {
  const timers = t.capture(globalThis, "setTimeout", globalThis.setTimeout);
  // The minutes of the timers that outlast the start of a connection.
  const minutesOf = async (database: Pick<Database, "rows" | "end">) => {
    timers();
    await database.rows("select");
    const minutes = timers().map(({ args }) => Number(args[1]) / 60_000);
    await database.end();
    return minutes.filter((each) => each >= 1);
  };
  t.strictSame(await minutesOf(openSession(address, { name: "coupon test age" })), []);
  const ofPool = await minutesOf(connect(address, { name: "coupon test age", max: 1 }));
  t.ok(ofPool.length === 1 && ofPool[0]! >= 30 && ofPool[0]! <= 60, String(ofPool));
});

t.test("statements are prepared, with parameters and without", async (t) => {
  const database = open(t);
  const texts = ["select 1 as one", "select $1::int as one"];
  for (const text of texts)
    t.strictSame([...(await database.rows(text, text.includes("$1") ? [1] : []))], [{ one: 1 }]);
  const prepared = "select statement from pg_prepared_statements where statement like '%as one' order by 1 desc";
  const rows = await database.rows<{ statement: string }>(prepared);
  t.strictSame(
    rows.map(({ statement }) => statement),
    texts,
  );
});

t.test("arrays are sent and received with every value that they hold", async (t) => {
  const texts = ["", "a", null, "null", "NULL", 'a"b', "a\\b", "a,b", "{a}", " a ", "ä\n", '\\"', "\\\\"];
  const ints = [0, 1, -2, null, 2_147_483_647];
  const bigs = ["9007199254740993", "-1", null, "0"];
  const uuids = ["6f9619ff-8b86-d011-b42d-00cf4fc964ff"];
  const [row] = await open(t).rows(
    `select $1::text[] as texts, $1::varchar[] as varchars, $2::int4[] as ints, array[1, null, -3]::int2[] as small,
       $3::int8[] as bigs, $3::numeric[] as numerics, array['a b', 'c']::name[] as names, '{}'::text[] as none,
       '{}'::int4[] as zero, array['${uuids[0]}']::uuid[] as uuids`,
    [texts, ints, bigs],
  );
  const same = { texts, varchars: texts, ints, bigs, numerics: bigs, uuids };
  fits(t, row, { ...same, small: [1, null, -3], names: ["a b", "c"], none: [], zero: [] });
});

t.test("an error of the server has its state, its detail and its place; any other has none", async (t) => {
  const session = openSession(address, { name: "coupon test errors" });
  t.teardown(() => session.end());
  const body =
    "create function pg_temp.f() returns int language plpgsql as $$\nbegin\n\n  raise exception '%';\nend $$";
  const rows: [text: string, state: string, detail: string | null, place: object][] = [
    ["select 1;\nselect 2 frm x;\n", "42601", null, { position: 24 }],
    // PL/pgSQL names the line in the body, and no position, if it has read the whole statement.
    [body, "42601", null, { bodyLine: 4 }],
    ["do $$\nbegin\n  raise exception 'no' using detail = 'because';\nend $$", "P0001", "because", {}],
    ["select 1 / 0", "22012", null, {}],
  ];
  for (const [text, ...expected] of rows) {
    const error = await session.run(text).catch((reason: unknown) => reason);
    t.strictSame([sqlState(error), sqlDetail(error), sqlPlace(error)], expected, text);
  }
  for (const other of [new Error("other"), null, { code: "42601" }])
    t.strictSame([sqlState(other), sqlDetail(other), sqlPlace(other)], [null, null, {}]);
});

t.test("an error of the network or of a server that goes away is a connection error, others are not", async (t) => {
  const coded = (code: unknown) => Object.assign(new Error("failed"), { code });
  const lost = ["CONNECT_TIMEOUT", "CONNECTION_CLOSED", "CONNECTION_ENDED", "CONNECTION_DESTROYED"];
  const refused = ["ECONNREFUSED", "ECONNRESET", "EPIPE", "ENOENT", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"];
  const server = ["08000", "08006", "08P01", "57P01", "57P02", "57P03", "53300"];
  for (const code of [...lost, ...refused, "ENOTFOUND", "EAI_AGAIN", ...server])
    t.ok(isConnectionError(coded(code)), code);
  const others = ["57014", "57P04", "53200", "22012", "08", "080000", "x08006", "x57P01", "53300x", "EACCES", "EPIPEX"];
  for (const code of [...others, "XECONNRESET", "XCONNECT_TIMEOUT", "CONNECT_TIMEOUTS", 57, undefined])
    t.notOk(isConnectionError(coded(code)), String(code));
  for (const other of [null, undefined, "ECONNRESET", new Error("failed")]) t.notOk(isConnectionError(other));
  const both = new AggregateError([coded("22012"), coded("ECONNREFUSED")]);
  t.ok(isConnectionError(both), "one of several addresses refused");
  t.notOk(isConnectionError(new AggregateError([coded("22012"), coded("EACCES")])));
  t.notOk(isConnectionError(Object.assign(both, { code: "22012" })), "its own code decides");
});
