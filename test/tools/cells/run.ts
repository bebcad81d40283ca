// npm run cells: cells and a router on this machine, and splits under load.
import { randomInt } from "node:crypto";
import { defineCommand, groupCommands } from "../../../src/command-line/command.ts";
import { runCommand } from "../../../src/command-line/run-command.ts";
import { formatUrl } from "../../../src/config/database-address.ts";
import { onStop, stopOnSignal } from "../../../src/common/program.ts";
import { createLog } from "../../../src/common/log.ts";
import { startCells } from "../../support/cells.ts";
import { stopLoggedPrograms } from "../../support/logged-program.ts";
import { makeTemporaryFolder, removeFolder } from "../../support/temporary-folder.ts";
import { runRound, type Round, type RoundOptions } from "./split-rounds.ts";

const up = defineCommand({
  name: "up",
  about: "Starts cells and a router, to try what docs/scale.md says. Their data goes when they stop.",
  words: { count: { about: "how many cells, at most 9; by default 2", isOptional: true } },
  examples: ["3"],
  refuse: ({ words: { count = "2" } }) => (/^[1-9]$/.test(count) ? null : "COUNT must be 1 to 9"),
  async run({ words: { count = "2" } }) {
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
  },
});

const split = defineCommand({
  name: "split",
  about:
    "Splits a cell under load, each round on new servers, and checks that no answer is lost and the feed is whole. " +
    "The splitter is killed -9 at a random moment and run again, unless --no-kill is given.",
  flags: {
    rounds: { type: "count", value: "N", about: "how many splits", default: 1 },
    coupons: { type: "count", value: "N", about: "coupons in the cell", default: 10_000 },
    rate: { type: "count", value: "N", about: "redemptions per second of leaving and of staying tenants", default: 40 },
    "no-kill": { type: "switch", about: "lets each split run to its end" },
  },
  examples: ["--rounds 30", "--coupons 1000000 --rate 100 --no-kill"],
  exitCodes: "0 all held, 1 something was lost or failed",
  async run({ flags }) {
    onStop(() => endRound());
    for (let number = 1; number <= flags.rounds; number += 1) {
      const killAfterMs = flags["no-kill"] ? null : randomInt(250, 900);
      const round = await runAlone({ coupons: flags.coupons, perSecond: flags.rate, killAfterMs });
      const { leaving, staying } = round.gapMs;
      console.log(
        `round ${number}: ${round.ok} ok, none lost or doubled; killed ${round.kills} times; ` +
          `split in ${seconds(round.splitMs)} s; longest time without an answer: leaving ${seconds(leaving)} s, ` +
          `staying ${seconds(staying)} s`,
      );
    }
    process.exit(0);
  },
});

const seconds = (ms: number): string => (ms / 1_000).toFixed(1);

// Of the round that runs.
let endRound = async (): Promise<void> => {};

async function runAlone(options: RoundOptions): Promise<Round> {
  const ends: (() => unknown)[] = [];
  const folder = makeTemporaryFolder("coupon-split-");
  const end = async (): Promise<void> => {
    for (const one of ends.splice(0).reverse()) await one();
    await stopLoggedPrograms();
    removeFolder(folder);
  };
  endRound = end;
  return runRound({ teardown: (one: () => unknown) => void ends.push(one) }, folder, options).finally(end);
}

await runCommand(
  "npm run cells",
  groupCommands({ name: "cells", about: "Cells behind a router.", commands: [up, split] }),
);
