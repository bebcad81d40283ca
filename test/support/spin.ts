// Searches all states of a model in Promela, with Debian's spin and gcc.
import { execFile, spawnSync } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";

const isMissing = ["spin", "gcc"].find((name) => spawnSync(name, ["--version"]).error !== undefined);
/** Why nothing can be searched here, else false. */
export const skipWithoutSpin = isMissing === undefined ? false : `${isMissing} is not installed`;
const run = promisify(execFile);

/**
 * Returns how many errors a search of all states finds, with `name` defined. It ends at the first one, so where there
 * is one, compiling with optimization would take longer than it saves.
 */
export async function searchModel(
  model: string,
  { folder, name, optimize }: { folder: string; name: string; optimize: "-O0" | "-O2" },
): Promise<number> {
  const cwd = { cwd: folder, maxBuffer: 2 ** 24 };
  await run("spin", [`-D${name}`, "-a", model], cwd);
  // COLLAPSE takes half the memory.
  await run("gcc", ["-w", optimize, "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"], cwd);
  const { stdout } = await run(path.join(folder, "pan"), ["-m200000"], cwd);
  const errors = Number(/errors: (\d+)/.exec(stdout)![1]);
  // It ends early at an error, and where it lacks depth or memory.
  if (errors === 0 && /Search not completed|too small/.test(stdout)) throw new Error(stdout);
  return errors;
}
