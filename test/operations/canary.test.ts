// A code never appears in an answer, a log line, a metric, an error, a crash report, a table, an index, a WAL record or
// a dump. Canary codes are redeemed, refused, mistyped and exported, and then searched for everywhere.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import { formatUrl } from "../../src/common/database-address.ts";
import { makeCode } from "../../src/crypto/coupon-code.ts";
import { fits } from "../support/fits.ts";
import { findToolFolders } from "../support/postgres-tools.ts";
import { marker, releaseCanaries, type Canaries } from "./release-canaries.ts";

let canaries: Canaries;

t.before(async () => {
  canaries = await releaseCanaries();
});

const onlyMarker = (t: Test, found: string[], where: string) =>
  t.strictSame(found, [marker], `${where}: the marker and no code`);

t.test("the search finds every form of a code, also across the chunks of a file", (t) => {
  const { codes, search, service } = canaries;
  const [code] = codes as [string];
  const groups = code.replace(/(.{4})(?=.)/g, "$1-");
  const spellings = [
    code,
    code.toLowerCase(),
    groups,
    groups.toLowerCase(),
    Buffer.from(code).toString("hex"),
    `\\x${Buffer.from(code).toString("hex").toUpperCase()}`,
  ];
  for (const before of ["", "a", "ab", "abc"])
    spellings.push(
      Buffer.from(`${before}${code}zz`).toString("base64"),
      Buffer.from(`${before}${code}`).toString("base64url"),
    );
  for (const spelling of spellings)
    t.strictSame(search.inBytes(Buffer.from(`x${spelling}y`)), [code], spelling.replace(code, "…"));
  t.strictSame(search.inBytes(Buffer.from(makeCode(service.keys, "1", service.keys.versions.get("1")!.master, 1))), []);
  const file = path.join(t.testdir({ file: "-".repeat((1 << 22) - 7) + code }), "file");
  t.strictSame(search.inFile(file), [code]);
  t.end();
});

t.test("no answer contains a code", (t) => {
  const { answers, search } = canaries;
  t.ok(answers.length > 20);
  for (const { text, headers } of answers)
    t.strictSame(search.inBytes(Buffer.from(text + JSON.stringify(headers))), []);
  t.end();
});

t.test("no log of the programs contains a code, even at the most verbose level, and no metric does", (t) => {
  const { output, search } = canaries;
  for (const [name, bytes] of output) t.strictSame(search.inBytes(bytes()), [], name);
  const counted = [...output]
    .filter(([name]) => name.startsWith("metrics"))
    .map(([, bytes]) => bytes().toString())
    .join("");
  t.match(
    counted,
    /coupon_http_requests_total\{operation="redeem",status="500",code="INTERNAL_ERROR"\} 1/,
    "there are metrics",
  );
  t.match(counted, /coupon_feed_lag_seconds/);
  const lines = output.get("serve")!().toString();
  t.match(lines, /"status":503/);
  t.match(lines, /redemption.*does not exist/, "the log says what failed");
  t.end();
});

t.test("a program that dies of an error with values in it logs one line without a code, and exits with 1", (t) => {
  const { codes, search, service } = canaries;
  const env = { PATH: process.env["PATH"], DATABASE_URL: formatUrl(service.address) };
  for (const how of ["exception", "rejection"]) {
    const { status, stdout, stderr } = spawnSync(process.execPath, ["test/support/crash.ts", how, codes[0]!], {
      env,
    });
    t.equal(status, 1, how);
    t.strictSame(search.inBytes(Buffer.concat([stdout, stderr])), [], how);
    fits(t, JSON.parse(stderr.toString()), {
      level: 60,
      err: { code: "23505", message: /duplicate key/, stack: /PostgresError/ },
      msg: new RegExp(how),
    });
  }
  t.end();
});

