// `npm test`: starts one server, migrates one template database, and runs the named test files or all, each with tap in
// a process of its own. With --router, scenarios call the gate through a router, in front of two cells.
import { spawn, type StdioOptions } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import path from "node:path";
import { text as readText } from "node:stream/consumers";
import { runProgram } from "../../src/common/program.ts";
import { dropDatabases, makeTemplate, type Run } from "./database.ts";
import { findRouterBinaries, howToInstall, startRouterServer, type RouterServer } from "./router.ts";
import { startServer } from "./server.ts";
import { makeUsualTemplate } from "./usual-template.ts";

const root = path.resolve(import.meta.dirname, "../..");
const timeoutMs = 900_000;
// With the small young generation of the default, a tenth of a short test is garbage collection.
const v8Options = ["--min-semi-space-size=16", "--max-semi-space-size=32"];
// More than processors: tests wait for the disk and for timers too.
const jobs = Math.min(availableParallelism() + 2, 4);

const named = process.argv.slice(2).filter((argument) => argument !== "--router");
const isRouted = process.argv.includes("--router");

await runProgram(async () => {
  const server = await startServer();
  console.log(`testing on ${server.name}`);
  const prefix = `coupon_test_${Date.now().toString(36)}_`;
  let status = 1;
  let router: RouterServer | undefined;
  try {
    const template = await makeTemplate(server.address, prefix);
    const run = { prefix, template, server: server.address };
    // Tenants of the second of two cells have other numbers than the usual ones.
    if (isRouted) router = await startRouter();
    status = await runFiles(
      router ? { ...run, router: router.address } : { ...run, usual: await makeUsualTemplate(run) },
    );
  } finally {
    await router?.stop();
    await dropDatabases(server.address, prefix);
    await server.stop();
  }
  process.exit(status);
});

async function startRouter(): Promise<RouterServer> {
  const binaries = findRouterBinaries();
  if (binaries === undefined) throw new Error(howToInstall);
  return startRouterServer(binaries);
}

async function runFiles(run: Run): Promise<number> {
  const results = path.join(root, ".tap/results.tap");
  mkdirSync(path.dirname(results), { recursive: true });
  writeFileSync(results, "");
  const env = {
    ...process.env,
    // Compiled modules are kept here: hundreds of processes load the same ones.
    NODE_COMPILE_CACHE: path.join(root, "node_modules/.cache/node"),
    TAP: "1",
    TAP_TIMEOUT: String(timeoutMs / 1_000),
    COUPON_TEST_RUN: JSON.stringify(run),
  };
  const waiting = findFiles(named);
  // A terminal sends SIGINT to the tests too. We wait for them to end, and tidy up.
  process.on("SIGINT", () => waiting.splice(0));
  const runWaiting = async (): Promise<void> => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const result = await runFile(file, env);
      appendFileSync(results, result);
      if (process.stdout.isTTY) console.log(result.trimEnd().split("\n").at(-1));
    }
  };
  await Promise.all(Array.from({ length: jobs }, runWaiting));
  const { text, failed } = summarize(readFileSync(results, "utf8"));
  console.log(text);
  return failed === 0 ? 0 : 1;
}

/**
 * Runs a test file in a process of its own. Returns its results as a test of TAP. `tap run` would load each file
 * through hooks for coverage and mocks, which we do not use: that takes longer than to start the test.
 */
async function runFile(file: string, env: NodeJS.ProcessEnv): Promise<string> {
  const startedAt = performance.now();
  const stdio: StdioOptions = ["ignore", "pipe", "inherit"];
  const options = { cwd: root, env, stdio, timeout: timeoutMs, killSignal: "SIGKILL" } as const;
  const child = spawn(process.execPath, [...v8Options, file], options);
  const ended = once(child, "close");
  const output = await readText(child.stdout!);
  const [code] = (await ended) as [number | null];
  // A failed t.before leaves the exit code at 0.
  const passed = code === 0 && /^1\.\./m.test(output) && !/^not ok /m.test(output);
  const nested = output.replace(/^(?=.)/gm, "    ");
  const ms = Math.round(performance.now() - startedAt);
  return `# Subtest: ${file}\n${nested}\n${passed ? "ok" : "not ok"} - ${file} # time=${ms}ms\n`;
}

// A folder means its test files. Folders of long tests are at the end of the alphabet, and begin.
function findFiles(named: string[]): string[] {
  const given = named.length === 0 ? ["test"] : named;
  const files = given.flatMap((name) =>
    name.endsWith(".ts") ? [name] : globSync(`${name}/**/*.test.ts`, { cwd: root }).sort().reverse(),
  );
  if (files.length === 0) throw new Error(`there are no tests in ${given.join(" ")}`);
  return files;
}

/** Counts each t.test at any depth. tap prints a time for a test, but not for an assertion. */
function summarize(results: string): { text: string; failed: number } {
  const lines = results.split("\n");
  const count = (pattern: RegExp): number => lines.filter((line) => pattern.test(line)).length;
  const passed = count(/^ +ok \d+ - .* # time=/);
  // A file that fails without a failed test crashed or timed out.
  const failed = Math.max(count(/^ +not ok \d+ - .* # time=/), count(/^not ok /));
  const skipped = count(/^ +ok \d+ - .* # SKIP/);
  const counts = `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
  return { text: [...describeFailures(lines), counts].join("\n"), failed };
}

/** What failed, as tap wrote it: a line per file and test, and each failed assertion with its diagnostics. */
function describeFailures(results: string[]): string[] {
  const shown: string[] = [];
  let diagnostics = false;
  for (const line of results) {
    const isFailure = /^ *not ok /.test(line);
    if (isFailure) diagnostics = !line.includes(" # time=");
    else if (/^ *(\.\.\.|ok |# Subtest)/.test(line)) diagnostics = false;
    if (isFailure || diagnostics) shown.push(line);
  }
  return shown;
}
