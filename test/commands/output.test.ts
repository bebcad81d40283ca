// What commands write: rows as a table and as JSON, progress on a real terminal, and nothing that gets lost unnoticed.
import { spawn, spawnSync } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import path from "node:path";
import t from "tap";
import { formatUrl } from "../../src/config/database-address.ts";
import { formatRows } from "../../src/commands/table.ts";
import { openSession } from "../../src/database/connect.ts";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { root } from "../support/copy.ts";
import { createEmptyDatabase } from "../support/database.ts";
import { fits } from "../support/fits.ts";
import { environmentOf, launch, resultOf, runProgram } from "../support/program.ts";
import { scenario } from "../support/scenario.ts";
import { party } from "../support/tenants.ts";
import { waitUntil } from "../support/wait-until.ts";

const at = new Date("2026-01-31T12:00:00.500Z");
// Rows may quote a receiver, and a terminal might execute what it says.
const rows = [
  { name: "one", at, count: 1, error: null },
  { name: "two\n\u001b[31m\u009b2J\u{e0001}", at: null, count: -12, error: "é ✓ 👨\u200d👧" },
];

t.test("a table replaces control characters", async (t) => {
  t.equal(
    formatRows(rows, { json: false }),
    `name           at                        count  error
one            2026-01-31T12:00:00.500Z  1      -
two??[31m?2J?  -                         -12    é ✓ 👨\u200d👧`,
  );
  t.equal(formatRows([], { json: false }), "none");
});

t.test("JSON escapes control characters and loses nothing", async (t) => {
  const text = formatRows(rows, { json: true });
  t.strictSame(JSON.parse(text), [{ ...rows[0], at: at.toISOString() }, rows[1]]);
  t.notMatch(text.replaceAll("\n", ""), /\p{C}/u);
  t.match(text, '"two\\n\\u001b[31m\\u009b2J\\udb40\\udc01"');
  t.equal(formatRows([], { json: true }), "[]");
});

const script = spawnSync("script", ["--version"], { encoding: "utf8" }).stdout ?? "";
const skip = script.includes("util-linux") ? false : "needs script of util-linux, which opens a terminal";

/** Runs a command line of sh on a terminal. */
function openTerminal(commandLine: string, env: Record<string, string>) {
  const program = spawn("script", ["--quiet", "--return", "--command", commandLine, "/dev/null"], {
    cwd: root,
    env: { PATH: process.env["PATH"], TERM: "xterm-256color", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let printed = "";
  program.stdout.on("data", (chunk) => (printed += chunk));
  return { printed: () => printed, result: resultOf(program) };
}

/** A database whose migrate waits until `release`. */
async function lockMigrates() {
  const { address, drop } = await createEmptyDatabase();
  t.teardown(drop);
  const session = openSession(address, { name: "coupon test" });
  await session.rows("select pg_advisory_lock(109324429684590)");
  return { env: { DATABASE_URL: formatUrl(address) }, release: () => session.end() };
}

t.test("migrate shows what it waits for, on a terminal only", { skip }, async (t) => {
  const [first, second] = [await lockMigrates(), await lockMigrates()];
  const file = path.join(t.testdir(), "stdout");
  const terminal = openTerminal(`exec bin/coupon migrate > '${file}'`, first.env);
  const piped = launch(t, "migrate", { env: second.env });
  await waitUntil("progress", () => /\rwaiting for another migrate \d+ s/.test(terminal.printed()));
  await piped.untilPrinted(/^waiting for another migrate\n$/);
  await Promise.all([first.release(), second.release()]);
  t.equal((await terminal.result).code, 0);
  t.match(terminal.printed(), /\r +\r$/, "the line is gone at the end");
  t.notMatch(terminal.printed(), "\u001b", "no escape sequence");
  await piped.untilPrinted(/^waiting for another migrate\nmigrated: \d+ migrations, .*\n$/);
  t.equal(readFileSync(file, "utf8"), piped.output(), "the same bytes");
});

t.test("codes prints nothing between codes on a terminal", { skip }, async (t) => {
  const service = await scenario(t);
  const env = environmentOf(service);
  const { id } = await service.makeBatch(service.a.maker, service.a.template, 3);
  const { stdout } = await runProgram("codes", { args: [id], env });
  const shown = openTerminal(`exec bin/coupon codes ${id}`, env);
  t.equal((await shown.result).code, 0);
  t.equal(shown.printed(), stdout.replaceAll("\n", "\r\n"));
});

t.test("a command whose result is lost fails", async (t) => {
  const service = await scenario(t);
  const { id } = await service.makeBatch(service.a.maker, service.a.template, 1);
  const webhook = { url: "https://receiver.example/events", secret: newWebhookSecret() };
  const credentials = [{ access_key: "ak_new" }];
  const tenant = { id: "ten_new", name: "New", variant: "A", parties: [party("pty_new", { webhook })], credentials };
  for (const [name, ...args] of [
    ["apply", "-"],
    ["codes", id],
    ["webhooks", "rotate", "ten_new", "pty_new", "--reason", "leaked"],
    ["statements", "list", "--json"],
    ["statements", "verify"],
    ["migrate", "--status"],
  ] as const) {
    const full = openSync("/dev/full", "w");
    const input = JSON.stringify({ tenants: [tenant] });
    const running = runProgram(name, {
      args: [...args],
      env: environmentOf(service),
      stdio: ["pipe", full, "pipe"],
      input,
    });
    closeSync(full);
    const stderr = /^standard output is incomplete: ENOSPC/m;
    fits(t, await running, { code: 1, stderr }, [name, ...args].join(" "));
  }
});
