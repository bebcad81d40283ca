// Where a program gets its master keys, and that no key is made beside a database.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import { fingerprintKeys } from "../../src/crypto/key-fingerprint.ts";
import { loadMasterKeys, loadOrMakeMasterKeys } from "../../src/embedded/load-keys.ts";

const newFolder = (t: Test) => path.join(mkdtempSync(path.join(t.testdir(), "data-")), "new");
const modeOf = (file: string) => statSync(file).mode & 0o777;
const listOpenFiles = () => (existsSync("/proc/self/fd") ? readdirSync("/proc/self/fd") : []);
const configOf = (dataDir: string) => ({ masterKeyText: null, address: null, dataDir });

t.test("the first start makes a key once, readable by its owner only", async (t) => {
  const config = configOf(newFolder(t));
  const openFiles = listOpenFiles();
  const made = loadOrMakeMasterKeys(config);
  t.strictSame(listOpenFiles(), openFiles, "no file stays open");
  const file = path.join(config.dataDir, "master.key");
  t.equal(modeOf(file), 0o600);
  // Under root, the user of the database server must pass through.
  t.equal(modeOf(config.dataDir), process.getuid!() === 0 ? 0o711 : 0o700);
  t.strictSame(readdirSync(config.dataDir), ["master.key"]);
  const text = readFileSync(file, "utf8");
  for (const load of [loadOrMakeMasterKeys, loadMasterKeys])
    t.equal(fingerprintKeys(load(config)), fingerprintKeys(made));
  t.equal(readFileSync(file, "utf8"), text);
  t.strictSame(readdirSync(config.dataDir), ["master.key"]);
});

t.test("a folder that exists keeps its mode, and the key in it is private", async (t) => {
  const config = configOf(newFolder(t));
  mkdirSync(config.dataDir);
  chmodSync(config.dataDir, 0o755);
  loadOrMakeMasterKeys(config);
  t.strictSame([modeOf(config.dataDir), modeOf(path.join(config.dataDir, "master.key"))], [0o755, 0o600]);
});

t.test("with COUPON_MASTER_KEY no key is made", async (t) => {
  const config = { ...configOf(newFolder(t)), masterKeyText: Buffer.alloc(32, 7).toString("base64") };
  loadOrMakeMasterKeys(config);
  t.notOk(existsSync(config.dataDir));
});

t.test("a command makes no key", async (t) => {
  const config = configOf(newFolder(t));
  t.throws(() => loadMasterKeys(config), { name: "ConfigError", message: /master\.key is missing/ });
  t.notOk(existsSync(config.dataDir));
});

t.test("no key is made beside a database: the message says what to restore", async (t) => {
  const config = configOf(newFolder(t));
  const data = path.join(config.dataDir, "postgres/data");
  mkdirSync(data, { recursive: true });
  writeFileSync(path.join(data, "PG_VERSION"), "18\n");
  const file = path.join(config.dataDir, "master.key");
  t.throws(() => loadOrMakeMasterKeys(config), {
    name: "ConfigError",
    message:
      `${file} is missing, and the database in ${config.dataDir} needs its key: ` +
      "restore the file from your backup, or set COUPON_MASTER_KEY to that key",
  });
  t.notOk(existsSync(file));
});

t.test("the message about a damaged key file names the file and does not show it", async (t) => {
  const config = configOf(newFolder(t));
  mkdirSync(config.dataDir);
  const file = path.join(config.dataDir, "master.key");
  writeFileSync(file, "damaged");
  t.throws(() => loadMasterKeys(config), { name: "ConfigError", message: new RegExp(`^${file}: each key is`) });
});

t.test("with DATABASE_URL the key must be set", async (t) => {
  for (const load of [loadMasterKeys, loadOrMakeMasterKeys])
    t.throws(
      () => load({ masterKeyText: null, address: { host: "x", port: 5432 }, dataDir: "/nowhere" }),
      /COUPON_MASTER_KEY is required/,
    );
});
