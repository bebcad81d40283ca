// The worker's analyze without a worker: as many steps as it takes.
import type { Database } from "../../src/database/types.ts";
import { waitUntil } from "./wait-until.ts";

/** Returns how many tables were analyzed. */
export async function analyzeGrownTables(database: Pick<Database, "rows">): Promise<number> {
  let count = 0;
  const isOver = async () => {
    const [step] = await database.rows<{ done: number }>("select jobs.analyze_grown_tables() as done");
    count += step!.done;
    return step!.done === 0;
  };
  await waitUntil("nothing to be left to analyze", isOver, { everyMs: 0 });
  return count;
}
