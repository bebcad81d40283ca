// The embedded server ends with the program that started it, however that one ends, and keeps its data.
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, lstatSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import t, { type Test } from "tap";
import { connect } from "../../src/database/connect.ts";
import type { Address } from "../../src/common/database-address.ts";
import { findAddress } from "../../src/embedded/find-address.ts";
import { findPostmaster, inspectProcess } from "../../src/embedded/postmaster.ts";
import { waitAtMost } from "../support/wait-until.ts";

const program = path.resolve(import.meta.dirname, "../support/embedded.ts");
const isRoot = process.getuid?.() === 0;

interface Holder {
  child: ChildProcess;
  address: Address;
  folder: string;
  postmaster: number;
}

/** Rejects with what the program said when it ends instead of starting. */
async function hold(dataDir: string): Promise<Holder> {
  const child = spawn("node", [program, dataDir], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stderr.on("data", (chunk) => {
    output += chunk;
  });
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout.once("data", (chunk) => resolve(String(chunk)));
    child.once("close", () => reject(new Error(output)));
  });
  const { address, folder } = JSON.parse(line) as { address: Address; folder: string };
  return { child, address, folder, postmaster: findPostmaster(path.join(folder, "data"))!.pid };
}

async function end({ child }: Holder, signal: NodeJS.Signals): Promise<number | null> {
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  child.kill(signal);
  return ended;
}

async function ask(address: Address, text: string): Promise<unknown[]> {
  const database = connect(address, { name: "coupon test", max: 1 });
  try {
    return [...(await database.rows(text))];
  } finally {
    await database.end();
  }
}

t.test("one DATA_DIR through a hard life", async (t) => {
  const dataDir = mkdtempSync(path.join(tmpdir(), "coupon-embedded-"));
  chmodSync(dataDir, 0o711);
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }));
  const keepsData = async (t: Test, address: Address): Promise<void> => {
    t.strictSame(await ask(address, "select value from public.kept"), [{ value: 1 }], "the data are there");
  };
  let holder = await hold(dataDir);
  await ask(holder.address, "create table public.kept as select 1 as value");

  await t.test("a command beside it finds its database; another start is refused", async (t) => {
    t.strictSame(findAddress({ address: null, dataDir }), holder.address);
    await t.rejects(hold(dataDir), { message: /is in use/ });
    await keepsData(t, holder.address);
  });

  await t.test("SIGTERM: exit 0, nothing left behind, and commands say that nothing runs", async (t) => {
    t.equal(await end(holder, "SIGTERM"), 0);
    t.equal(inspectProcess(holder.postmaster), null);
    await t.throws(() => findAddress({ address: null, dataDir }), { message: /npm start/ });
  });

  await t.test("kill -9 of the program: the server follows, and the next start does not wait for long", async (t) => {
    holder = await hold(dataDir);
    await end(holder, "SIGKILL");
    const startedAt = Date.now();
    const next = await hold(dataDir);
    t.ok(Date.now() - startedAt < 10_000);
    t.equal(inspectProcess(holder.postmaster), null);
    holder = next;
    await keepsData(t, holder.address);
  });

  await t.test("kill -9 of the server: it is started again", async (t) => {
    process.kill(holder.postmaster, "SIGKILL");
    t.ok(
      await waitAtMost(20_000, () =>
        ask(holder.address, "select").then(
          () => true,
          () => false,
        ),
      ),
    );
    await keepsData(t, holder.address);
  });

  await t.test("kill -9 of the program and the shell: the server left alone is ended by the next start", async (t) => {
    const orphan = findPostmaster(path.join(holder.folder, "data"))!.pid;
    const shell = inspectProcess(orphan)!.parent;
    // Program and shell in one breath, then the watcher, which is the shell's other child.
    process.kill(shell, "SIGKILL");
    await end(holder, "SIGKILL");
    holder = await hold(dataDir);
    t.equal(inspectProcess(orphan), null);
    await keepsData(t, holder.address);
  });

  await t.test("a lock file whose pid another program has by now does not count", async (t) => {
    await end(holder, "SIGTERM");
    writeFileSync(
      path.join(holder.folder, "data/postmaster.pid"),
      `${process.pid}\n${holder.folder}/data\n1\n5432\n\n\n\nready\n`,
    );
    await t.throws(() => findAddress({ address: null, dataDir }), { message: /npm start/ });
    holder = await hold(dataDir);
    await keepsData(t, holder.address);
    t.equal(await end(holder, "SIGTERM"), 0);
  });
});

t.test(
  "in a folder that only root can enter, the data live elsewhere",
  { skip: isRoot ? false : "needs root" },
  async (t) => {
    const closed = mkdtempSync(path.join(tmpdir(), "coupon-closed-"));
    const dataDir = path.join(closed, "project/.data");
    t.teardown(() => rmSync(closed, { recursive: true, force: true }));
    let holder = await hold(dataDir);
    t.teardown(() => rmSync(holder.folder, { recursive: true, force: true }));
    t.ok(lstatSync(path.join(dataDir, "postgres")).isSymbolicLink());
    t.equal(realpathSync(path.join(dataDir, "postgres")), holder.folder);
    await ask(holder.address, "create table public.kept as select 1 as value");
    await end(holder, "SIGTERM");
    holder = await hold(dataDir);
    t.strictSame(await ask(holder.address, "select value from public.kept"), [{ value: 1 }]);
    t.equal(await end(holder, "SIGTERM"), 0);
  },
);
