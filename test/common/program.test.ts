// How a program ends: by a signal, by an error that an operator can fix, or by a bug.
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { text } from "node:stream/consumers";
import t, { type Test } from "tap";
import { messageOf } from "../../src/common/program.ts";
import { fits } from "../support/fits.ts";
import { exitCodeOf } from "../support/program.ts";
import { waitFor } from "../support/wait-until.ts";

const source = (file: string): string => JSON.stringify(path.resolve(import.meta.dirname, "../../src/common", file));
const head = `
  import { onStop, runProgram, stopOnSignal } from ${source("program.ts")};
  import { createLog } from ${source("log.ts")};
  import { setTimeout as sleep } from "node:timers/promises";
  import assert from "node:assert";
  const log = createLog("info");
  const forever = () => new Promise(() => {});
  const ready = () => { setInterval(() => {}, 1_000); console.log("ready"); };
`;

type Line = { level: number; msg: string; duration_ms: number; err?: { name: string; message: string; stack: string } };
type Ended = { code: number | null; lines: Line[]; said: string[]; stderr: string };

// Runs a program. If there are signals, they are sent once it is ready.
async function run(t: Test, code: string, signals: NodeJS.Signals[] = []): Promise<Ended> {
  const program = spawn(process.execPath, ["--input-type=module", "-e", head + code], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  t.teardown(() => program.kill("SIGKILL"));
  const output = Promise.all([text(program.stdout), text(program.stderr)]);
  if (signals.length > 0) await waitFor("the program to be ready", once(program.stdout, "data"));
  for (const signal of signals) program.kill(signal);
  const exitCode = await exitCodeOf(program);
  const [stdout, stderr] = await output;
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
    t.equal(ended.lines.length, 1);
  }
});

t.test("a handler that fails or hangs does not keep the program from ending", async (t) => {
  const failed = await run(t, `onStop(async () => { throw new Error("no end"); }, log); ready();`, ["SIGTERM"]);
  t.equal(failed.code, 0);
  fits(t, failed.lines, [
    { level: 40, msg: "stopped, but not in order", signal: "SIGTERM", err: { message: "no end" } },
  ]);
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
  t.strictSame([impatient.code, impatient.said], [0, ["handled"]]);
  fits(t, impatient.lines, [{ level: 40, msg: "stopped at once, by a second signal", signal: "SIGINT" }]);
  const silent = await run(t, `onStop(async () => {}); ready();`, ["SIGTERM"]);
  t.strictSame([silent.code, silent.lines], [0, []], "without a log");
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

t.test("an error that an operator can fix is one line, a bug is a line of the log with its stack", async (t) => {
  const failed = await run(t, `await runProgram(async () => { throw new Error("wrong setting"); });`);
  t.strictSame([failed.code, failed.stderr, failed.lines], [1, "wrong setting\n", []]);
  const odd = await run(t, "await runProgram(async () => { throw null; });");
  t.strictSame([odd.code, odd.stderr], [1, "null\n"]);
  for (const [code, name, msg] of [
    ["await runProgram(async () => { undefined.x; });", "TypeError", "the program failed"],
    ["await runProgram(async () => { nothing; });", "ReferenceError", "the program failed"],
    ["await runProgram(async () => { new Array(-1); });", "RangeError", "the program failed"],
    ["await runProgram(async () => { assert.equal(1, 2); });", "AssertionError", "the program failed"],
    ["await runProgram(async () => { Promise.reject(new Error('lost')); });", "Error", "unhandled rejection"],
    [
      "await runProgram(async () => { setImmediate(() => { throw new Error('x'); }); });",
      "Error",
      "uncaught exception",
    ],
  ] as const) {
    const ended = await run(t, `${code} ready();`);
    t.equal(ended.code, 1, code);
    const line = JSON.parse(ended.stderr) as Line;
    fits(t, line, { level: 60, msg, err: { name } }, code);
    t.match(line.err!.stack, /\n +at /, code);
  }
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
  const { code: exitCode, said, stderr } = await run(t, code, ["SIGTERM"]);
  t.strictSame([exitCode, said, stderr], [0, ["ready", "handled"], ""]);
});

t.test("the message of an error says what happened, also if it has several causes", (t) => {
  const both = [new Error("refused by ::1"), new AggregateError([new Error("refused by 127.0.0.1"), "late"])];
  t.equal(messageOf(new Error("one")), "one");
  t.equal(messageOf("text"), "text");
  t.equal(messageOf(null), "null");
  t.equal(messageOf(new AggregateError(both)), "refused by ::1; refused by 127.0.0.1; late");
  t.equal(messageOf(new AggregateError(both, "no database")), "no database");
  t.equal(messageOf(new Error("")), "");
  t.end();
});

t.test("an old Node is told which one is needed", async (t) => {
  const old = 'Object.defineProperty(process,"versions",{value:{node:"23.9.9"}})';
  const file = path.resolve(import.meta.dirname, "../../src/common/program.ts");
  const flags = ["--import", `data:text/javascript,${encodeURIComponent(old)}`, file];
  const program = spawn(process.execPath, flags, { stdio: ["ignore", "ignore", "pipe"] });
  const stderr = text(program.stderr);
  t.equal(await exitCodeOf(program), 1);
  t.match(await stderr, /^Node 24 or newer is needed; this is v.*\. On Linux x64, npm ci installs one: .*\n$/);
});

t.test("a program that does not stop in order ends 9 s after the signal", async (t) => {
  const { code, lines } = await hanging;
  t.equal(code, 0);
  fits(t, lines, [{ level: 40, msg: "stopped before everything had ended", signal: "SIGTERM" }]);
  const ms = lines[0]!.duration_ms;
  // As long as docs/operate.md promises. A busy machine may be late.
  t.ok(ms >= 8_900 && ms < 60_000, `${ms} ms`);
});
