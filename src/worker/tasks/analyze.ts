// Keeps the statistics of growing tables fresh, one table for each step (db/code/jobs/analyze_grown_tables.sql).
import type { ReconnectingDatabase } from "../../database/reconnecting.ts";
import { repeatThrottled } from "../throttle.ts";

export function createAnalyzer({ database, stopping }: { database: ReconnectingDatabase; stopping: AbortSignal }) {
  const text = "select jobs.analyze_grown_tables() as done";
  return () => repeatThrottled(async () => (await database.rows<{ done: number }>(text))[0]!.done, stopping);
}
