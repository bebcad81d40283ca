// Cells behind a router, each a server of its own, for the tool `npm run cells` and for tests.
import { randomBytes } from "node:crypto";
import { addCell } from "../../src/commands/router-database.ts";
import type { Address } from "../../src/config/database-address.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { findRouterBinaries, howToInstall, startRouterServer } from "./router.ts";
import { quickSettings, startTemporaryServer, type TemporaryServer } from "./temporary-server.ts";

export type Cells = {
  /** What DATABASE_URL of `serve` names. */
  router: Address;
  /** In the order of their numbers, from 1 on. */
  cells: TemporaryServer[];
  masterKeyText: string;
  stop(): Promise<void>;
};

export async function startCells(count: number, settings: Record<string, string> = quickSettings): Promise<Cells> {
  const binaries = findRouterBinaries();
  if (binaries === undefined) throw new Error(howToInstall);
  const router = await startRouterServer(binaries);
  const cells: TemporaryServer[] = [];
  for (let number = 1; number <= count; number += 1) {
    const cell = await startTemporaryServer(`coupon-cell${number}-`, { ...settings, "coupon.cell": String(number) });
    cells.push(cell);
    await migrate(cell.address);
    await addCell(router.address, number, { user: "postgres", ...cell.address });
  }
  return {
    router: router.address,
    cells,
    masterKeyText: randomBytes(32).toString("base64"),
    async stop() {
      await router.stop();
      await Promise.all(cells.map((cell) => cell.stop()));
    },
  };
}
