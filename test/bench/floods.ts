// floods: what well-behaved clients notice of clients that disconnect early, send nothing, send slowly or read
// nothing. Measures redemptions at a fixed rate, alone and during each flood.
import { startLoader } from "./contenders.ts";
import { joined, quantile, type Report } from "./results.ts";
import { loadAt } from "./latency.ts";
import { residentMiB } from "./measure.ts";
import { cutAnswers, cutBodies, hold, pipeline, type Held, type Target } from "../support/floods.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openEnvironment, settle } from "./environment.ts";
import { accessKey, secret } from "./tenant.ts";

const perSecond = 200;
const poolSize = 50_000;

export async function benchFloods(server: Server, { seconds, rounds }: Settings): Promise<Report> {
  const environment = await openEnvironment(server);
  const pool = await environment.makePool(poolSize);
  const worker = await environment.startWorker();
  await settle(environment);
  const loader = startLoader();
  const target: Target = { url: environment.url, accessKey, secret };
  const memory = () => residentMiB(environment.measured.servePid!);
  // Spreads 1,000 clients over the measured time.
  const spread = (flood: (target: Target, count: number) => Promise<void>) => async (): Promise<Held> => {
    const coming = setInterval(() => void flood(target, Math.ceil(100 / seconds)), 100);
    return { open: () => 0, letGo: () => clearInterval(coming) };
  };
  const noFlood = async (): Promise<Held> => ({ open: () => 0, letGo: () => {} });
  // A client that asks for an answer costs the service time in any case. The difference to clients that stay is the
  // cost of leaving.
  const staying = spread((to, count) => cutAnswers(to, count, true));
  const floods: [name: string, flood: () => Promise<Held>, other: () => Promise<Held>][] = [
    ["1,000 leave during the request body", spread(cutBodies), noFlood],
    ["1,000 leave during the answer", spread(cutAnswers), staying],
    ["2,000 send nothing", () => hold(target, 2_000, false), noFlood],
    ["1,000 send their headers slowly", () => hold(target, 1_000, true), noFlood],
    ["1,000 pipeline and read nothing", () => pipeline(target, 1_000), noFlood],
  ];

  async function measure(start: () => Promise<Held>): Promise<Float64Array> {
    const flood = await start();
    const latencies = await loadAt(environment, pool, loader, perSecond, seconds);
    flood.letGo();
    return latencies;
  }

  await measure(noFlood);
  await settle(environment);
  const results: Report["results"] = [];
  for (const [name, flood, other] of floods) {
    const [without, during]: [Float64Array[], Float64Array[]] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
      without.push(await measure(other));
      during.push(await measure(flood));
    }
    const p99 = quantile(joined(without), 0.99);
    const what = other === noFlood ? "alone" : "with as many that stay";
    results.push(
      { name: `${name}: p99`, value: quantile(joined(during), 0.99), unit: "ms", aim: { atMost: 2 * p99 } },
      { name: what, value: p99, unit: "ms" },
      { name: "resident memory", value: memory(), unit: "MiB" },
    );
  }
  loader.end();
  await worker.stop();
  await environment.close();
  return { results };
}
