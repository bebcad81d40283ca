// `npm test`: one server, one migrated template database, then tap on all test files or those named.
// A runner of our own, because tap alone would fail on a fresh clone (see buildTap).
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import path from "node:path";
import type { Address } from "../../src/common/database-address.ts";
import { runProgram } from "../../src/common/program.ts";
import { dropDatabases, makeTemplate } from "./database.ts";
import { startServer } from "./server.ts";

const root = path.resolve(import.meta.dirname, "../..");
const bin = (name: string): string => path.join(root, "node_modules/.bin", name);

await runProgram(async () => {
  // A terminal sends it to tap as well: we only wait for its end, and tidy.
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
 * tap generates its Test class from its plugins and is delivered with the TypeScript plugin, which
 * does not work with our compiler and which we need not, as node reads types itself. Without that
 * plugin tap generates anew in its first run, but has started that run with the old class: so
 * generate before.
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
    "--timeout=180",
    `--jobs=${Math.min(availableParallelism(), 4)}`,
    // A folder means the test files in it.
    ...process.argv.slice(2).map((arg) => (arg.endsWith(".ts") || arg.startsWith("-") ? arg : `${arg}/**/*.test.ts`)),
  ];
  const tap = spawn(bin("tap"), args, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, COUPON_TEST_RUN: JSON.stringify(run) },
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

/** A test is a sentence: each t.test, at whatever depth, told from an assertion by its time. */
function summarize(results: string, status: number): string {
  const lines = results.split("\n");
  const count = (pattern: RegExp): number => lines.filter((line) => pattern.test(line)).length;
  const passed = count(/^ +ok \d+ - .* # time=/);
  // A file that fails without a failed test has crashed or timed out.
  const failed = Math.max(count(/^ +not ok \d+ - .* # time=/), count(/^not ok /), status === 0 ? 0 : 1);
  const skipped = count(/^ +ok \d+ - .* # SKIP/);
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}
