// The log: the fields of its lines, and a program whose standard output is a file.
import { once } from "node:events";
import { spawn, spawnSync } from "node:child_process";
import { closeSync, openSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { mock } from "node:test";
import t from "tap";
import { createLog } from "../../src/common/log.ts";
import { fits } from "../support/fits.ts";
import { hasEnded } from "../support/program.ts";
import { canMount, fillDisk, mountSmallDisk, unmount } from "../support/small-disk.ts";
import { makeTemporaryFolder, removeFolder } from "../support/temporary-folder.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

const skip = canMount() ? false : "only root may mount a small disk";

t.test("a logged error has its code and place, but neither the parameters of its statement nor a row", (t) => {
  const lines: Record<string, any>[] = [];
  const log = createLog("info", { write: (line) => void lines.push(JSON.parse(line)) });
  const where = "PL/pgSQL function f() line 3";
  const err = new RangeError("m");
  Object.assign(err, { code: "P0001", where, parameters: ["secret"], detail: "secret" });
  mock.timers.enable({ apis: ["Date"], now: Date.UTC(2026, 0, 26, 10, 0, 0, 7) });
  t.teardown(() => mock.timers.reset());
  log.error({ err }, "it failed");
  const logged = { name: "RangeError", code: "P0001", message: "m", where, stack: err.stack };
  t.strictSame(lines, [{ level: 50, time: "2026-01-26T10:00:00.007Z", err: logged, msg: "it failed" }]);
  t.end();
});

t.test("a program outlives a full disk of its log, and the log says where lines are missing", { skip }, async (t) => {
  const folder = makeTemporaryFolder("coupon-log-", (abandoned) => unmount(path.join(abandoned, "disk")));
  const disk = mountSmallDisk(path.join(folder, "disk"), 2 ** 20)!;
  const file = path.join(disk, "program.log");
  const descriptor = openSync(file, "a");
  const program = spawn(process.execPath, [path.resolve(import.meta.dirname, "../support/chatter.ts")], {
    stdio: ["ignore", descriptor, "pipe"],
  });
  closeSync(descriptor);
  t.teardown(async () => {
    program.kill("SIGKILL");
    await waitUntil("the end of the program", () => hasEnded(program));
    unmount(disk);
    removeFolder(folder);
  });
  const read = () => readFileSync(file, "utf8");
  const lastNumber = () => Number(/.*"number":(\d+)/s.exec(read())?.[1] ?? 0);
  await waitUntil("the first lines", () => lastNumber() > 10);
  fillDisk(path.join(disk, "filler"));
  await waitFor("the first line", once(program.stderr!, "data"));
  const full = read();
  const before = lastNumber();
  t.equal(hasEnded(program), false);

  rmSync(path.join(disk, "filler"));
  await waitUntil("lines after the loss", () => hasEnded(program) || lastNumber() > before + 20);
  t.equal(hasEnded(program), false);
  const [gap, ...next] = read().slice(full.length).trimStart().split("\n");
  fits(t, JSON.parse(gap!), { level: 40, msg: "lines of the log are missing here: its disk was full" });
  const numbers = next.slice(0, 5).map((line) => (JSON.parse(line) as { number: number }).number);
  t.strictSame(
    numbers,
    numbers.map((_, index) => numbers[0]! + index),
    "the lines after it are whole and in order",
  );
  t.ok(numbers[0]! > before);
});

t.test("a log that has reached a quota loses lines, and any other error ends the program", (t) => {
  const file = path.resolve(import.meta.dirname, "../../src/common/log.ts");
  const code = (error: string) => `
    import { createLog } from ${JSON.stringify(file)};
    const log = createLog("info");
    process.stdout.emit("error", Object.assign(new Error("lost"), { code: "${error}" }));
    log.info("next");`;
  for (const error of ["ENOSPC", "EDQUOT", "EFBIG"]) {
    const { status, stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", code(error)]);
    const [, gap, next] = String(stdout).split("\n");
    t.equal(status, 0, error);
    fits(
      t,
      [JSON.parse(gap!).msg, JSON.parse(next!).msg],
      ["lines of the log are missing here: its disk was full", "next"],
    );
  }
  t.equal(spawnSync(process.execPath, ["--input-type=module", "-e", code("EIO")]).status, 1);
  t.end();
});
