// `npm run sabotage`: does the suite see it when a guard is missing? For each line of table.ts the checkout is copied, the one change
// made there, and `npm test` run in the copy on the files that must see it. `npm run sabotage -- lease tag` runs the lines whose names
// contain one of the words.
//
// Red counts only when the build is otherwise sound: the change loads (the runner migrates a database with it), a file about something
// else stays green, and what failed is an assertion. First of all the files are run on an unchanged copy, and must be green.
import { spawn } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { runProgram } from "../../src/common/program.ts";
import { change, check, copyCheckout, root, type Edit } from "../support/copy.ts";
import { readResults } from "./results.ts";
import { sabotages, type Sabotage } from "./table.ts";

// Mints, releases, exports and redeems: if this is green, the service runs.
const smoke = "test/commands/codes.test.ts";
// A guard that is missing may leave a test waiting for ever.
const longestMs = 600_000;

// Of tests that run beside each other tap shows no assertions: here they run one after the other.
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
  // The group: npm, the runner and tap. The server ends with the runner.
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

// What was red, or why the run says nothing.
async function judge({ edits, tests }: Sabotage): Promise<{ isFound: boolean; text: string }> {
  const output = await withCopy(edits, (folder) => test(folder, [smoke, ...tests]));
  const results = readResults(output);
  if (results.files.get(smoke) !== true)
    return { isFound: false, text: `DOES NOT RUN: ${output.trimEnd().split("\n").slice(-12).join("\n")}` };
  const shown =
    results.tests.length > 3 ? [...results.tests.slice(0, 3), `and ${results.tests.length - 3} more`] : results.tests;
  const unfinished = tests.filter((file) => !results.files.has(file));
  if (unfinished.length > 0) return { isFound: false, text: `DID NOT END: ${unfinished.join(", ")}` };
  if (results.assertions.length === 0)
    return { isFound: false, text: ["STAYED GREEN", ...shown].join(", but for exceptions: ") };
  return { isFound: true, text: shown.join("; ") };
}

await runProgram(async () => {
  const words = process.argv.slice(2);
  const chosen = sabotages.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
  if (chosen.length === 0) throw new Error("no sabotage has such a name");
  const files = [...new Set([smoke, ...chosen.flatMap(({ tests }) => tests)])];
  // Texts first: the rest takes minutes.
  for (const { edits } of sabotages) check(root, edits);
  const control = readResults(await withCopy([], (folder) => test(folder, files)));
  const red = files.filter((file) => control.files.get(file) !== true);
  if (red.length > 0) throw new Error(`red without any sabotage: ${[...red, ...control.tests].join("; ")}`);
  console.log(`green without a sabotage: ${files.length} files`);

  let missed = 0;
  for (const sabotage of chosen) {
    const { isFound, text } = await judge(sabotage);
    if (!isFound) missed += 1;
    console.log(
      `| ${sabotage.name}${sabotage.behind === undefined ? "" : ` (behind it: ${sabotage.behind})`} | ${text} |`,
    );
  }
  console.log(`${chosen.length} sabotages, ${chosen.length - missed} found, ${missed} missed`);
  process.exit(missed === 0 ? 0 : 1);
});
