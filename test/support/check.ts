// `npm run check`: types, linter, house laws. All of them run, so that one round shows everything.
import { spawnSync } from "node:child_process";
import path from "node:path";
import { runProgram } from "../../src/common/program.ts";
import { findBreaches } from "./project-rules.ts";

const root = path.resolve(import.meta.dirname, "../..");

function runTool(name: string, args: string[]): boolean {
  console.log(`${name} ${args.join(" ")}`);
  return spawnSync(path.join(root, "node_modules/.bin", name), args, { cwd: root, stdio: "inherit" }).status === 0;
}

function checkLaws(): boolean {
  console.log("house laws");
  const breaches = findBreaches();
  for (const breach of breaches) console.error(breach);
  return breaches.length === 0;
}

await runProgram(async () => {
  const results = [
    runTool("tsc", ["--noEmit"]),
    runTool("oxlint", ["--deny-warnings"]),
    runTool("prettier", ["--check", "--log-level", "warn", "src", "test", "db"]),
    checkLaws(),
  ];
  console.log(results.every(Boolean) ? "all checks passed" : "some checks failed");
  process.exit(results.every(Boolean) ? 0 : 1);
});
