// The folders of the embedded server, and who may enter them.
import { spawnSync, type SpawnSyncOptionsWithStringEncoding } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, mkdirSync, readlinkSync, rmSync } from "node:fs";
import { statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import {
  findHome,
  makeEnterable,
  makeHome,
  makeSocketFolder,
  socketFolder,
} from "../../src/embedded/data-directory.ts";
import { canMount } from "../support/small-disk.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";

const isRoot = process.getuid!() === 0;
const otherId = 65_534;

const makeFolder = (t: Test): string => useTemporaryFolder(t, "coupon-home-");
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

// Without what tap, or a measurement of coverage, gives every program: it writes to folders of this user.
const spawnAlone = (code: string, options: SpawnSyncOptionsWithStringEncoding, before: string[] = []) => {
  const [name, ...words] = [...before, "env", "-i", process.execPath, "--input-type=module", "-e", code];
  return spawnSync(name!, words, options);
};

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
  const { stdout, stderr } = spawnAlone(asNobody, options);
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

// A program for which /var/lib/coupon-service is read-only, as in some containers. Nobody else sees that mount.
const asReadOnly = "mkdir -p /var/lib/coupon-service && mount -t tmpfs -o ro none /var/lib/coupon-service";
// The same where another user has made the folder before.
const asForeign =
  "mkdir -p /var/lib/coupon-service && mount -t tmpfs -o mode=711,uid=65534 none /var/lib/coupon-service";
// The same where only root can enter /var/lib.
const asClosed = "mount -t tmpfs -o mode=700 none /var/lib";
const linkTarget = `/var/tmp/coupon-linked-${process.pid}`;
// The same where root has made a link to a folder elsewhere.
const asLink = `mount -t tmpfs none /var/lib && mkdir ${linkTarget} && ln -s ${linkTarget} /var/lib/coupon-service`;
const inMount = (mount: string) => ["unshare", "-m", "sh", "-c", `${mount} && exec "$@"`, "sh"];
const elsewhere: [parent: string, before: string[]][] = [
  ["/var/lib/coupon-service", []],
  [linkTarget, inMount(asLink)],
  ["/var/tmp/coupon-service", inMount(asReadOnly)],
  ["/var/tmp/coupon-service", inMount(asForeign)],
  ["/var/tmp/coupon-service", inMount(asClosed)],
];
const skip = canMount() ? false : "only root may mount";

t.test("data that its user cannot reach moves to the first folder that the user can enter", { skip }, async (t) => {
  t.teardown(() => rmSync(linkTarget, { recursive: true, force: true }));
  for (const [parent, before] of elsewhere) {
    const closed = makeFolder(t);
    chmodSync(closed, 0o700);
    const dataDir = path.join(closed, "data");
    const code = `
      import { makeEnterable, makeHome } from "./src/embedded/data-directory.ts";
      console.log(makeEnterable(makeHome(${JSON.stringify(dataDir)}), ${JSON.stringify(dataDir)}).folder);`;
    const cwd = path.resolve(import.meta.dirname, "../..");
    const { stdout, stderr } = spawnAlone(code, { cwd, encoding: "utf8" }, before);
    t.equal(stderr, "");
    const folder = stdout.trim();
    t.equal(path.dirname(folder), parent);
    t.teardown(() => rmSync(folder, { recursive: true }));
    t.equal(readlinkSync(path.join(dataDir, "postgres")), folder);
    t.equal(modeOf(parent), 0o711);
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