t.test("no table contains a code as text", async (t) => {
  const { login, search } = canaries;
  // Without the temporary table of crash.ts, which may be going away.
  const tables = await login.rows<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'm') and c.relpersistence <> 't'
       and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`,
  );
  t.ok(tables.some(({ name }) => name.startsWith("graphile_worker.")));
  const found = new Set<string>();
  for (const { name } of [...tables, { name: "pg_stat_activity" }]) {
    const [row] = await login.rows<{ text: string | null }>(
      `select string_agg(t::text, E'\\n') as text from ${name} t`,
    );
    for (const code of search.inBytes(Buffer.from(row!.text ?? ""))) found.add(code);
  }
  onlyMarker(t, [...found], `${tables.length} tables`);
});

t.test("no dump contains a code", async (t) => {
  const { login, search, service } = canaries;
  const [{ version } = { version: 0 }] = await login.rows<{ version: number }>(
    "select current_setting('server_version_num')::int / 10000 as version",
  );
  const versionOf = (program: string) =>
    Number(/ (\d+)/.exec(spawnSync(program, ["--version"], { encoding: "utf8" }).stdout ?? "")?.[1]);
  const programs = findToolFolders("pg_dump").map((folder) => path.join(folder, "pg_dump"));
  const program = programs.find((one) => versionOf(one) >= version);
  if (program === undefined) return void t.pass("no dump", { skip: `no pg_dump of version ${version} or newer here` });
  const { status, stdout, stderr } = spawnSync(program, ["--dbname", formatUrl(service.address)], {
    maxBuffer: 1 << 28,
  });
  t.equal(status, 0, String(stderr));
  onlyMarker(t, search.inBytes(stdout), `${stdout.length} bytes`);
});

// The data folder of the server, if it is on this machine and readable.
async function findFolder(): Promise<{ folder: string } | { reason: string }> {
  const [server] = await canaries.login.rows<{ folder: string | null; identifier: string }>(
    `select current_setting('data_directory', true) as folder,
            (select system_identifier::text from pg_control_system()) as identifier`,
  );
  const folder = server!.folder ?? "";
  try {
    const identifier = readFileSync(path.join(folder, "global/pg_control")).readBigUInt64LE(0).toString();
    return identifier === server!.identifier ? { folder } : { reason: "that folder holds the data of another server" };
  } catch (error) {
    return { reason: `the data folder is not readable here: ${(error as NodeJS.ErrnoException).code}` };
  }
}

// Omits the files of other databases, whose folders may vanish meanwhile, and WAL files from before the start.
function listFiles(folder: string, database: string, within = ""): string[] {
  return readdirSync(path.join(folder, within), { withFileTypes: true }).flatMap((entry) => {
    const name = path.join(within, entry.name);
    if (within === "base" && entry.name !== database) return [];
    if (within === "pg_wal" && /^[0-9A-F]{24}$/.test(entry.name) && entry.name < canaries.firstWalFile) return [];
    return entry.isDirectory() ? listFiles(folder, database, name) : entry.isFile() ? [name] : [];
  });
}

t.test("no file of the server contains a code: tables, indexes, WAL", async (t) => {
  const { codes: all, login, search } = canaries;
  const found = await findFolder();
  if ("reason" in found) return void t.pass("not searched", { skip: found.reason });
  await login.rows("checkpoint");
  const [{ oid } = { oid: "" }] = await login.rows<{ oid: string }>(
    "select oid::text from pg_database where datname = current_database()",
  );
  const byArea = new Map<string, Set<string>>();
  for (const name of listFiles(found.folder, oid)) {
    const area = name.split(path.sep)[0]!;
    const codes = byArea.get(area) ?? new Set();
    byArea.set(area, codes);
    // A file may be removed during the search.
    if (existsSync(path.join(found.folder, name)))
      for (const code of search.inFile(path.join(found.folder, name))) codes.add(code);
  }
  onlyMarker(t, [...byArea.get("base")!], "tables and indexes");
  onlyMarker(t, [...byArea.get("pg_wal")!], "WAL");
  for (const [area, codes] of byArea)
    t.notOk(
      all.some((code) => codes.has(code)),
      area,
    );
});

t.test("no line of the server's log contains a code", async (t) => {
  const { login, search } = canaries;
  const found = await findFolder();
  if ("reason" in found) return void t.pass("not searched", { skip: found.reason });
  await login.rows(`do $$ begin raise log '${marker}'; end $$`);
  const [{ file } = { file: null }] = await login.rows<{ file: string | null }>("select pg_current_logfile() as file");
  const logs =
    file !== null
      ? [path.resolve(found.folder, file)]
      : readdirSync(path.dirname(found.folder))
          .filter((name) => name.endsWith(".log"))
          .map((name) => path.join(path.dirname(found.folder), name));
  const codes = new Set(logs.flatMap((log) => search.inFile(log)));
  if (codes.size === 0) return void t.pass("not searched", { skip: "the server's log was not found" });
  onlyMarker(t, [...codes], logs.join(", "));
});
