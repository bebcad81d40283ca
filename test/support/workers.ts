// Workers as programs.
import type { ChildProcess } from "node:child_process";
import type { Test } from "tap";
import { environmentOf, launch } from "./program.ts";
import type { Scenario } from "./scenario.ts";
import { waitUntil } from "./wait-until.ts";

export type Worker = { number: number; program: ChildProcess };

// Starts a worker and learns its number: each worker takes the next one.
export async function startWorker(
  t: Test,
  service: Pick<Scenario, "address" | "masterKeyText" | "owner">,
  address = service.address,
): Promise<Worker> {
  const drawn = async () => {
    const [row] = await service.owner.rows<{ count: number }>(
      "select (case when is_called then last_value else 0 end)::int as count from core.worker_number",
    );
    return row!.count;
  };
  const before = await drawn();
  const { program } = launch(t, "work", { env: environmentOf({ ...service, address }) });
  await waitUntil("a worker to start", async () => (await drawn()) > before);
  return { number: before + 1, program };
}
