// npm run cells: cells and a router on this machine, and splits and kills under load.
import { randomInt } from "node:crypto";
import { cpSync, globSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { defineCommand, groupCommands } from "../../../src/command-line/command.ts";
import { runCommand } from "../../../src/command-line/run-command.ts";
import { formatUrl } from "../../../src/config/database-address.ts";
import { onStop, stopOnSignal } from "../../../src/common/program.ts";
import { createLog } from "../../../src/common/log.ts";
import { startCells } from "../../support/cells.ts";
import { stopLoggedPrograms } from "../../support/logged-program.ts";
import type { Teardown } from "../../support/scenario.ts";
import { makeTemporaryFolder, removeFolder } from "../../support/temporary-folder.ts";
import { quantile } from "../bench/measure.ts";
import * as killing from "./kill-rounds.ts";
import { runRound } from "./split-rounds.ts";

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
      const options = { coupons: flags.coupons, perSecond: flags.rate, killAfterMs };
      const round = await runAlone((t, folder) => runRound(t, folder, options));
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

const kill = defineCommand({
  name: "kill",
  about:
    "Kills one of two cells with kill -9 under load, starts it again after some seconds, and checks what the tenants " +
    "of both notice, three times in a round. Each round has new servers; the cells take turns. The load and the " +
    "checker are those of chaos.",
  flags: {
    rounds: { type: "count", value: "N", about: "how many times, with three kills each", default: 1 },
    rate: { type: "count", value: "N", about: "calls per second for each cell, roughly", default: 100 },
  },
  examples: ["--rounds 5"],
  exitCodes: "0 all held, 1 something was lost, wrong or too late, or failed",
  async run({ flags }) {
    onStop(() => endRound());
    const [quiet, dead, failures]: [number[], number[], string[]] = [[], [], []];
    for (let number = 1; number <= flags.rounds; number += 1) {
      const killed = number % 2 === 0 ? 1 : 2;
      const round = await runAlone(async (t, folder) => {
        const found = await killing.runRound(t, folder, { killed, perSecond: flags.rate });
        if (found.failures.length > 0) console.log(`logs: ${keepLogs(folder)}`);
        return found;
      });
      quiet.push(...round.quietMs);
      dead.push(...round.deadMs);
      console.log(
        `round ${number}: cell ${killed} killed ${round.kills} times, dead for ${seconds(round.deadForMs)} s; ` +
          `the other: ${round.errors} errors, p99 ${compareP99(round.quietMs, round.deadMs).text}; ` +
          `its own: ${round.unavailable} answers 503 meanwhile, slowest answer ${seconds(round.slowestMs)} s, ` +
          `served again ${seconds(round.servedMs)} s after its return; ${round.calls} calls, ` +
          (round.failures.length === 0 ? "both cells clean" : `${round.failures.length} failures`),
      );
      for (const failure of round.failures) console.log(`  FAILED: ${failure}`);
      failures.push(...round.failures);
    }
    const { ratio, text } = compareP99(quiet, dead);
    console.log(`p99 of the other cell in all rounds: ${text}`);
    if (ratio > mostRatio) console.log(`  FAILED: more than ${mostRatio} times, or other programs use this machine`);
    process.exit(failures.length > 0 || ratio > mostRatio ? 1 : 0);
  },
});

const mostRatio = 1.5;

function keepLogs(folder: string): string {
  const kept = mkdtempSync(path.join(tmpdir(), "coupon-kill-logs-"));
  for (const name of globSync("**/*.log", { cwd: folder }))
    cpSync(path.join(folder, name), path.join(kept, path.basename(name)));
  return kept;
}

function compareP99(before: number[], meanwhile: number[]): { ratio: number; text: string } {
  const [one, other] = [before, meanwhile].map((each) => quantile(Float64Array.from(each), 0.99)) as [number, number];
  const ratio = other / one;
  const counts = `${before.length} and ${meanwhile.length} calls`;
  return { ratio, text: `${one.toFixed(1)} to ${other.toFixed(1)} ms, ${ratio.toFixed(2)} times (${counts})` };
}

const seconds = (ms: number): string => (ms / 1_000).toFixed(1);

// Of the round that runs.
let endRound = async (): Promise<void> => {};

async function runAlone<T>(round: (t: Teardown, folder: string) => Promise<T>): Promise<T> {
  const ends: (() => unknown)[] = [];
  const folder = makeTemporaryFolder("coupon-cells-");
  const end = async (): Promise<void> => {
    for (const one of ends.splice(0).reverse()) await one();
    await stopLoggedPrograms();
    removeFolder(folder);
  };
  endRound = end;
  return round({ teardown: (one: () => unknown) => void ends.push(one) }, folder).finally(end);
}

await runCommand(
  "npm run cells",
  groupCommands({ name: "cells", about: "Cells behind a router.", commands: [up, split, kill] }),
);
