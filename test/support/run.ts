// `npm test`: starts one server, migrates one template database, and runs the named test files or all, each with tap in
// a process of its own.
import { spawn } from "node:child_process";
import { closeSync, globSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import path from "node:path";
import type { Address } from "../../src/config/database-address.ts";
import { runProgram } from "../../src/common/program.ts";
import { dropDatabases, makeTemplate } from "./database.ts";
import { startServer } from "./server.ts";

const root = path.resolve(import.meta.dirname, "../..");
// The machine waits for the disk and for timers too.
const jobs = Math.min(availableParallelism() + 1, 4);

await runProgram(async () => {
  // A terminal sends SIGINT to tap too. We wait for tap to end, and tidy up.
  process.on("SIGINT", () => {});
  const server = await startServer();
  console.log(`testing on ${server.name}`);
  const prefix = `coupon_test_${Date.now().toString(36)}_`;
  let status = 1;
  try {
    const template = await makeTemplate(server.address, prefix);
    status = await runTap({ prefix, template, server: server.address });
  } finally {
    await dropDatabases(server.address, prefix);
    await server.stop();
  }
  process.exit(status);
});

async function runTap(run: { prefix: string; template: string; server: Address }): Promise<number> {
  const results = path.join(root, ".tap/results.tap");
  mkdirSync(path.dirname(results), { recursive: true });
  const output = openSync(results, "w");
  const args = [path.join(root, "test/support/run-files.ts"), String(jobs), ...findFiles(process.argv.slice(2))];
  const tap = spawn(process.execPath, args, {
    cwd: root,
    stdio: ["inherit", output, "inherit"],
    env: {
      ...process.env,
      // Compiled modules are kept here: hundreds of processes load the same ones.
      NODE_COMPILE_CACHE: path.join(root, "node_modules/.cache/node"),
      TAP_TIMEOUT: "900",
      COUPON_TEST_RUN: JSON.stringify(run),
    },
  });
  const status = await new Promise<number>((resolve) => {
    tap.on("error", (error) => {
      console.error(error.message);
      resolve(1);
    });
    tap.on("exit", (code) => resolve(code ?? 1));
  });
  closeSync(output);
  console.log(summarize(readFileSync(results, "utf8"), status));
  return status;
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
function summarize(results: string, status: number): string {
  const lines = results.split("\n");
  const count = (pattern: RegExp): number => lines.filter((line) => pattern.test(line)).length;
  const passed = count(/^ +ok \d+ - .* # time=/);
  // A file that fails without a failed test crashed or timed out.
  const failed = Math.max(count(/^ +not ok \d+ - .* # time=/), count(/^not ok /), status === 0 ? 0 : 1);
  const skipped = count(/^ +ok \d+ - .* # SKIP/);
  const counts = `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
  return [...describeFailures(lines), counts].join("\n");
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
