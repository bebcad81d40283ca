// What a connection sets, how arrays travel, and which errors mean that the server could not be reached.
import pg from "pg";
import t from "tap";
import {
  connect,
  formatRoleUrl,
  isConnectionError,
  openSession,
  sqlDetail,
  sqlPlace,
  sqlState,
} from "../../src/database/connect.ts";
import type { Database, Options } from "../../src/database/types.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { hostileDefaults, openPlace } from "../support/hostile-defaults.ts";

let test: TestDatabase;
t.before(async () => {
  test = await createDatabase();
});
t.teardown(() => test.drop());

const names = [
  "application_name",
  "TimeZone",
  "default_transaction_isolation",
  "search_path",
  "jit",
  "max_parallel_workers_per_gather",
  "role",
  "statement_timeout",
  "lock_timeout",
  "idle_session_timeout",
];

async function readSettings(options: Options): Promise<Record<string, string>> {
  const database = connect(test.address, { max: 1, ...options });
  const list = names.map((name) => `current_setting('${name}') as "${name}"`).join();
  try {
    const [row] = await database.rows<Record<string, string>>(`select ${list}`);
    return { ...row };
  } finally {
    await database.end();
  }
}

t.test("a connection has its name, its role and its time limits, and plans for short statements", async (t) => {
  const always = {
    TimeZone: "UTC",
    default_transaction_isolation: "read committed",
    search_path: "pg_catalog, pg_temp",
    jit: "off",
    max_parallel_workers_per_gather: "0",
  };
  t.strictSame(await readSettings({ name: "coupon one" }), {
    application_name: "coupon one",
    ...always,
    role: "none",
    statement_timeout: "0",
    lock_timeout: "0",
    idle_session_timeout: "0",
  });
  const limits = { statementTimeoutMs: 1_001, lockTimeoutMs: 1_002, idleTimeoutMs: 1_003 };
  t.strictSame(await readSettings({ name: "coupon two", role: "coupon_owner", ...limits }), {
    application_name: "coupon two",
    ...always,
    role: "coupon_owner",
    statement_timeout: "1001ms",
    lock_timeout: "1002ms",
    idle_session_timeout: "1003ms",
  });
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
  const { address, holders, give } = await openPlace(t);
  const names = Object.keys(hostileDefaults);
  const text = `select ${names.map((name) => `current_setting('${name}', true) as "${name}"`).join()}`;
  async function readBoth(): Promise<Record<string, string>[]> {
    const ours = connect(address, { name: "coupon test", max: 1 });
    const theirs = new pg.Client(formatRoleUrl(address, "coupon_worker"));
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
  for (const holder of holders) {
    await give(holder, hostileDefaults);
    t.strictSame(await readBoth(), [expected, expected], holder);
    await give(holder, {});
  }
});

t.test("what DATABASE_URL sets takes precedence", async (t) => {
  const database = connect(
    { ...test.address, parameters: { synchronous_commit: "remote_apply" } },
    { name: "coupon test", max: 1 },
  );
  t.teardown(() => database.end());
  const rows = await database.rows("select current_setting('synchronous_commit') as value");
  t.strictSame([...rows], [{ value: "remote_apply" }]);
});

t.test(
  "a session never ends because of its age; a connection of a pool is renewed after 30 to 60 minutes",
  async (t) => {
    const timers = t.capture(globalThis, "setTimeout", globalThis.setTimeout);
    // The minutes of the timers that outlast the start of a connection.
    const minutesOf = async (database: Pick<Database, "rows" | "end">) => {
      timers();
      await database.rows("select");
      const minutes = timers().map(({ args }) => Number(args[1]) / 60_000);
      await database.end();
      return minutes.filter((each) => each >= 1);
    };
    t.strictSame(await minutesOf(openSession(test.address, { name: "coupon test age" })), []);
    const ofPool = await minutesOf(connect(test.address, { name: "coupon test age", max: 1 }));
    t.strictSame(
      ofPool.map((minutes) => minutes >= 30 && minutes <= 60),
      [true],
      String(ofPool),
    );
  },
);

t.test("a database opens `max` connections, or ten", async (t) => {
  const nap = "select pg_backend_pid() as pid, pg_sleep(0.2)";
  for (const [max, count] of [
    [3, 3],
    [undefined, 10],
  ] as const) {
    const database = connect(test.address, { name: "coupon test max", ...(max && { max }) });
    t.teardown(() => database.end());
    const rows = await Promise.all(Array.from({ length: 24 }, () => database.rows<{ pid: number }>(nap)));
    t.equal(new Set(rows.map(([row]) => row!.pid)).size, count);
  }
});

t.test("statements are prepared, with parameters and without", async (t) => {
  const database = connect(test.address, { name: "coupon test prepared", max: 1 });
  t.teardown(() => database.end());
  const texts = ["select 1 as one", "select $1::int as one"];
  for (const text of texts)
    t.strictSame([...(await database.rows(text, text.includes("$1") ? [1] : []))], [{ one: 1 }]);
  const prepared =
    "select statement from pg_prepared_statements where statement like '%as one' order by statement desc";
  t.strictSame(
    (await database.rows<{ statement: string }>(prepared)).map(({ statement }) => statement),
    texts,
  );
});

t.test("arrays are sent and received with every value that they hold", async (t) => {
  const database = connect(test.address, { name: "coupon test arrays", max: 1 });
  t.teardown(() => database.end());
  const texts = ["", "a", null, "null", "NULL", 'a"b', "a\\b", "a,b", "{a}", " a ", "ä\n", '\\"', "\\\\"];
  const numbers = [0, 1, -2, null, 2_147_483_647];
  const big = ["9007199254740993", "-1", null, "0"];
  const rows = await database.rows(
    `select $1::text[] as texts, $1::varchar[] as varchars, $2::int4[] as ints, array[1, null, -3]::int2[] as small,
       $3::int8[] as bigs, $3::numeric[] as numerics, array['a b', 'c']::name[] as names, '{}'::text[] as none,
       '{}'::int4[] as zero, array['6f9619ff-8b86-d011-b42d-00cf4fc964ff']::uuid[] as uuids`,
    [texts, numbers, big],
  );
  t.strictSame(
    { ...(rows[0] as object) },
    {
      texts,
      varchars: texts,
      ints: numbers,
      small: [1, null, -3],
      bigs: big,
      numerics: big,
      names: ["a b", "c"],
      none: [],
      zero: [],
      uuids: ["6f9619ff-8b86-d011-b42d-00cf4fc964ff"],
    },
  );
});

t.test("an error of the server has its state, its detail and its place; any other has none", async (t) => {
  const session = openSession(test.address, { name: "coupon test errors" });
  t.teardown(() => session.end());
  const fail = (text: string) =>
    session.run(text).then(
      () => null,
      (error: unknown) => error,
    );
  const syntax = await fail("select 1;\nselect 2 frm x;\n");
  t.strictSame([sqlState(syntax), sqlPlace(syntax)], ["42601", { position: 24 }]);
  // PL/pgSQL names the line in the body, and no position, if it has read the whole statement.
  const body =
    "create function pg_temp.f() returns int language plpgsql as $$\nbegin\n\n  raise exception '%';\nend $$";
  const compiled = await fail(body);
  t.strictSame([sqlState(compiled), sqlPlace(compiled)], ["42601", { bodyLine: 4 }]);
  const raised = await fail("do $$\nbegin\n  raise exception 'no' using detail = 'because';\nend $$");
  t.strictSame([sqlState(raised), sqlDetail(raised), sqlPlace(raised)], ["P0001", "because", {}]);
  const division = await fail("select 1 / 0");
  t.strictSame([sqlState(division), sqlDetail(division), sqlPlace(division)], ["22012", null, {}]);
  for (const other of [new Error("other"), null, { code: "42601" }])
    t.strictSame([sqlState(other), sqlDetail(other), sqlPlace(other)], [null, null, {}]);
});

t.test("errors of the network and a server that goes away are connection errors, errors of statements are not", (t) => {
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
  t.end();
});
