// floods: what honest clients notice of others that leave in the middle, say nothing or say it slowly. Redemptions at a fixed rate,
// alone and beside each flood.
import { startLoader } from "./contenders.ts";
import { quantile, type Report } from "./figures.ts";
import { loadAt } from "./latency.ts";
import { residentMiB } from "./measure.ts";
import { cutAnswers, cutBodies, hold, type Held, type Target } from "../test/support/floods.ts";
import type { Server } from "./server.ts";
import type { Settings } from "./settings.ts";
import { openStage, settle } from "./stage.ts";
import { accessKey, secret } from "./tenant.ts";

const perSecond = 200;
const deckSize = 50_000;

export async function benchFloods(server: Server, { seconds }: Settings): Promise<Report> {
  const stage = await openStage(server);
  const deck = await stage.makeDeck(deckSize);
  await settle(stage);
  const loader = startLoader();
  const target: Target = { url: stage.url, accessKey, secret };
  const p99 = async () => quantile(await loadAt(stage, deck, loader, perSecond, seconds), 0.99);
  const memory = () => residentMiB(stage.measured.servePid!);
  // 1,000 of them in the time that is measured.
  const spread = (flood: (target: Target, count: number) => Promise<void>) => async (): Promise<Held> => {
    const coming = setInterval(() => void flood(target, Math.ceil(100 / seconds)), 100);
    return { open: () => 0, letGo: () => clearInterval(coming) };
  };
  const floods: [string, () => Promise<Held>][] = [
    ["1,000 leave in the middle of a body", spread(cutBodies)],
    ["1,000 leave in the middle of an answer", spread(cutAnswers)],
    ["2,000 say nothing", () => hold(target, 2_000, false)],
    ["1,000 send their heads slowly", () => hold(target, 1_000, true)],
  ];

  await p99();
  const figures: Report["figures"] = [];
  const alone: number[] = [];
  for (const [name, start] of floods) {
    alone.push(await p99());
    const flood = await start();
    const beside = await p99();
    figures.push({ name: `${name}: p99`, value: beside, unit: "ms", aim: { atMost: 2 * alone.at(-1)! } }, { name: "alone, before", value: alone.at(-1)!, unit: "ms" }, { name: "resident memory", value: memory(), unit: "MiB" });
    flood.letGo();
  }
  loader.end();
  await stage.close();
  return { figures, details: { alone } };
}
