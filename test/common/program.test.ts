// How a program ends, by a signal, an error that an operator can fix, or a bug; and what it writes meanwhile: its log,
// its output and its progress, also on a disk that is full.
import { spawn, type StdioOptions } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { mock } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { createLog } from "../../src/common/log.ts";
import { messageOf } from "../../src/common/program.ts";
import { withProgress, type Terminal } from "../../src/command-line/progress.ts";
import { fits } from "../support/fits.ts";
import { hasEnded, resultOf } from "../support/program.ts";
import { canMount, fillDisk, useSmallDisk } from "../support/small-disk.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

const fileOf = (name: string): string => path.resolve(import.meta.dirname, "../../src", name);
const source = (name: string): string => JSON.stringify(fileOf(name));
const head = `
  import { onStop, runProgram, stopOnSignal } from ${source("common/program.ts")};
  import { createLog } from ${source("common/log.ts")};
  import { writeOutput } from ${source("command-line/output.ts")};
  import { setTimeout as sleep } from "node:timers/promises";
  import assert from "node:assert";
  const log = createLog("info");
  const forever = () => new Promise(() => {});
  const ready = () => { setInterval(() => {}, 1_000); console.log("ready"); };
`;
const start = (code: string, stdio: StdioOptions = ["ignore", "pipe", "pipe"]) =>
  spawn(process.execPath, ["--input-type=module", "-e", head + code], { stdio });

type Line = { level: number; msg: string; duration_ms: number; err?: { name: string; message: string; stack: string } };

// Runs a program. If there are signals, they are sent once it is ready. `said`: what is no line of the log.
async function run(t: Test, code: string, signals: NodeJS.Signals[] = []) {
  const program = start(code);
  t.teardown(() => program.kill("SIGKILL"));
  const result = resultOf(program);
  if (signals.length > 0) await waitFor("the program to be ready", once(program.stdout!, "data"));
  for (const signal of signals) program.kill(signal);
  const { code: exitCode, stdout, stderr } = await result;
  const all = stdout.trim().split("\n");
  return {
    code: exitCode,
    lines: all.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as Line),
    said: all.filter((line) => !line.startsWith("{")),
    stderr,
  };
}

// Begins first, because it takes 9 s.
const hanging = run(t, "onStop(forever, log); ready();", ["SIGTERM"]);

t.test("a signal runs the handler once, and the program ends with exit code 0", async (t) => {
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    const code = `onStop(async () => { console.log("handled"); await sleep(100); }, log); setTimeout(ready, 700);`;
    // Under npm, a signal arrives twice.
    const ended = await run(t, code, [signal, signal]);
    t.strictSame([ended.code, ended.said, ended.stderr], [0, ["ready", "handled"], ""]);
    fits(t, ended.lines, [{ level: 30, msg: "stopped", signal, duration_ms: /^\d+$/ }]);
  }
});

t.test("a handler that fails or hangs does not keep the program from ending", async (t) => {
  const failed = await run(t, `onStop(async () => { throw new Error("no end"); }, log); ready();`, ["SIGTERM"]);
  const notInOrder = {
    level: 40,
    msg: "stopped, but a part failed to stop",
    signal: "SIGTERM",
    err: { message: "no end" },
  };
  fits(t, failed, { code: 0, lines: [notInOrder] });
  // On a clock that the program moves.
  const impatient = await run(
    t,
    `let now = 0;
    performance.now = () => now;
    onStop(() => { console.log("handled"); return forever(); }, log);
    process.emit("SIGTERM", "SIGTERM");
    now = 1_000;
    process.emit("SIGTERM", "SIGTERM");
    now = 1_001;
    process.emit("SIGINT", "SIGINT");`,
  );
  const atOnce = { level: 40, msg: "stopped at once by a second signal", signal: "SIGINT" };
  fits(t, impatient, { code: 0, said: ["handled"], lines: [atOnce] });
});

t.test("a signal stops the parts of a program one after the other, the last one first", async (t) => {
  const code = `
    const part = (name) => ({ async stop() { console.log("stop", name); await sleep(20); console.log("end", name); } });
    const running = stopOnSignal(log);
    running.push(part("a"), part("b"));
    ready();`;
  const { said } = await run(t, code, ["SIGTERM"]);
  t.strictSame(said, ["ready", "stop b", "end b", "stop a", "end a"]);
});

t.test("a program that fails because it is stopped while it starts ends with exit code 0", async (t) => {
  const code = `
    const stopped = new AbortController();
    onStop(async () => { console.log("handled"); stopped.abort(); await sleep(100); }, log);
    await runProgram(async () => {
      ready();
      await sleep(50_000, null, { ref: false, signal: stopped.signal }).catch(() => {});
      throw new Error("the server has ended");
    });`;
  fits(t, await run(t, code, ["SIGTERM"]), { code: 0, said: ["ready", "handled"], stderr: "" });
});

