// Checks the written model of a split in every order, and that each of its safeguards is needed. Without Debian's spin
// and gcc, it is skipped.
import { execFile, spawnSync } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import t from "tap";
import { useTemporaryFolder } from "../../../support/temporary-folder.ts";

const model = path.join(import.meta.dirname, "split.pml");
const isMissing = ["spin", "gcc"].find((name) => spawnSync(name, ["--version"]).error !== undefined);
const skip = isMissing === undefined ? false : `${isMissing} is not installed`;
const run = promisify(execFile);

/**
 * Returns how many errors a search of all states finds. It ends at the first one, so where there is one, compiling with
 * optimization would take longer than it saves.
 */
async function search(folder: string, name: string, optimize: "-O0" | "-O2"): Promise<number> {
  const cwd = { cwd: folder, maxBuffer: 2 ** 24 };
  await run("spin", [`-D${name}`, "-a", model], cwd);
  await run("gcc", ["-w", optimize, "-DSAFETY", "-o", "pan", "pan.c"], cwd);
  const { stdout } = await run(path.join(folder, "pan"), ["-m200000"], cwd);
  const errors = Number(/errors: (\d+)/.exec(stdout)![1]);
  // It ends early at an error, and where it lacks depth or memory.
  if (errors === 0 && /Search not completed|too small/.test(stdout)) throw new Error(stdout);
  return errors;
}

t.test("A split has one home at any moment and loses no accepted call, in any order", { skip }, async (t) => {
  t.equal(await search(useTemporaryFolder(t, "coupon-split-"), "COMPLETE", "-O2"), 0);
});

for (const safeguard of ["NO_DRAIN", "NO_MARK", "NO_ATTEMPT", "NO_LOCAL", "NO_ORDER"])
  t.test(`With ${safeguard} it does not`, { skip }, async (t) => {
    t.equal(await search(useTemporaryFolder(t, "coupon-split-"), safeguard, "-O0"), 1);
  });
