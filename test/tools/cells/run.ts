// npm run cells -- up COUNT: cells and a router on this machine, to try what docs/scale.md says. Their data goes when
// they stop.
import { formatUrl } from "../../../src/config/database-address.ts";
import { ConfigError } from "../../../src/config/config.ts";
import { runProgram, stopOnSignal } from "../../../src/common/program.ts";
import { createLog } from "../../../src/common/log.ts";
import { startCells } from "../../support/cells.ts";

await runProgram(async () => {
  const [command, count = "2", ...rest] = process.argv.slice(2);
  if (command !== "up" || !/^[1-9]$/.test(count) || rest.length > 0)
    throw new ConfigError("usage: npm run cells -- up COUNT, with at most 9 cells");
  const running = stopOnSignal(createLog("warn"));
  const { router, cells, masterKeyText, stop } = await startCells(Number(count), {});
  running.push({ stop });
  console.log(
    [
      `export COUPON_MASTER_KEY=${masterKeyText}`,
      ...cells.map(({ address }, index) => `export CELL_${index + 1}='${formatUrl(address)}'`),
      `export ROUTER='${formatUrl(router)}'`,
      "",
      "# A tenant in a cell:   DATABASE_URL=$CELL_1 npm run -s apply FILE",
      "# Calls of all cells:   DATABASE_URL=$ROUTER npm run serve",
      "# Work of a cell:       DATABASE_URL=$CELL_1 npm run work",
      "# The router:           DATABASE_URL=$ROUTER bin/coupon router status",
      "# Ctrl-C stops everything and removes its data.",
    ].join("\n"),
  );
});
