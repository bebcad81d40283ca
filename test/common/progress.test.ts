// The line of progress: only on a terminal, without escape sequences, and gone at the end.
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { withProgress, type Terminal } from "../../src/common/progress.ts";
import { waitUntil } from "../support/wait-until.ts";

/** Keeps what is written, and what a terminal shows after it. */
function openTerminal(columns?: number) {
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
  const terminal: Terminal = {
    isTTY: true,
    ...(columns !== undefined && { columns }),
    write: (text) => written.push(text),
  };
  return { terminal, written, shown };
}

t.test("the line shows the last text, then its seconds, and is gone at the end", async (t) => {
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
  t.equal(result, 7);
  t.equal(shown(), "");
  t.ok(written.at(-1)!.endsWith("\r"));
  t.notMatch(written.join("").replaceAll("\r", ""), /\p{C}/u);
  const count = written.length;
  await sleep(600);
  t.equal(written.length, count, "nothing is drawn after the end");
});

t.test("a line never wraps", async () => {
  const { terminal, shown } = openTerminal(10);
  await withProgress(async (progress) => {
    progress.show("0123456789012345");
    await waitUntil("a line", () => shown() === "012345678");
  }, terminal);
});

t.test("the line is gone before a failure is reported", async (t) => {
  const { terminal, shown } = openTerminal();
  const failing = withProgress(async (progress) => {
    progress.show("working");
    await waitUntil("the line", () => /^working( \d+ s)?$/.test(shown()));
    throw new Error("no");
  }, terminal);
  await t.rejects(failing, { message: "no" });
  t.equal(shown(), "");
});

t.test("nothing is written where there is no terminal, or by a command that ends at once", async (t) => {
  for (const isTTY of [false, true]) {
    const { terminal, written } = openTerminal();
    terminal.isTTY = isTTY;
    await withProgress(async (progress) => {
      progress.show("working");
      if (!isTTY) await sleep(600);
      progress.clear();
    }, terminal);
    t.strictSame(written, [], isTTY ? "at once" : "no terminal");
  }
});
