// `npm run sabotage` tests whether the tests notice a missing guard. For each sabotage of table.ts it removes the guard
// in a copy of the checkout, and runs the test files that must fail. `npm run sabotage -- lease tag` runs the sabotages
// whose names contain one of the words.
//
// A failure counts only when the copy works otherwise: the change loads, an unrelated file passes, and the failure is
// an assertion. Before the first sabotage all files must pass in an unchanged copy.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { defineCommand } from "../../src/common/command.ts";
import { runCommand } from "../../src/common/run-command.ts";
import { type Bench, share, withBenches } from "../support/bench.ts";
import { applyEdits, root } from "../support/copy.ts";
import { type Place, runFile } from "../support/run-file.ts";
import { type Failures, readFailures } from "./results.ts";
import type { Sabotage } from "./sabotage.ts";
import { sabotages } from "./table.ts";

// If this file passes, the service works.
const smoke = "test/sabotage/smoke.test.ts";
// Without a guard a test may wait forever.
const longestMs = 300_000;
// tap reports a test that takes longer as failed.
const env = { TAP_TIMEOUT: "180" };

interface Judgement {
  isNoticed: boolean;
  text: string;
}

/** tap does not show the assertions of parallel tests, so the tests of a file run one after the other here. */
function showAssertions({ folder }: Place, files: string[]): void {
  for (const file of files.map((name) => path.join(folder, name)))
    writeFileSync(
      file,
      readFileSync(file, "utf8")
        .replace(/^t\.jobs = \d+;$/m, "")
        .replace("{ buffered: true }", "{}"),
    );
}

async function judge(
  bench: Bench,
  { edits, tests, behind, mayThrow = behind !== undefined }: Sabotage,
): Promise<Judgement> {
  return bench.withTexts(applyEdits(bench.place.folder, edits), async (place) => {
    if (place === null) return { isNoticed: false, text: "DOES NOT LOAD" };
    const judgement = await tryTests(place, tests, mayThrow);
    if (!judgement.isNoticed) return judgement;
    const { verdict, output } = await runFile(place, smoke, { longestMs, env });
    if (verdict === "green") return judgement;
    return { isNoticed: false, text: `DOES NOT WORK: ${output.trimEnd().split("\n").slice(-12).join("\n")}` };
  });
}

/** Ends with the first file in which an assertion fails, or any test if exceptions count too. */
async function tryTests(place: Place, tests: string[], mayThrow: boolean): Promise<Judgement> {
  const exceptions: string[] = [];
  for (const file of tests) {
    const { verdict, output } = await runFile(place, file, { longestMs, env });
    if (verdict === "timeout") return { isNoticed: false, text: `DID NOT COMPLETE: ${file}` };
    const failures = readFailures(output);
    const isNoticed = failures.assertions.length > 0 || (mayThrow && failures.tests.length > 0);
    if (verdict === "red" && isNoticed) return { isNoticed: true, text: describe(failures) };
    exceptions.push(...failures.tests);
  }
  const apart = exceptions.length === 0 ? "" : `, apart from exceptions: ${exceptions.join("; ")}`;
  return { isNoticed: false, text: `NOT NOTICED${apart}` };
}

const describe = ({ tests }: Failures): string =>
  (tests.length > 3 ? [...tests.slice(0, 3), `and ${tests.length - 3} more`] : tests).join("; ");

/** A file that is red by chance is tried again, and named: chance must not end so long a run. */
async function refuseRedFiles(benches: Bench[], files: string[]): Promise<void> {
  const red: string[] = [];
  const isGreen = async (place: Place, file: string): Promise<boolean> => {
    const { verdict, output } = await runFile(place, file, { longestMs, env });
    if (verdict !== "green") console.log(`${verdict} without a sabotage: ${file}\n${showFailure(output)}`);
    return verdict === "green";
  };
  await share(benches, files, async ({ place }, file) => {
    if (!(await isGreen(place, file)) && !(await isGreen(place, file))) red.push(file);
  });
  if (red.length > 0) throw new Error(`these fail without a sabotage: ${red.join(", ")}`);
  console.log(`${files.length} files pass without a sabotage`);
}

/** The lines after the first failed assertion. */
const showFailure = (output: string): string => /^ *not ok .*(\n.*){0,30}/m.exec(output)?.[0] ?? output.slice(-2_000);

async function sabotage(words: string[]): Promise<void> {
  const chosen = sabotages.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
  if (chosen.length === 0) throw new Error("no sabotage has a name with these words");
  const files = [...new Set([smoke, ...chosen.flatMap(({ tests }) => tests)])];
  // Checks every edit first, because the rest takes minutes.
  for (const { edits } of sabotages) applyEdits(root, edits);
  let missed = 0;
  await withBenches("coupon-sabotage-", async (benches) => {
    for (const { place } of benches) showAssertions(place, files);
    await refuseRedFiles(benches, files);
    await share(benches, chosen, async (bench, each) => {
      const { isNoticed, text } = await judge(bench, each);
      if (!isNoticed) missed += 1;
      console.log(`| ${each.name}${each.behind === undefined ? "" : ` (next guard: ${each.behind})`} | ${text} |`);
    });
  });
  console.log(`${chosen.length} sabotages, ${chosen.length - missed} noticed, ${missed} missed`);
  process.exit(missed === 0 ? 0 : 1);
}

const command = defineCommand({
  name: "sabotage",
  about:
    "Removes one guard at a time in a copy of the checkout, and expects the named tests to fail. All guards " +
    "together take an hour and a half.",
  words: {
    word: { about: "runs the guards whose names contain one of the words", isOptional: true, isRepeated: true },
  },
  examples: ["lease tag"],
  exitCodes: "0 every removal was noticed, 1 one was not, or failed",
  run: ({ words }) => sabotage(words.word),
});

await runCommand("npm run sabotage", command);
