// Readers of events during writing: one that pulls the feed as documented, and one that reads by event number and is
// wrong.
import { setTimeout as sleep } from "node:timers/promises";
import { pullEvents } from "../../src/http/routes/pull-events.ts";
import type { Running } from "./service.ts";
import { nameOf, openTill, type Committed } from "./writers.ts";

export type Event = { event_id: string; event_type: string; coupon_id: string; redemption_id: string | null };
type Page = { cursor: string | null; text: string; count: number };
// seenAt: the performance.now() of the first page with the event, by its name.
export type Reading = { events: Event[]; seenAt: Map<string, number> };

const pageSize = 7;

// follow pulls pages until `writing` is settled and no more events come. again pulls every page a second time, with the
// length that it had, and counts the pages that differ.
export async function openPuller(service: Running) {
  const till = await openTill(service);
  const pages: Page[] = [];
  const reading: Reading = { events: [], seenAt: new Map() };

  async function pull(cursor: string | null, limit: number): Promise<string> {
    const [row] = await till.send([{ operation: "pull_events", body_hash: null, args: { cursor, limit } }], false);
    if (row!.http_status !== 200) throw new Error(row!.body);
    return pullEvents.render!(row!.body);
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

// A feed without a sequencer: it returns the events behind the highest number seen.
export async function followSerially(service: Running, writing: Promise<unknown>, start: string): Promise<Reading> {
  const reading: Reading = { events: [], seenAt: new Map() };
  let last = start;
  await readUntil(writing, async () => {
    const rows = await service.owner.rows<Event & { event_seq: string }>(
      `select e.event_seq, rules.format_id('evt', e.event_id) as event_id, e.event_type,
         rules.format_id('cpn', e.coupon_id) as coupon_id,
         rules.format_id('red', coalesce(v.redemption_id,
           case e.event_type when 'coupon.redeemed' then e.event_id end)) as redemption_id
       from rules.event e left join core.reversal v on v.reversal_id = e.event_id
       where e.event_seq > $1 and e.coupon_id is not null order by e.event_seq limit ${pageSize}`,
      [last],
    );
    reading.events.push(...rows);
    last = rows.at(-1)?.event_seq ?? last;
    return rows.length;
  });
  return reading;
}

// Ends when nothing has come for five seconds and 300 reads after the end of the writing, so that a busy machine does
// not end it early.
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
  for (let empty = 0; empty < 300 || performance.now() - Math.max(lastAt, overAt) < 5_000; empty += 1) {
    if ((await read()) > 0) [lastAt, empty] = [performance.now(), 0];
    else await sleep(5);
  }
}

// Counts the errors of a reading. A correct reading has none.
export function findFaults({ events }: Reading, committed: Committed) {
  const names = new Set(events.map(nameOf));
  let turned = 0;
  // The events of a coupon alternate between redeemed and reversed. A reading may begin anywhere.
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

// The milliseconds from commit to the first pull that this share of the events does not exceed.
export function quantile(share: number, seenAt: Map<string, number>, committed: Committed): number {
  const delays = [...committed]
    .map(([name, at]) => Math.max(0, (seenAt.get(name) ?? Infinity) - at))
    .sort((a, b) => a - b);
  return delays[Math.min(Math.ceil(delays.length * share), delays.length) - 1]!;
}
