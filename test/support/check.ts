// `npm run check`: types, linter, unused exports, format, project rules. All of them run, so that one round shows
// everything.
import { spawnSync } from "node:child_process";
import path from "node:path";
import { defineCommand } from "../../src/command-line/command.ts";
import { runCommand } from "../../src/command-line/run-command.ts";
import { root } from "./copy.ts";
import { findBreaches, readProject } from "./project-rules.ts";

function runTool(name: string, args: string[]): boolean {
  console.log(`${name} ${args.join(" ")}`);
  return spawnSync(path.join(root, "node_modules/.bin", name), args, { cwd: root, stdio: "inherit" }).status === 0;
}

function checkProjectRules(): boolean {
  console.log("project rules");
  const breaches = findBreaches(readProject());
  for (const breach of breaches) console.error(breach);
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
      runTool("knip", ["--no-progress"]),
      runTool("prettier", "--check --cache --log-level warn src test db clients docs ley.config.js".split(" ")),
      checkProjectRules(),
    ];
    console.log(results.every(Boolean) ? "all checks passed" : "some checks failed");
    process.exit(results.every(Boolean) ? 0 : 1);
  },
});

await runCommand("npm run check", command);
