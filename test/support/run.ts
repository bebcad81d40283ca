// `npm test`: starts one server, migrates one template database, and runs tap on the named test files or on all. tap
// alone would fail on a fresh clone, see buildTap.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import path from "node:path";
import type { Address } from "../../src/config/database-address.ts";
import { runProgram } from "../../src/common/program.ts";
import { dropDatabases, makeTemplate } from "./database.ts";
import { startServer } from "./server.ts";

const root = path.resolve(import.meta.dirname, "../..");
const bin = (name: string): string => path.join(root, "node_modules/.bin", name);

await runProgram(async () => {
  // A terminal sends SIGINT to tap too. We wait for tap to end, and tidy up.
  process.on("SIGINT", () => {});
  buildTap();
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

/**
 * tap generates its Test class from its plugins. It comes with the TypeScript plugin, which does not work with our
 * compiler and which we do not need, because Node strips types itself. Without the plugin tap generates the class anew
 * during its first run, but that run has already loaded the old class. So we generate it before the first run.
 */
function buildTap(): void {
  const built = path.join(root, "node_modules/@tapjs/test/test-built/dist/esm/index.js");
  if (existsSync(built) && !readFileSync(built, "utf8").includes("@tapjs/typescript")) return;
  console.log("preparing tap, once per install");
  const { status, stderr } = spawnSync(bin("tap"), ["build"], { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`tap build failed: ${stderr}`);
}

async function runTap(run: { prefix: string; template: string; server: Address }): Promise<number> {
  const results = path.join(tmpdir(), `${run.prefix}results.tap`);
  const args = [
    "run",
    "--disable-coverage",
    `--reporter=${process.stdout.isTTY ? "base" : "min"}`,
    `--output-file=${results}`,
    "--timeout=900",
    `--jobs=${Math.min(availableParallelism() + 1, 4)}`,
    // A folder means its test files.
    ...process.argv.slice(2).map((arg) => (arg.endsWith(".ts") || arg.startsWith("-") ? arg : `${arg}/**/*.test.ts`)),
  ];
  const tap = spawn(bin("tap"), args, {
    cwd: root,
    stdio: "inherit",
    env: {
      ...process.env,
      // Compiled modules are kept here: hundreds of processes load the same ones.
      NODE_COMPILE_CACHE: path.join(root, "node_modules/.cache/node"),
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
  console.log(summarize(existsSync(results) ? readFileSync(results, "utf8") : "", status));
  rmSync(results, { force: true });
  return status;
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

/**
 * What failed, as tap wrote it: a line per file and test, and each failed assertion with its diagnostics. tap's
 * reporter shows it too, but where the output is a pipe it has ended without a word about a failed test.
 */
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