t.test("an error that an operator can fix is one line, a bug is a line of the log with its stack", async (t) => {
  const failed = await run(t, `await runProgram(async () => { throw new Error("wrong setting"); });`);
  fits(t, failed, { code: 1, stderr: "wrong setting\n", lines: [] });
  const bugs = [
    ["undefined.x;", "TypeError", "the program failed"],
    ["nothing;", "ReferenceError", "the program failed"],
    ["new Array(-1);", "RangeError", "the program failed"],
    ["assert.equal(1, 2);", "AssertionError", "the program failed"],
    ["Promise.reject(new Error('lost'));", "Error", "unhandled rejection"],
    ["setImmediate(() => { throw new Error('x'); });", "Error", "uncaught exception"],
  ] as const;
  const tryOne = async ([statement, name, msg]: (typeof bugs)[number]) => {
    const ended = await run(t, `await runProgram(async () => { ${statement} }); ready();`);
    t.equal(ended.code, 1, statement);
    fits(t, JSON.parse(ended.stderr), { level: 60, msg, err: { name, stack: /\n +at / } }, statement);
  };
  await Promise.all(bugs.map(tryOne));
});

t.test("the message of an error says what happened, also if it has several causes", async (t) => {
  const both = [new Error("refused by ::1"), new AggregateError([new Error("refused by 127.0.0.1"), "late"])];
  t.equal(messageOf(new Error("one")), "one");
  t.equal(messageOf("text"), "text");
  t.equal(messageOf(null), "null");
  t.equal(messageOf(new AggregateError(both)), "refused by ::1; refused by 127.0.0.1; late");
  t.equal(messageOf(new AggregateError(both, "no database")), "no database");
});

t.test("an old Node is told which one is needed", async (t) => {
  const old = 'Object.defineProperty(process,"versions",{value:{node:"23.9.9"}})';
  const flags = ["--import", `data:text/javascript,${encodeURIComponent(old)}`, fileOf("common/program.ts")];
  const stderr = /^Node 24 or newer is needed; this is v.*\. On Linux x64, npm ci installs one: .*\n$/;
  fits(t, await resultOf(spawn(process.execPath, flags)), { code: 1, stderr });
});

t.test("a logged error has its code and place, but neither the parameters of its statement nor a row", async (t) => {
  const lines: unknown[] = [];
  const log = createLog("info", { write: (line) => void lines.push(JSON.parse(line)) });
  const where = "PL/pgSQL function f() line 3";
  const err = new RangeError("m");
  Object.assign(err, { code: "P0001", where, parameters: ["secret"], detail: "secret" });
  mock.timers.enable({ apis: ["Date"], now: Date.UTC(2026, 0, 26, 10, 0, 0, 7) });
  t.teardown(() => mock.timers.reset());
  log.error({ err }, "it failed");
  const logged = { name: "RangeError", code: "P0001", message: "m", where, stack: err.stack };
  t.strictSame(lines, [{ level: 50, time: "2026-01-26T10:00:00.007Z", err: logged, msg: "it failed" }]);
});

const lossMessage = "lines of the log are missing here: its disk was full";

t.test("a log that has reached a quota loses lines, and any other error ends the program", async (t) => {
  const lose = (...codes: string[]) =>
    run(
      t,
      `for (const code of ${JSON.stringify(codes)}) {
        process.stdout.emit("error", Object.assign(new Error("lost"), { code }));
        log.info("next");
        await sleep(200);
      }`,
    );
  const { code, lines } = await lose("ENOSPC", "EDQUOT", "EFBIG");
  const expected = [lossMessage, "next"];
  t.equal(code, 0);
  t.strictSame(
    lines.map(({ msg }) => msg),
    [...expected, ...expected, ...expected],
  );
  t.equal((await lose("EIO")).code, 1);
});

const skip = canMount() ? false : "only root may mount a small disk";

// A program whose standard output is the file.
function startInto(file: string, code: string) {
  const descriptor = openSync(file, "a");
  const program = start(code, ["ignore", descriptor, "pipe"]);
  closeSync(descriptor);
  return program;
}

