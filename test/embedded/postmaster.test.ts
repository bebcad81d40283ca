// Which process a postmaster.pid names, and which lock files belong to no server.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import { findPostmaster, inspectProcess, isStaleLock } from "../../src/embedded/postmaster.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

const nobody = 65_534;

function makeDataFolder(t: Test): string {
  const folder = useTemporaryFolder(t, "coupon-postmaster-");
  const data = path.join(folder, "my data");
  mkdirSync(data);
  return data;
}

// A process that looks like a server of this folder. It ends when its input is closed.
function startLikeServer(t: Test, dataFolder: string, argv0 = "/usr/lib/postgres"): number {
  const child = spawn("/bin/sh", ["-c", "read line", "-D", dataFolder, "-c", "port=1"], {
    argv0,
    stdio: ["pipe", "ignore", "inherit"],
  });
  t.teardown(() => child.stdin.end());
  return child.pid!;
}

// A process that has ended, but for which nobody waits.
async function makeZombie(t: Test): Promise<number> {
  const child: ChildProcess = spawn("/bin/sh", ["-c", "sleep 0.3 & echo $!; exec sleep 300"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.teardown(() => child.kill("SIGKILL"));
  const [line] = (await waitFor("the pid of the zombie", once(child.stdout!, "data"))) as [Buffer];
  const pid = Number(String(line));
  await waitUntil("a zombie", () => / Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8")));
  return pid;
}

// Files are then refused, as to any user who is not root.
function asNobody<T>(act: () => T): T {
  if (process.geteuid!() !== 0) return act();
  process.seteuid!(nobody);
  try {
    return act();
  } finally {
    process.seteuid!(0);
  }
}

const endedPid = (): number => spawnSync("true").pid;

// A process takes its name a moment after it started.
const untilNamed = (pid: number, name: string) =>
  waitUntil(`the process to be ${name}`, () => inspectProcess(pid)?.args.join(" ").startsWith(name));

function asDarwin<T>(act: () => T): T {
  const platform = Object.getOwnPropertyDescriptor(process, "platform")!;
  Object.defineProperty(process, "platform", { ...platform, value: "darwin" });
  try {
    return act();
  } finally {
    Object.defineProperty(process, "platform", platform);
  }
}

// What another user's program finds. It has a copy of the file, because it may not read the checkout.
function isStaleForNobody(data: string): string {
  const copy = path.join(data, "postmaster.ts");
  copyFileSync(path.resolve(import.meta.dirname, "../../src/embedded/postmaster.ts"), copy);
  const code = `import { isStaleLock } from ${JSON.stringify(copy)};
    console.log(isStaleLock(${JSON.stringify(path.join(data, "postmaster.pid"))}, ${JSON.stringify(data)}))`;
  const user = process.geteuid!() === 0 ? { uid: nobody, gid: nobody } : {};
  const options = { ...user, cwd: "/", encoding: "utf8" } as const;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", code], options);
  return stdout.trim() || stderr;
}

t.test("a process has arguments and a parent, on Linux from /proc and elsewhere from ps", async (t) => {
  const data = makeDataFolder(t);
  const pid = startLikeServer(t, data);
  await untilNamed(pid, "/usr/lib/postgres");
  if (process.platform === "linux") {
    const args = ["/usr/lib/postgres", "-c", "read line", "-D", data, "-c", "port=1", ""];
    t.strictSame(inspectProcess(pid), { args, parent: process.pid });
    t.equal(inspectProcess(await makeZombie(t)), null, "a zombie is dead");
  }
  if (spawnSync("ps").error === undefined) {
    const program = "/Users/me/my project/bin/postgres";
    const supervisor = "/bin/sh -c wait coupon-postgres /usr/lib/postgres";
    const [other, shell] = [startLikeServer(t, data, program), startLikeServer(t, data, supervisor)];
    await untilNamed(other, program);
    await untilNamed(shell, supervisor);
    const words = `/usr/lib/postgres -c read line -D ${data} -c port=1`.split(" ");
    asDarwin(() => {
      t.strictSame(inspectProcess(pid), { args: words, parent: process.pid });
      t.equal(inspectProcess(endedPid()), null);
      t.strictSame(findServer(data, pid), { pid, port: 5432, socketFolder: "/run/x", status: "ready" });
      t.equal(findServer(data, other)?.pid, other, "the path of the program has a space");
      t.equal(findServer(data, shell), null, "the shell that supervises a server");
    });
  }
  for (const missing of [endedPid(), 0, -1, NaN]) t.equal(inspectProcess(missing), null, String(missing));
});

// Finds the server that this postmaster.pid describes.
function findServer(data: string, pid: number, status = "ready   ") {
  writeFileSync(path.join(data, "postmaster.pid"), `${pid}\n${data}\n1700000000\n5432\n/run/x\n\n  1 2\n${status}\n`);
  return findPostmaster(data);
}

t.test("postmaster.pid leads to the server if its process is the server of that folder", async (t) => {
  const data = makeDataFolder(t);
  t.equal(findPostmaster(data), null, "no file");
  const pid = startLikeServer(t, data);
  await untilNamed(pid, "/usr/lib/postgres");
  for (const [text, status] of [
    ["ready   ", "ready"],
    ["stopping", "stopping"],
    ["starting", "starting"],
    ["standby ", "starting"],
    ["", "starting"],
  ] as const)
    t.strictSame(findServer(data, pid, text), { pid, port: 5432, socketFolder: "/run/x", status }, text);
  const others = {
    "this test": process.pid,
    "another program on that folder": startLikeServer(t, data, "/usr/lib/postgres_exporter"),
    "the server of another folder": startLikeServer(t, `${data}2`),
    "a process that has ended": endedPid(),
    "a server in single-user mode, which writes a negative pid": -pid,
  };
  for (const [name, other] of Object.entries(others)) t.equal(findServer(data, other), null, name);

  chmodSync(path.join(data, "postmaster.pid"), 0o600);
  if (process.geteuid!() === 0) t.throws(() => asNobody(() => findPostmaster(data)), { code: "EACCES" });
});

t.test("a lock is stale if its pid is taken by another program, or if it is empty", async (t) => {
  const data = makeDataFolder(t);
  const lock = path.join(data, "postmaster.pid");
  const isStale = (text: string): boolean => {
    writeFileSync(lock, text);
    return isStaleLock(lock, data);
  };
  t.equal(isStaleLock(lock, data), false, "no file");
  const server = startLikeServer(t, data);
  await untilNamed(server, "/usr/lib/postgres");
  t.strictSame(
    {
      empty: isStale(""),
      "this test": isStale(`${process.pid}\n${data}\n`),
      "this test in single-user mode": isStale(`-${process.pid}\n${data}\n`),
      "the living server": isStale(`${server}\n${data}\n`),
      "the server of another folder": isStale(`${startLikeServer(t, `${data}2`)}\n${data}\n`),
      "a process that has ended": isStale(`${endedPid()}\n${data}\n`),
    },
    {
      empty: true,
      "this test": true,
      "this test in single-user mode": true,
      "the living server": false,
      "the server of another folder": true,
      // PostgreSQL removes such a file itself.
      "a process that has ended": false,
    },
  );
  if (process.platform === "linux") t.equal(isStale(`${await makeZombie(t)}\n`), true, "a zombie counts as alive");
  writeFileSync(lock, "1\n");
  t.equal(isStaleForNobody(data), "true", "a process of another user counts as alive");
});
