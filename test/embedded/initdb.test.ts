// The data directory appears whole or not at all, whatever an earlier or another start left. Scripts stand in for
// initdb and postgres, because only the folders matter here.
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import { makeCluster } from "../../src/embedded/initdb.ts";

// $2 and $3 are the folder of the new data directory.
const makesFolder = 'mkdir "$2" && echo 18 > "$2/PG_VERSION"';
const readsInput = 'cat > "$3/input"; pwd > "$3/place"; echo "$LC_ALL $PATH ${PGPORT-none}" > "$3/environment"';

function makePlace(t: Test, scripts: { initdb?: string; postgres?: string } = {}) {
  const { initdb = makesFolder, postgres = readsInput } = scripts;
  const folder = t.testdir({
    home: {},
    bin: { initdb: `#!/bin/sh\n${initdb}\n`, postgres: `#!/bin/sh\n${postgres}\n` },
  });
  for (const name of ["initdb", "postgres"]) chmodSync(path.join(folder, "bin", name), 0o755);
  const home = { folder: path.join(folder, "home"), user: undefined };
  return { home, data: path.join(home.folder, "data"), make: () => makeCluster(home, folder) };
}

t.test("the first start makes the data directory and the database, in an environment of its own", async (t) => {
  const { home, data, make } = makePlace(t);
  process.env["PGPORT"] = "1";
  t.teardown(() => delete process.env["PGPORT"]);
  await make();
  t.strictSame(readdirSync(home.folder), ["data"]);
  const read = (name: string) => readFileSync(path.join(data, name), "utf8");
  t.strictSame(
    [read("PG_VERSION"), read("input"), read("place")],
    ["18\n", "create database coupon", `${home.folder}\n`],
  );
  t.equal(read("environment"), "C /usr/local/bin:/usr/bin:/bin none\n");
});

t.test("what starts that ended left is removed; a start that still runs keeps its folder", async (t) => {
  const { home, make } = makePlace(t);
  const ended = spawnSync("true").pid;
  for (const name of [
    `new-${process.pid}`,
    `new-${ended}`,
    `new-${process.ppid}`,
    `old-new-${ended}`,
    `${ended}`,
    "new",
  ])
    mkdirSync(path.join(home.folder, name, "base"), { recursive: true });
  writeFileSync(path.join(home.folder, "new-x"), "");
  await make();
  t.strictSame(
    readdirSync(home.folder).sort(),
    ["data", `new-${process.ppid}`, `old-new-${ended}`, `${ended}`, "new"].sort(),
  );
});

t.test("a data directory of this version stays as it is; one of another version is refused", async (t) => {
  const { home, data, make } = makePlace(t, { initdb: "exit 1" });
  mkdirSync(data);
  mkdirSync(path.join(home.folder, "new-0"));
  writeFileSync(path.join(data, "PG_VERSION"), "18\n");
  await make();
  t.strictSame(readdirSync(home.folder).sort(), ["data", "new-0"]);
  writeFileSync(path.join(data, "PG_VERSION"), "17\n");
  await t.rejects(make(), {
    name: "EmbeddedError",
    message: `${data} is from PostgreSQL 17; this program runs 18: dump and restore it`,
  });
});

t.test("a failure says which program failed and what it wrote, and leaves no data directory", async (t) => {
  const fails = "echo not this; echo ' no space' >&2; echo 'left ' >&2; exit 1";
  for (const [scripts, message] of [
    [{ initdb: fails }, "initdb failed: no space\nleft"],
    [{ postgres: fails }, "postgres failed: no space\nleft"],
    [{ initdb: "exit 3" }, "initdb failed: "],
    [{ initdb: "kill -9 $$" }, "initdb failed: "],
  ] as const) {
    const { data, make } = makePlace(t, scripts);
    const error = await make().catch((reason: unknown) => reason);
    t.strictSame([(error as Error).name, (error as Error).message], ["EmbeddedError", message]);
    t.notOk(existsSync(data));
  }
  const { home } = makePlace(t);
  await t.rejects(makeCluster(home, path.join(home.folder, "nothing")), { code: "ENOENT" });
});

t.test("of two first starts at once, the faster one makes the data directory and both use it", async (t) => {
  const beFaster = (file: string) => `mkdir "$3/../data"; echo other > "$3/../data/${file}"`;
  const { home, data, make } = makePlace(t, { postgres: beFaster("PG_VERSION") });
  await make();
  t.strictSame(readdirSync(home.folder), ["data"], "the own one is removed");
  t.equal(readFileSync(path.join(data, "PG_VERSION"), "utf8"), "other\n");

  const odd = makePlace(t, { postgres: beFaster("something") });
  await t.rejects(odd.make(), { code: "ENOTEMPTY" });
  t.strictSame(readdirSync(odd.home.folder), ["data"]);
});
