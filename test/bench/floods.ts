// floods: what honest clients notice of others that leave in the middle, say nothing or say it slowly. Redemptions at a fixed rate,
// alone and beside each flood.
import { startLoader } from "./contenders.ts";
import { joined, quantile, type Report } from "./figures.ts";
import { loadAt } from "./latency.ts";
import { residentMiB } from "./measure.ts";
import { cutAnswers, cutBodies, hold, type Held, type Target } from "../support/floods.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openStage, settle } from "./environment.ts";
import { accessKey, secret } from "./tenant.ts";

const perSecond = 200;
const deckSize = 50_000;

export async function benchFloods(server: Server, { seconds, rounds }: Settings): Promise<Report> {
  const stage = await openStage(server);
  const deck = await stage.makeDeck(deckSize);
  await settle(stage);
  const loader = startLoader();
  const target: Target = { url: stage.url, accessKey, secret };
  const memory = () => residentMiB(stage.measured.servePid!);
  // 1,000 of them in the time that is measured.
  const spread = (flood: (target: Target, count: number) => Promise<void>) => async (): Promise<Held> => {
    const coming = setInterval(() => void flood(target, Math.ceil(100 / seconds)), 100);
    return { open: () => 0, letGo: () => clearInterval(coming) };
  };
  const nobody = async (): Promise<Held> => ({ open: () => 0, letGo: () => {} });
  // Who asks for an answer takes time of the service whether he stays or leaves: what leaving costs is the difference.
  const staying = spread((to, count) => cutAnswers(to, count, true));
  const floods: [name: string, flood: () => Promise<Held>, other: () => Promise<Held>][] = [
    ["1,000 leave in the middle of a body", spread(cutBodies), nobody],
    ["1,000 leave in the middle of an answer", spread(cutAnswers), staying],
    ["2,000 say nothing", () => hold(target, 2_000, false), nobody],
    ["1,000 send their heads slowly", () => hold(target, 1_000, true), nobody],
  ];

  async function beside(start: () => Promise<Held>): Promise<Float64Array> {
    const flood = await start();
    const latencies = await loadAt(stage, deck, loader, perSecond, seconds);
    flood.letGo();
    return latencies;
  }

  await beside(nobody);
  await settle(stage);
  const figures: Report["figures"] = [];
  for (const [name, flood, other] of floods) {
    const [without, during]: [Float64Array[], Float64Array[]] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
      without.push(await beside(other));
      during.push(await beside(flood));
    }
    const p99 = quantile(joined(without), 0.99);
    const what = other === nobody ? "alone" : "beside as many that stay";
    figures.push(
      { name: `${name}: p99`, value: quantile(joined(during), 0.99), unit: "ms", aim: { atMost: 2 * p99 } },
      { name: what, value: p99, unit: "ms" },
      { name: "resident memory", value: memory(), unit: "MiB" },
    );
  }
  loader.end();
  await stage.close();
  return { figures };
}
