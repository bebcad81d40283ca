// Who reads events while they are written: the puller of the interface, and one that does it wrongly.
import { setTimeout as sleep } from "node:timers/promises";
import type { Running } from "./service.ts";
import { nameOf, openTill, type Committed } from "./writers.ts";

export type Event = { event_id: string; event_type: string; coupon_id: string; redemption_id: string | null };
type Page = { cursor: string | null; text: string; count: number };
// seenAt: performance.now() when an event was pulled first, by its name.
export type Reading = { events: Event[]; seenAt: Map<string, number> };

const pageSize = 7;

// Pulls pages until the given promise is settled and no more come. `again` pulls each page a second time and counts those
// that differ: a page that was short then is asked for at that length.
export async function openPuller(service: Running) {
  const till = await openTill(service);
  const pages: Page[] = [];
  const reading: Reading = { events: [], seenAt: new Map() };

  async function pull(cursor: string | null, limit: number): Promise<string> {
    const [row] = await till.send([{ operation: "pull_events", body_hash: null, args: { cursor, limit } }], false);
    if (row!.http_status !== 200) throw new Error(row!.body);
    return row!.body;
  }

  async function follow(writing: Promise<unknown>, start: string | null): Promise<Reading> {
    let cursor = start;
    await readUntil(writing, async () => {
      const text = await pull(cursor, pageSize);
      const page = JSON.parse(text) as { events: Event[]; next_cursor: string };
      const now = performance.now();
      for (const event of page.events) {
        reading.events.push(event);
        if (!reading.seenAt.has(nameOf(event))) reading.seenAt.set(nameOf(event), now);
      }
      if (page.events.length > 0) pages.push({ cursor, text, count: page.events.length });
      cursor = page.next_cursor;
      return page.events.length;
    });
    return reading;
  }

  async function again(): Promise<number> {
    let different = 0;
    for (const { cursor, text, count } of pages) if ((await pull(cursor, count)) !== text) different += 1;
    return different;
  }

  return { follow, again, seenAt: reading.seenAt, end: () => till.session.end() };
}

// What a feed would be without a sequencer: whatever is behind the highest number seen.
export async function followSerially(service: Running, writing: Promise<unknown>, start: string): Promise<Reading> {
  const reading: Reading = { events: [], seenAt: new Map() };
  let last = start;
  await readUntil(writing, async () => {
    const rows = await service.owner.rows<Event & { event_seq: string }>(
      `select e.event_seq, rules.format_id('evt', e.event_id) as event_id, e.event_type,
         rules.format_id('cpn', e.coupon_id) as coupon_id,
         rules.format_id('red', coalesce(v.redemption_id, case e.event_type when 'coupon.redeemed' then e.event_id end)) as redemption_id
       from core.event e left join core.reversal v on v.reversal_id = e.event_id where e.event_seq > $1 and e.coupon_id is not null order by e.event_seq limit ${pageSize}`,
      [last],
    );
    reading.events.push(...rows);
    last = rows.at(-1)?.event_seq ?? last;
    return rows.length;
  });
  return reading;
}

// Nothing more comes when nothing has come for a while after the writing was over, whatever the machine has to do.
async function readUntil(writing: Promise<unknown>, read: () => Promise<number>): Promise<void> {
  let overAt = Infinity;
  writing.then(
    () => {
      overAt = performance.now();
    },
    () => {
      overAt = 0;
    },
  );
  let lastAt = performance.now();
  while (performance.now() - Math.max(lastAt, overAt) < 5_000) {
    if ((await read()) > 0) lastAt = performance.now();
    else await sleep(5);
  }
}

// What is wrong with a reading, as counts: nothing, of a good one.
export function findFaults({ events }: Reading, committed: Committed) {
  const names = new Set(events.map(nameOf));
  let turned = 0;
  // Of one coupon: redeemed, that redemption reversed, redeemed anew, and so on; a reading may begin in the middle.
  const live = new Map<string, string | null>();
  for (const { event_type, coupon_id, redemption_id } of events) {
    const before = live.get(coupon_id);
    if (before !== undefined && before !== (event_type === "coupon.reversed" ? redemption_id : null)) turned += 1;
    live.set(coupon_id, event_type === "coupon.redeemed" ? redemption_id : null);
  }
  return {
    missing: [...committed.keys()].filter((name) => !names.has(name)).length,
    twice: events.length - names.size,
    unknown: [...names].filter((name) => !committed.has(name)).length,
    turned,
  };
}

// Milliseconds from commit to pullable, of that share of the events.
export function quantile(share: number, seenAt: Map<string, number>, committed: Committed): number {
  const delays = [...committed]
    .map(([name, at]) => Math.max(0, (seenAt.get(name) ?? Infinity) - at))
    .sort((a, b) => a - b);
  return delays[Math.min(Math.ceil(delays.length * share), delays.length) - 1]!;
}
