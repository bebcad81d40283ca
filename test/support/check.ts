// `npm run check`: types, linter, format, project rules. All of them run, so that one round shows everything.
import { spawnSync } from "node:child_process";
import path from "node:path";
import { defineCommand } from "../../src/common/command.ts";
import { runCommand } from "../../src/common/run-command.ts";
import { findBreaches } from "./project-rules/find-breaches.ts";

const root = path.resolve(import.meta.dirname, "../..");

function runTool(name: string, args: string[]): boolean {
  console.log(`${name} ${args.join(" ")}`);
  return spawnSync(path.join(root, "node_modules/.bin", name), args, { cwd: root, stdio: "inherit" }).status === 0;
}

function checkProjectRules(): boolean {
  console.log("project rules");
  const breaches = Object.values(findBreaches()).flat();
  for (const { path: name, line, message } of breaches) console.error(`${name}:${line}: ${message}`);
  return breaches.length === 0;
}

const command = defineCommand({
  name: "check",
  about: "Checks types, style, format and the project rules, in seconds.",
  examples: [""],
  exitCodes: "0 all checks passed, 1 some failed",
  async run() {
    const results = [
      runTool("tsc", ["--noEmit"]),
      runTool("oxlint", ["--deny-warnings"]),
      runTool("prettier", [
        "--check",
        "--cache",
        "--log-level",
        "warn",
        "src",
        "test",
        "db",
        "clients",
        "docs",
        "ley.config.js",
      ]),
      checkProjectRules(),
    ];
    console.log(results.every(Boolean) ? "all checks passed" : "some checks failed");
    process.exit(results.every(Boolean) ? 0 : 1);
  },
});

await runCommand("npm run check", command);
