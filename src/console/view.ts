// Shows a page: its blocks, filters and actions, or one of its blocks as CSV.
import { getRouterParams, HTTPError, type H3Event, type HTTPResponse } from "h3";
import type { Logger } from "../common/log.ts";
import { sqlState } from "../database/connect.ts";
import { writeCsv } from "./csv.ts";
import { renderActions, renderFilters, renderOutcome, renderTools } from "./forms.ts";
import { markup, type Markup } from "./markup.ts";
import type { Doors, Reader } from "./doors.ts";
import type { Outcome, Page, Values } from "./page.ts";
import { formatForPsql, readRows, rowsOfPage, type Asked, type Result } from "./query.ts";
import { renderBlock, type Link } from "./render.ts";
import type { Session } from "./sessions.ts";

export type Shown = { title: string; session: Session | null; body: Markup; refreshSeconds?: number };
export type Respond = (status: number, shown: Shown) => HTTPResponse;
type Show = (event: H3Event, page: Page, session: Session, outcome: Outcome | null) => Promise<HTTPResponse>;
type Parts = {
  doors: Doors;
  respond: Respond;
  log: Logger;
};

const sharedMs = 4_500;
/** Of a block without pages. */
const mostRows = 1_000;
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
  "base-uri 'none'; frame-ancestors 'none'";
export const headers = {
  "content-security-policy": policy,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
};

export function createView({ doors, log, respond }: Parts): Show {
  type Body = Address & { page: Page; session: Session; outcome: Outcome | null };

  async function renderBody({ search, filters, values, page, session, outcome }: Body): Promise<Markup> {
    const { pages, reader, isStaff } = doors.of(session);
    const link = createLink(pages);
    const read = await readBlocks(reader, page, { search, filters, values });
    const subject = read[0]!.rows[0];
    const sections = page.blocks.map((block, index) => {
      const { rows, next } = read[index]!;
      const psql = isStaff ? formatForPsql({ block, filters, values }) : null;
      const tools = renderTools({ search, index, next, psql });
      const note = block.note === undefined ? null : markup`<p class="none">${block.note}</p>`;
      return markup`<section><h2>${block.title}</h2>${note}${renderBlock(block, rows, link)}${tools}</section>`;
    });
    const files = Object.keys(page.files ?? {}).map((name) => markup`<a href="?file=${name}">${name}</a>`);
    const downloads = files.length === 0 ? null : markup`<p class="tools">Download ${files}</p>`;
    return markup`${renderOutcome(outcome)}${renderFilters(filters, values)}${downloads}${sections}
${renderActions(page, session, subject)}`;
  }

  const kept = new Map<Page, { since: number; body: Promise<Markup> }>();

  /** People of staff who keep the same page open share what it shows for some seconds. */
  function shareBody(body: Body): Promise<Markup> {
    const { refreshSeconds, actions } = body.page;
    // A form would carry the token of one session.
    const isPlain = actions === undefined && body.search.size === 0;
    const isShared = refreshSeconds !== undefined && isPlain && doors.of(body.session).isStaff;
    if (!isShared) return renderBody(body);
    const last = kept.get(body.page);
    if (last !== undefined && performance.now() - last.since < sharedMs) return last.body;
    const made = { since: performance.now(), body: renderBody(body) };
    kept.set(body.page, made);
    made.body.catch(() => kept.delete(body.page));
    return made.body;
  }

  return async function show(event, page, session, outcome) {
    const address = readAddress(event, page);
    const { search, filters, values } = address;
    const { tenant: _, ...subject } = getRouterParams(event, { decode: true });
    const title = [page.title, ...Object.values(subject)].join(" ");
    const more = page.refreshSeconds === undefined ? {} : { refreshSeconds: page.refreshSeconds };
    try {
      const name = search.get("file");
      if (name !== null && !Object.hasOwn(page.files ?? {}, name)) throw new HTTPError({ status: 404 });
      const file = page.files?.[name ?? ""];
      if (file !== undefined) return await file({ reader: doors.of(session).reader, log }, values);
      const block = page.blocks[Number(search.get("csv") ?? NaN)];
      if (block !== undefined) return await writeCsv(doors.of(session).reader, { block, filters, values }, headers);
      const body = await shareBody({ ...address, page, session, outcome });
      return respond((outcome?.error ?? null) === null ? 200 : 409, { title, session, body, ...more });
    } catch (error) {
      // What a filter holds cannot be read as the type that it is compared with.
      if (!sqlState(error)?.startsWith("22")) throw error;
      return respond(400, { title, session, body: markup`<p role="alert">A filter is not understood.</p>` });
    }
  };
}

type Address = Omit<Asked, "block"> & { search: URLSearchParams };

async function readBlocks(reader: Reader, page: Page, { search, filters, values }: Address): Promise<Result[]> {
  const at = Number(search.get("block") ?? 0);
  const read: Result[] = [];
  const waiting = [...page.blocks.entries()];
  async function readWaiting(): Promise<void> {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [index, block] = next;
      const cursor = index === at ? search.get("cursor") : null;
      const limit = block.newestBy === undefined ? mostRows : rowsOfPage;
      read[index] = await readRows(reader, { block, filters, values }, { cursor, limit });
    }
  }
  // What a page is about comes first. Without it, nothing else is read, whoever else has it.
  if (page.blocks[0]!.as === "facts") {
    const others = waiting.splice(1);
    await readWaiting();
    if (read[0]!.rows.length === 0) throw new HTTPError({ status: 404 });
    waiting.push(...others);
  }
  // What is open all day reads one block after the other: it takes one processor at most from the tills.
  await Promise.all(Array.from({ length: page.refreshSeconds === undefined ? 2 : 1 }, readWaiting));
  return read;
}

/** The parts of the path count more than what follows the question mark. */
function readAddress(event: H3Event, { filters = [] }: Page): Address {
  const { searchParams: search } = event.url;
  const values: Values = { ...Object.fromEntries(search), ...getRouterParams(event, { decode: true }) };
  return { search, filters, values };
}

/** A page about something says so by its path: /batches/:batch is about each column named batch. */
function createLink(pages: readonly Page[]): Link {
  const paths = new Map(pages.flatMap(({ path: at }) => (/\/:(\w+)$/.test(at) ? [[at.split("/:").at(-1)!, at]] : [])));
  const lists = new Map(pages.flatMap((page) => (page.linkedFrom === undefined ? [] : [[page.linkedFrom, page]])));
  return (column, row) => {
    const list = lists.get(column);
    if (list !== undefined) {
      const given = (list.filters ?? []).map(({ name }) => [name, row[name]?.text ?? ""]);
      const query = new URLSearchParams(Object.fromEntries(given.filter(([, text]) => text !== "")));
      return query.size === 0 ? list.path : `${list.path}?${query}`;
    }
    const template = paths.get(column);
    const names = [...(template?.matchAll(/:(\w+)/g) ?? [])].map(([, name]) => name!);
    if (template === undefined || names.some((name) => (row[name] ?? null) === null)) return null;
    return template.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(row[name]?.text ?? ""));
  };
}
