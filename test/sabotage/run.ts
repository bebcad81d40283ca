// `npm run sabotage` tests whether the tests notice a missing guard. For each sabotage of table.ts it copies the
// checkout, removes the guard there, and runs the test files that must fail. `npm run sabotage -- lease tag` runs the
// sabotages whose names contain one of the words.
//
// A failure counts only when the copy works otherwise: the change loads (the test runner migrates a database with it),
// an unrelated file passes, and the failure is an assertion. Before the first sabotage all files must pass in an
// unchanged copy.
import { spawn } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { defineCommand } from "../../src/common/command.ts";
import { runCommand } from "../../src/common/run-command.ts";
import { change, check, copyCheckout, root, type Edit } from "../support/copy.ts";
import { readResults } from "./results.ts";
import type { Sabotage } from "./sabotage.ts";
import { sabotages } from "./table.ts";

// Mints, releases, exports and redeems. If this file passes, the service works.
const smoke = "test/commands/codes.test.ts";
// Without a guard a test may wait forever.
const longestMs = 600_000;

// tap does not show the assertions of parallel tests, so the tests run one after the other here.
function showAssertions(folder: string, files: string[]): void {
  for (const file of files.map((name) => path.join(folder, name)))
    writeFileSync(
      file,
      readFileSync(file, "utf8")
        .replace(/^t\.jobs = \d+;$/m, "")
        .replace("{ buffered: true }", "{}"),
    );
}

async function test(folder: string, files: string[]): Promise<string> {
  showAssertions(folder, files);
  const child = spawn("npm", ["test", "--", ...files, "--reporter=tap"], { cwd: folder, detached: true });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      output += chunk;
    });
  // Kills the process group: npm, the runner and tap. The server ends with the runner.
  const timer = setTimeout(() => process.kill(-child.pid!, "SIGTERM"), longestMs);
  await new Promise((resolve) => child.on("close", resolve));
  clearTimeout(timer);
  return output;
}

async function withCopy<T>(edits: Edit[], act: (folder: string) => Promise<T>): Promise<T> {
  const folder = copyCheckout();
  try {
    change(folder, edits);
    return await act(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// Returns the failed tests, or why the run proves nothing.
async function judge({ edits, tests }: Sabotage): Promise<{ isNoticed: boolean; text: string }> {
  const output = await withCopy(edits, (folder) => test(folder, [smoke, ...tests]));
  const results = readResults(output);
  if (results.files.get(smoke) !== true)
    return { isNoticed: false, text: `DOES NOT WORK: ${output.trimEnd().split("\n").slice(-12).join("\n")}` };
  const shown =
    results.tests.length > 3 ? [...results.tests.slice(0, 3), `and ${results.tests.length - 3} more`] : results.tests;
  const unfinished = tests.filter((file) => !results.files.has(file));
  if (unfinished.length > 0) return { isNoticed: false, text: `DID NOT COMPLETE: ${unfinished.join(", ")}` };
  if (results.assertions.length === 0)
    return { isNoticed: false, text: ["NOT NOTICED", ...shown].join(", apart from exceptions: ") };
  return { isNoticed: true, text: shown.join("; ") };
}

async function sabotage(words: string[]): Promise<void> {
  const chosen = sabotages.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
  if (chosen.length === 0) throw new Error("no sabotage has a name with these words");
  const files = [...new Set([smoke, ...chosen.flatMap(({ tests }) => tests)])];
  // Checks every edit first, because the rest takes minutes.
  for (const { edits } of sabotages) check(root, edits);
  const control = readResults(await withCopy([], (folder) => test(folder, files)));
  const failing = files.filter((file) => control.files.get(file) !== true);
  if (failing.length > 0)
    throw new Error(`these fail without a sabotage: ${[...failing, ...control.tests].join("; ")}`);
  console.log(`${files.length} files pass without a sabotage`);

  let missed = 0;
  for (const each of chosen) {
    const { isNoticed, text } = await judge(each);
    if (!isNoticed) missed += 1;
    console.log(`| ${each.name}${each.behind === undefined ? "" : ` (next guard: ${each.behind})`} | ${text} |`);
  }
  console.log(`${chosen.length} sabotages, ${chosen.length - missed} noticed, ${missed} missed`);
  process.exit(missed === 0 ? 0 : 1);
}

const command = defineCommand({
  name: "sabotage",
  about:
    "Removes one guard at a time in a copy of the checkout, and expects the named tests to fail. All of them take " +
    "an hour.",
  words: {
    word: { about: "runs the guards whose names contain one of the words", isOptional: true, isRepeated: true },
  },
  examples: ["lease tag"],
  exitCodes: "0 every removal was noticed, 1 one was not, or failed",
  run: ({ words }) => sabotage(words.word),
});

await runCommand("npm run sabotage", command);
