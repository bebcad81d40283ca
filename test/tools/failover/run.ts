// npm run failover kills the primary under load, promotes its synchronous standby, and checks that no answer is lost.
import path from "node:path";
import { defineCommand } from "../../../src/command-line/command.ts";
import { onStop } from "../../../src/common/program.ts";
import { runCommand } from "../../../src/command-line/run-command.ts";
import { stopLoggedPrograms } from "../../support/logged-program.ts";
import { makeTemporaryFolder, removeFolder } from "../../support/temporary-folder.ts";
import { startCluster } from "./cluster.ts";
import { startPatroni } from "./patroni.ts";
import { runRounds } from "./rounds.ts";

type Options = { rounds: number; clients: number; patroni: boolean; router: boolean };

async function runFailovers({ rounds, clients, patroni, router }: Options): Promise<void> {
  const ends: (() => unknown)[] = [];
  const folder = makeTemporaryFolder("coupon-failover-");
  const end = async (): Promise<void> => {
    for (const one of ends.splice(0).reverse()) await one();
    await stopLoggedPrograms();
  };
  onStop(end);
  const t = { teardown: (one: () => unknown) => void ends.push(one) };
  const print = (line: string) => console.log(line);
  try {
    const cluster = await (patroni ? startPatroni : startCluster)(t, folder);
    const totals = await runRounds(t, cluster, folder, { rounds, clients, print, hasRouter: router });
    const { answers, ok, lost, servedMs, failures } = totals;
    const sorted = servedMs.map((ms) => ms / 1_000).sort((a, b) => a - b);
    const [median, most] = [sorted[Math.floor(sorted.length / 2)]!, sorted.at(-1)!];
    print(
      `${rounds} rounds, ${answers} answers, ${ok} redemptions ok, lost ok ${lost}; served again after ` +
        `${median.toFixed(1)} s (median), ${most.toFixed(1)} s at most`,
    );
    if (failures.length > 0) print(`${failures.length} failures; logs: ${path.resolve(folder)}`);
    await end();
    if (failures.length === 0) removeFolder(folder);
    process.exit(failures.length === 0 ? 0 : 1);
  } catch (error) {
    print(`logs: ${path.resolve(folder)}`);
    await end();
    throw error;
  }
}

const command = defineCommand({
  name: "failover",
  about:
    "Kills the primary under load, promotes its synchronous standby, and checks that every redemption that was " +
    "answered ok is there. In two of three rounds, commits wait for a standby that is cut off, and their waits are " +
    "cancelled before the kill. serve and work run through all rounds.",
  flags: {
    rounds: { type: "count", value: "N", about: "number of failovers, one after the other", default: 3 },
    clients: { type: "count", value: "N", about: "each sends up to 16 redemptions per second", default: 12 },
    router: { type: "switch", about: "serve calls the cluster through a router, which needs PL/Proxy" },
    patroni: { type: "switch", about: "two members of Patroni with etcd, which must be installed" },
  },
  examples: ["--rounds 30", "--patroni"],
  exitCodes: "0 all held, 1 something was lost or too late, or failed",
  run: ({ flags }) => runFailovers(flags),
});

await runCommand("npm run failover", command);
