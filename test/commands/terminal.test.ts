// Commands on a real terminal: progress is on standard error only, and standard output has the same bytes without it.
import { spawn, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Readable } from "node:stream";
import t from "tap";
import { formatUrl } from "../../src/common/database-address.ts";
import { exportCodes } from "../../src/commands/codes.ts";
import { openSession } from "../../src/database/connect.ts";
import { root } from "../support/copy.ts";
import { createEmptyDatabase } from "../support/database.ts";
import { environmentOf, exitCodeOf, runProgram, spawnProgram } from "../support/program.ts";
import { tenants } from "../support/tenants.ts";
import { startService } from "../support/service.ts";
import { waitUntil } from "../support/wait-until.ts";

const script = spawnSync("script", ["--version"], { encoding: "utf8" }).stdout ?? "";
const skip = script.includes("util-linux") ? false : "needs script of util-linux, which opens a terminal";

/** Runs a command line of sh on a terminal. */
function openTerminal(commandLine: string, env: Record<string, string>) {
  const program = spawn("script", ["--quiet", "--return", "--command", commandLine, "/dev/null"], {
    cwd: root,
    env: { PATH: process.env["PATH"], TERM: "xterm-256color", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const code = async (): Promise<number | null> => {
    await waitUntil("the end of its output", () => program.stdout.readableEnded);
    return exitCodeOf(program);
  };
  return { code, printed: collect(program.stdout) };
}

/** Returns what has come so far. */
function collect(stream: Readable): () => string {
  const chunks: string[] = [];
  stream.setEncoding("utf8").on("data", (chunk: string) => chunks.push(chunk));
  return () => chunks.join("");
}

/** A database whose migrate waits until `release`. */
async function lockMigrates() {
  const { address, drop } = await createEmptyDatabase();
  const session = openSession(address, { name: "coupon test" });
  await session.rows("select pg_advisory_lock(109324429684590)");
  return { env: { DATABASE_URL: formatUrl(address) }, release: () => session.end(), drop };
}

t.test("migrate shows what it waits for, on a terminal only", { skip }, async (t) => {
  const [first, second] = [await lockMigrates(), await lockMigrates()];
  t.teardown(() => Promise.all([first, second].map(({ drop }) => drop())));
  const file = path.join(t.testdir(), "stdout");
  const terminal = openTerminal(`exec bin/coupon migrate > '${file}'`, first.env);
  await waitUntil("progress", () => /\rwaiting for another migrate \d+ s/.test(terminal.printed()));
  await first.release();
  t.equal(await terminal.code(), 0);
  t.match(terminal.printed(), /\r +\r$/, "the line is gone at the end");
  t.notMatch(terminal.printed(), "\u001b", "no escape sequence");

  const piped = spawnProgram("migrate", { env: second.env });
  const [stdout, stderr] = [collect(piped.stdout!), collect(piped.stderr!)];
  await waitUntil("the piped migrate", () => stdout() === "waiting for another migrate\n");
  await second.release();
  t.equal(await exitCodeOf(piped), 0);
  await waitUntil("all its output", () => piped.stdout!.readableEnded && piped.stderr!.readableEnded);
  t.match(stdout(), /^waiting for another migrate\nmigrated: \d+ migrations, /);
  t.equal(readFileSync(file, "utf8"), stdout(), "the same bytes");
  t.equal(stderr(), "");
});

t.test("codes counts the codes, and a terminal shows nothing between them", { skip }, async (t) => {
  const service = await startService(t);
  const { id } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 3);
  const pages: number[][] = [];
  await Array.fromAsync(exportCodes(service.admin, service.keys, id, false, (...page) => pages.push(page)));
  t.strictSame(pages, [[3, 3]]);
  const { stdout, stderr } = await runProgram(service, "codes", [id]);
  t.equal(stderr, "");
  t.equal(stdout.split("\n").length, 5);
  const terminal = openTerminal(`exec bin/coupon codes ${id}`, environmentOf(service));
  t.equal(await terminal.code(), 0);
  t.equal(terminal.printed(), stdout.replaceAll("\n", "\r\n"));
});

t.test("codes shows how far it is while it waits for more", { skip }, async (t) => {
  const service = await startService(t);
  const { id } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 5_001);
  const [file, go] = [path.join(t.testdir(), "codes.csv"), path.join(t.testdir(), "go")];
  // The first page fills the pipe, so the second one is asked for after the reader begins.
  const reader = `until [ -e '${go}' ]; do sleep 0.05; done; cat > '${file}'`;
  const terminal = openTerminal(`bin/coupon codes ${id} | (${reader})`, environmentOf(service));
  const firstPage = `select from pg_stat_activity where datname = current_database() and state = 'idle'
                       and application_name = 'coupon codes' and query like '%read_export_page%'`;
  const session = openSession(service.address, { name: "coupon test" });
  t.teardown(() => session.end());
  await waitUntil("the first page", async () => (await session.rows(firstPage)).length > 0);
  await session.run("begin; lock core.coupon in access exclusive mode");
  writeFileSync(go, "");
  await waitUntil("progress", () => terminal.printed().includes("\r5,000 of 5,001 codes"));
  await session.run("rollback");
  t.equal(await terminal.code(), 0);
  t.match(terminal.printed(), /\r +\r$/, "the line is gone at the end");
  t.equal(readFileSync(file, "utf8").split("\n").length, 5_003);
});

t.test("apply says what it applies, on a terminal only", { skip }, async (t) => {
  const service = await startService(t);
  const folder = t.testdir({ "tenants.json": JSON.stringify({ tenants }) });
  const [file, output] = [path.join(folder, "tenants.json"), path.join(folder, "stdout")];
  const session = openSession(service.address, { name: "coupon test" });
  await session.rows("begin");
  await session.rows("select from core.template for update");
  const terminal = openTerminal(`exec bin/coupon apply '${file}' > '${output}'`, environmentOf(service));
  await waitUntil("progress", () => terminal.printed().includes("\rapplying /"));
  await session.rows("rollback");
  await session.end();
  t.equal(await terminal.code(), 0);
  t.match(terminal.printed(), /\r +\r$/, "the line is gone at the end");
  const { stdout, stderr } = await runProgram(service, "apply", [file]);
  t.equal(readFileSync(output, "utf8"), stdout, "the same bytes");
  t.equal(stderr, "");
});
