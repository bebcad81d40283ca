// footprint: how much of a core `npm start` uses without load, including its database, and how much memory it holds
// under load while it mints. It gets a separate DATA_DIR.
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findEmbedded } from "../../src/embedded/find-address.ts";
import { dataFolder, findHome } from "../../src/embedded/data-directory.ts";
import { loadMasterKeys } from "../../src/embedded/load-keys.ts";
import { findPostmaster } from "../../src/embedded/postmaster.ts";
import { createHttp } from "./contenders.ts";
import { median, type Report } from "./results.ts";
import { cpuTimes, postgresCpu, residentMiB } from "./measure.ts";
import { startLoggedProgram } from "../support/logged-program.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { joinEnvironment } from "./environment.ts";

// After a minute without requests the service polls less often.
const settleSeconds = 65;
const sliceSeconds = 10;
const poolSize = 100_000;
const noClock = { begin: async () => {}, end: async () => {} };

export async function benchFootprint(
  { folder }: Server,
  { quietSeconds, loadSeconds, seconds }: Settings,
): Promise<Report> {
  const dataDir = path.join(folder, "footprint");
  const program = await startLoggedProgram("start", folder, { DATA_DIR: dataDir, PORT: "0" });
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

  const environment = await joinEnvironment({
    folder,
    postmasterPid,
    servePid: program.pid,
    address: findEmbedded(dataDir)!,
    keys: loadMasterKeys({ masterKeyText: null, address: null, dataDir }),
    url: program.url,
    // `npm start` includes a worker.
    startWorker: async () => ({ pid: null, stop: async () => {} }),
    end: () => program.stop(),
  });
  const memory: number[] = [];
  const sampling = setInterval(() => memory.push(residentMiB(program.pid)), 1_000);
  const pool = await environment.makePool(poolSize);
  const load = createHttp(environment, pool);
  for (let left = loadSeconds; left > 0; left -= sliceSeconds)
    await (
      await load.prepare(Math.min(left, sliceSeconds))
    )(noClock);
  load.end();
  clearInterval(sampling);
  await environment.close();

  const quarter = Math.floor(memory.length / 4);
  return {
    results: [
      {
        name: "idle: CPU of npm start, with its database",
        value: shares[0] + shares[1],
        unit: "% of a core",
        aim: { atMost: 3 },
      },
      { name: "idle: CPU of the service alone", value: shares[0], unit: "% of a core" },
      { name: "idle: resident memory", value: idleMiB, unit: "MiB" },
      { name: "load: highest resident memory", value: Math.max(...memory), unit: "MiB", aim: { atMost: 250 } },
      { name: "load: median of the third quarter", value: median(memory.slice(2 * quarter, 3 * quarter)), unit: "MiB" },
      { name: "load: median of the last quarter", value: median(memory.slice(3 * quarter)), unit: "MiB" },
    ],
    details: { memory },
  };
}
