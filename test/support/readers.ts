// A reader that pulls a feed during writing, as documented.
import { pullEvents } from "../../src/http/routes/pull-events.ts";
import type { Scenario } from "./scenario.ts";
import { waitAtMost } from "./wait-until.ts";
import { openTill } from "./writers.ts";

export type Event = { event_id: string; event_type: string; coupon_id: string; redemption_id: string | null };
export type Reading = { events: Event[] };

const pageSize = 7;
const withinMs = 120_000;

/**
 * follow pulls pages until `writing` is over and every event has been pulled, for two minutes at most. again pulls
 * every page a second time, with the length that it had, and counts the pages that differ.
 */
export async function openPuller(world: Scenario) {
  const till = await openTill(world);
  const pages: { cursor: string; text: string; count: number }[] = [];

  async function pull(cursor: string, limit: number): Promise<string> {
    const [row] = await till.send([{ operation: "pull_events", body_hash: null, args: { cursor, limit } }], false);
    if (row!.http_status !== 200) throw new Error(row!.body);
    return pullEvents.render!(row!.body);
  }

  async function hasAll(count: number): Promise<boolean> {
    const [row] = await world.owner.rows<{ is_all: boolean }>(
      `select count(*) <= $1 as is_all from rules.event e join core.tenant t using (tenant_id)
       where t.external_id = 'ten_a' and e.coupon_id is not null`,
      [count],
    );
    return row!.is_all;
  }

  async function follow(writing: Promise<unknown>, start: { cursor: string; position: string }): Promise<Reading> {
    const events: Event[] = [];
    let { cursor } = start;
    let isOver = false;
    const end = () => (isOver = true);
    writing.then(end, end);
    const hasEnded = async () => {
      const mayEnd = isOver;
      const text = await pull(cursor, pageSize);
      const page = JSON.parse(text) as { events: Event[]; next_cursor: string };
      events.push(...page.events);
      if (page.events.length > 0) pages.push({ cursor, text, count: page.events.length });
      cursor = page.next_cursor;
      return mayEnd && page.events.length === 0 && hasAll(Number(start.position) + events.length);
    };
    // What is missing then is the caller's to say.
    await waitAtMost(withinMs, hasEnded, { everyMs: 1 });
    return { events };
  }

  async function again(): Promise<number> {
    let different = 0;
    for (const { cursor, text, count } of pages) if ((await pull(cursor, count)) !== text) different += 1;
    return different;
  }

  return { follow, again, end: () => till.session.end() };
}
