// Reads a feed to its end, page by page.
import type { Client } from "./client.ts";

// More than any feed of a test has. A cursor that does not move would make an endless reading.
const mostPages = 20_000;

// end: the cursor of the empty page.
type Pulled<Event> = { events: Event[]; pages: string[]; end: string };

export async function pullEvents<Event>(by: Client, limit: number, cursor = ""): Promise<Pulled<Event>> {
  const [events, pages]: [Event[], string[]] = [[], []];
  let next = cursor;
  for (let count = 0; count < mostPages; count += 1) {
    const { status, json, text } = await by.get(`/v1/events?limit=${limit}${next === "" ? "" : `&cursor=${next}`}`);
    if (status !== 200) throw new Error(text);
    if (json.events.length === 0) return { events, pages, end: json.next_cursor };
    events.push(...json.events);
    pages.push(text);
    next = json.next_cursor;
  }
  throw new Error(`the feed does not end after ${mostPages} pages`);
}
