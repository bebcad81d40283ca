// footprint: what `npm start` takes of a core without load, its database included; and how much memory it holds under load, with
// minting beside. It runs in a DATA_DIR of its own.
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findEmbedded } from "../../src/embedded/find-address.ts";
import { dataFolder, findHome } from "../../src/embedded/data-directory.ts";
import { loadMasterKeys } from "../../src/crypto/keys.ts";
import { findPostmaster } from "../../src/embedded/postmaster.ts";
import { createHttp } from "./contenders.ts";
import { median, type Report } from "./figures.ts";
import { cpuTimes, postgresCpu, residentMiB } from "./measure.ts";
import { startProgram } from "./programs.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { joinStage } from "./environment.ts";

// The service asks less often once nobody has used it for a minute.
const settleSeconds = 65;
const sliceSeconds = 10;
const deckSize = 100_000;
const noClock = { begin: async () => {}, end: async () => {} };

export async function benchFootprint(
  { folder }: Server,
  { quietSeconds, loadSeconds, seconds }: Settings,
): Promise<Report> {
  const dataDir = path.join(folder, "footprint");
  const program = await startProgram("start", folder, { DATA_DIR: dataDir, PORT: "0" });
  const home = findHome(dataDir)!;
  const postmasterPid = findPostmaster(dataFolder(home))!.pid;
  const cpu = () => [cpuTimes(program.pid)!.own, postgresCpu(postmasterPid)] as const;

  await sleep(Math.min(settleSeconds, quietSeconds + seconds) * 1_000);
  const [before, since] = [cpu(), performance.now()];
  await sleep(quietSeconds * 1_000);
  const shares = cpu().map(
    (spent, index) => ((spent - before[index]!) / ((performance.now() - since) / 1_000)) * 100,
  ) as [number, number];
  const idleMiB = residentMiB(program.pid);

  const stage = await joinStage({
    folder,
    postmasterPid,
    servePid: program.pid,
    address: findEmbedded(dataDir)!,
    keys: loadMasterKeys({ masterKeyText: null, address: null, dataDir }),
    url: program.url,
    // It works by itself.
    startWorker: async () => ({ stop: async () => {} }),
    end: () => program.stop(),
  });
  const memory: number[] = [];
  const sampling = setInterval(() => memory.push(residentMiB(program.pid)), 1_000);
  const deck = await stage.makeDeck(deckSize);
  const load = createHttp(stage, deck, "redeem");
  for (let left = loadSeconds; left > 0; left -= sliceSeconds)
    await (
      await load.prepare(Math.min(left, sliceSeconds))
    )(noClock);
  load.end();
  clearInterval(sampling);
  await stage.close();

  const quarter = Math.floor(memory.length / 4);
  return {
    figures: [
      {
        name: "idle: CPU of npm start, with its database",
        value: shares[0] + shares[1],
        unit: "% of a core",
        aim: { atMost: 3 },
      },
      { name: "idle: of it the service", value: shares[0], unit: "% of a core" },
      { name: "idle: resident memory", value: idleMiB, unit: "MiB" },
      { name: "load: resident memory, most", value: Math.max(...memory), unit: "MiB", aim: { atMost: 250 } },
      { name: "load: median of the third quarter", value: median(memory.slice(2 * quarter, 3 * quarter)), unit: "MiB" },
      { name: "load: median of the last quarter", value: median(memory.slice(3 * quarter)), unit: "MiB" },
    ],
    details: { memory },
  };
}