t.test("a program outlives a full disk of its log, and the log says where lines are missing", { skip }, async (t) => {
  const disk = useSmallDisk(t, 2 ** 20);
  const file = path.join(disk, "program.log");
  // Writes a numbered line every few milliseconds, and reports each failed write.
  const program = startInto(
    file,
    `process.stdout.on("error", (error) => console.error(error.message));
    let number = 0;
    setInterval(() => log.info({ number: (number += 1), padding: "-".repeat(500) }), 5);`,
  );
  t.teardown(async () => {
    program.kill("SIGKILL");
    await waitUntil("the end of the program", () => hasEnded(program));
  });
  const read = () => readFileSync(file, "utf8");
  const lastNumber = () => Number(/.*"number":(\d+)/s.exec(read())?.[1] ?? 0);
  await waitUntil("the first lines", () => lastNumber() > 10);
  fillDisk(path.join(disk, "filler"));
  await waitFor("the first loss", once(program.stderr!, "data"));
  const full = read();
  const before = lastNumber();
  t.equal(hasEnded(program), false);

  rmSync(path.join(disk, "filler"));
  await waitUntil("lines after the loss", () => hasEnded(program) || lastNumber() > before + 20);
  t.equal(hasEnded(program), false);
  const [gap, ...next] = read().slice(full.length).trimStart().split("\n");
  fits(t, JSON.parse(gap!), { level: 40, msg: lossMessage });
  const numbers = next.slice(0, 5).map((line) => (JSON.parse(line) as { number: number }).number);
  const inOrder = numbers.map((_, index) => numbers[0]! + index);
  t.strictSame(numbers, inOrder, "the lines after it are whole and in order");
  t.ok(numbers[0]! > before);
});

const write = (length: number) => `
  await writeOutput("x".repeat(${length}) + "\\n").catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });`;

t.test("output that a file cannot take is an error, and a pipe gets all of it", { skip }, async (t) => {
  const file = path.join(useSmallDisk(t, 64 * 1024), "output");
  fits(t, await resultOf(startInto(file, write(60_000))), { code: 0, stderr: "" });
  t.equal(readFileSync(file, "utf8"), `${"x".repeat(60_000)}\n`);
  const stderr = /^standard output is incomplete: ENOSPC: no space left on device, write\n$/;
  fits(t, await resultOf(startInto(file, write(200_000))), { code: 1, stderr });
  const piped = await resultOf(start(write(1_000_000)));
  t.strictSame([piped.code, piped.stdout.length], [0, 1_000_001]);
});

/** Keeps what is written, and what a terminal shows after it. */
function openTerminal(more: Partial<Terminal> = {}) {
  const written: string[] = [];
  const shown = (): string => {
    const line: string[] = [];
    let at = 0;
    for (const char of written.join("")) {
      if (char === "\r") at = 0;
      else line[at++] = char;
    }
    return line.join("").trimEnd();
  };
  const terminal: Terminal = { isTTY: true, write: (text) => written.push(text), ...more };
  return { terminal, written, shown };
}

t.test("progress shows the last text, then its seconds, and is gone at the end", async (t) => {
  const { terminal, written, shown } = openTerminal();
  const result = await withProgress(async (progress) => {
    progress.show("a longer text");
    await waitUntil("the first text", () => /^a longer text( \d+ s)?$/.test(shown()));
    progress.show("short");
    await waitUntil("the second text alone", () => /^short( \d+ s)?$/.test(shown()));
    await waitUntil("its seconds", () => /^short \d+ s$/.test(shown()));
    progress.clear();
    t.equal(shown(), "", "room for other output");
    await waitUntil("the line again", () => /^short \d+ s$/.test(shown()));
    return 7;
  }, terminal);
  t.strictSame([result, shown()], [7, ""]);
  t.ok(written.at(-1)!.endsWith("\r"));
  t.notMatch(written.join("").replaceAll("\r", ""), /\p{C}/u);
  const count = written.length;
  await sleep(600);
  t.equal(written.length, count, "nothing is drawn after the end");
});

t.test("a line of progress never wraps, and is gone before a failure is reported", async (t) => {
  const { terminal, shown } = openTerminal({ columns: 10 });
  const failing = withProgress(async (progress) => {
    progress.show("0123456789012345");
    await waitUntil("a line", () => shown() === "012345678");
    throw new Error("no");
  }, terminal);
  await t.rejects(failing, { message: "no" });
  t.equal(shown(), "");
});

t.test("no progress is written where there is no terminal, or by a command that ends at once", async (t) => {
  for (const isTTY of [false, true]) {
    const { terminal, written } = openTerminal({ isTTY });
    await withProgress(async (progress) => {
      progress.show("working");
      if (!isTTY) await sleep(600);
      progress.clear();
    }, terminal);
    t.strictSame(written, [], isTTY ? "at once" : "no terminal");
  }
});

t.test("a program that does not stop in order ends 9 s after the signal", async (t) => {
  const { code, lines } = await hanging;
  t.equal(code, 0);
  fits(t, lines, [{ level: 40, msg: "stopped before everything had ended", signal: "SIGTERM" }]);
  const ms = lines[0]!.duration_ms;
  // As long as docs/operate.md promises. A busy machine may be late.
  t.ok(ms >= 8_900 && ms < 60_000, `${ms} ms`);
});
