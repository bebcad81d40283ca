// feed: how many events get their place in a second, and how many are pulled over HTTP at the largest limit; and how
// long after a redemption its event can be pulled while tills redeem.
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "../../support/client.ts";
import { openPool } from "./coupons.ts";
import type { Environment, Run } from "./environment.ts";
import { fillRedemptions } from "./fill.ts";
import { openLoader } from "./load.ts";
import { median, quantile, timed, type Row } from "./measure.ts";

type Pulled = { cursor: string | null; count: number; lags: Float64Array };
type Page = { events: { event_id: string; recorded_at: string }[]; next_cursor: string };

const [limit, perSecond, loadSeconds] = [1_000, 200, 10];
const mostPauseMs = 60_000;

export async function benchFeed({ open, size, rounds }: Run): Promise<Row[]> {
  const environment = await open();
  const batch = await environment.release(size);
  await environment.untilCaughtUp();
  const { cursor } = await pull(environment, null, null);
  const filled = await fillRedemptions(environment, [batch]);
  const sequencedSeconds = await timed(environment.untilCaughtUp);

  const pullSeconds: number[] = [];
  for (let number = 0; number <= rounds; number += 1) {
    const seconds = await timed(() => pull(environment, cursor, filled));
    // The first round is a warm-up.
    if (number > 0) pullSeconds.push(seconds);
  }

  const count = Math.min(size, perSecond * loadSeconds);
  const coupons = await (await openPool(environment, count)).draw(count);
  await environment.untilCaughtUp();
  const { cursor: last } = await pull(environment, cursor, null);
  const loader = openLoader();
  const start = await loader.prepare(environment, coupons, { connections: 64, perSecond });
  const [{ lags }] = await Promise.all([pull(environment, last, count), start()]);
  await loader.end();
  return [
    { name: `pulled at limit ${limit}`, "events/s": filled / median(pullSeconds) },
    { name: "sequenced", "events/s": filled / sequencedSeconds },
    { name: `at ${perSecond} redemptions/s`, "p50 ms": quantile(lags, 0.5), "p99 ms": quantile(lags, 0.99) },
  ];
}

/**
 * Pulls page by page until `wanted` events came; null: until a page is empty. A lag is from an event's recorded_at,
 * which precedes its commit, to the page with the event.
 */
async function pull({ url, credential }: Environment, from: string | null, wanted: number | null): Promise<Pulled> {
  const client = createClient({ url, ...credential });
  const seen = new Set<string>();
  const lags: number[] = [];
  let [cursor, lastAt, isOver] = [from, performance.now(), false];
  while (!isOver) {
    const query = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const { status, text, json } = await client.get(`/v1/events?limit=${limit}${query}`);
    if (status !== 200) throw new Error(`answered ${status} ${text}`);
    const { events, next_cursor } = json as Page;
    for (const { event_id, recorded_at } of events) {
      seen.add(event_id);
      lags.push(Date.now() - Date.parse(recorded_at));
    }
    cursor = next_cursor;
    isOver = wanted === null ? events.length === 0 : seen.size >= wanted;
    if (events.length > 0) lastAt = performance.now();
    else if (performance.now() > lastAt + mostPauseMs) throw new Error(`${seen.size} of ${wanted} events came`);
    else if (!isOver) await sleep(20);
  }
  if (seen.size !== lags.length) throw new Error(`${lags.length - seen.size} events came twice`);
  return { cursor, count: seen.size, lags: Float64Array.from(lags) };
}
