// Business days: noon never passes during the story, and a day ends when the story moves a distributor's time zone to
// the east.
import { daySeconds, zoneOf } from "../support/business-days.ts";
import { major, minorOf, pick, type Books, type Row, type Window } from "./books.ts";
import { happen, separateTimes, type Side, type Teller } from "./teller.ts";
import type { Owner } from "./tenants.ts";
import { hashFile } from "./twin.ts";

/** Moves the distributor's clock to the next day; `seconds` moves it some more or less. */
export async function passMidnight({ world, books, calendar }: Teller, owner: Owner, seconds = 0): Promise<void> {
  calendar.pass(owner);
  const { tenant, number, distributorParty: party } = owner;
  const zone = zoneOf(calendar.noon + calendar.dayOf(owner) * daySeconds + seconds);
  const change = "update core.party set time_zone = $3 where tenant_id = $1 and external_id = $2";
  await world.owner.rows(change, [number, party, zone]);
  const row = books.of("party").find((one) => one.tenant === tenant && one.party === party)!;
  row.time_zone = zone;
}

/** The sequencer posts each new entry to the day that its distributor's clock shows, and creates deliveries. */
export async function sequence(teller: Teller): Promise<void> {
  const { world, books, calendar, owners } = teller;
  await separateTimes(teller);
  const { at } = await teller.during(world.steps.sequence);
  await readEvents(teller);
  for (const entry of books.of("ledger").slice(books.of("posting").length)) {
    const { tenant, distributor } = entry;
    const owner = owners.find((one) => one.tenant === tenant && one.distributorParty === distributor)!;
    const business_date = calendar.dateOf(owner);
    const number = String(1 + entriesOf(teller, owner, business_date).length);
    const { maker: _, ...shown } = entry;
    books.note("posting", { ...shown, business_date, number });
  }
  const waits = { status: "WAITING", attempt_count: "0", next_attempt_at: at };
  for (const row of books.of("event").slice(teller.sequenced)) {
    const isOf = ({ tenant, party, disabled_at }: Row) => tenant === row.tenant && party === row.party && !disabled_at;
    const isSubscribed = books.of("webhook").some(isOf);
    if (!isSubscribed) continue;
    const of = pick(row, "tenant party event event_type recorded_at");
    const is_behind = isBehind(books, row);
    books.note("delivery", { ...of, is_behind: String(is_behind), is_expanded: "false", ...waits });
  }
  teller.sequenced = books.of("event").length;
}

// A delivery joins one that waits for the same coupon.
function isBehind(books: Books, { event_type, tenant, party, coupon }: Row): boolean {
  const isOwn = (row: Row) => row.tenant === tenant && row.party === party && row.coupon === coupon;
  const events = coupon ? books.of("event").filter(isOwn) : [];
  const joined = books
    .of("delivery")
    .find((row) => row.status === "WAITING" && events.some(({ event }) => event === row.event));
  return joined === undefined ? /expired|voided/.test(event_type!) : joined.is_behind === "true";
}

/** Adds what no answer shows: the numbers of events, and the IDs of those that have no entry's ID. */
export async function readEvents({ world, books }: Teller): Promise<void> {
  const rows = await world.owner.rows<{ event_seq: string; event: string }>(
    "select e.event_seq::text, rules.format_id('evt', e.event_id) as event from rules.event e order by e.event_seq",
  );
  for (const [index, row] of books.of("event").entries()) {
    row.event_seq = rows[index]!.event_seq;
    row.event ??= rows[index]!.event;
  }
}

const entriesOf = ({ books }: Teller, { tenant, distributorParty }: Owner, on: string): Row[] =>
  books
    .of("posting")
    .filter((row) => row.tenant === tenant && row.distributor === distributorParty && row.business_date === on);

/** Closes the day of one distributor and, unless it is told not to, finishes its statement. */
export async function closeDay(side: Side, { isOneOfSeveral = true, isFinished = true } = {}): Promise<void> {
  const { teller, owner } = side;
  const { world, books, calendar, during } = teller;
  const { tenant, distributorParty: distributor } = owner;
  const business_date = calendar.dateOf(owner);
  // No day is closed while an event of some seconds ago waits for the sequencer.
  await sequence(teller);
  await passMidnight(teller, owner);
  const { at: closed_at } = await during(world.steps.closeDays);
  const entries = entriesOf(teller, owner, business_date);
  const statement = books.note("statement", {
    tenant,
    distributor,
    business_date,
    closed_at,
    entry_count: String(entries.length),
    is_one_of_several: String(isOneOfSeveral),
  });
  if (!isFinished) return;
  const { at } = await during(world.steps.finishStatements);
  enterFinished(side, statement, at);
  if (world.url === "") return;
  for (const kind of ["detail", "summary"]) await download(side, statement, kind);
}

/** Enters that the statement is ready, and its lines. */
export function enterFinished(side: Side, statement: Row, ready_at: Window): void {
  const { teller, owner } = side;
  const { business_date } = statement;
  happen(side, "reconciliation.ready", ready_at, { business_date: business_date! });
  const lines = summarize(owner, entriesOf(teller, owner, business_date as string));
  for (const line of lines) teller.books.note("statement_line", { ...line, business_date: business_date! });
  Object.assign(statement, { ready_at, summary_rows: String(lines.length) });
}

async function download({ teller, owner }: Side, statement: Row, kind: string): Promise<void> {
  const { distributor: by, distributorParty } = owner;
  const target = `/v1/reconciliations/${statement.business_date}/${kind}?distributor=${distributorParty}`;
  const { status, text } = await teller.world.as(by).get(target);
  if (status !== 200) throw new Error(text);
  Object.assign(statement, { [`${kind}_bytes`]: String(Buffer.byteLength(text)), [`${kind}_sha256`]: hashFile(text) });
}

/** The lines of a statement, by merchant, template and currency. */
function summarize({ tenant, distributorParty: distributor }: Owner, entries: Row[]): Row[] {
  return sumUp(entries, "merchant template currency")
    .toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1))
    .map((line, index) => ({ ...line, tenant, distributor, number: String(index + 1) }));
}

const nameOf = ({ merchant, template, currency }: Row) => [merchant, template, currency].join(" ");

/** The entries summed up by these columns, of which currency is one. */
export function sumUp(entries: Row[], columns: string): Row[] {
  const groups = Map.groupBy(entries, (entry) => JSON.stringify(pick(entry, columns)));
  return [...groups.values()].map((group) => {
    const { currency } = group[0]!;
    const of = (type: string) => group.filter(({ entry_type }) => entry_type === type);
    const sum = (some: Row[]) => some.reduce((total, { discount_amount }) => total + minorOf(discount_amount!), 0);
    const [redemptions, reversals] = [of("REDEMPTION"), of("REVERSAL")];
    return {
      ...pick(group[0]!, columns),
      redemption_count: String(redemptions.length),
      redemption_amount: major(sum(redemptions), currency),
      reversal_count: String(reversals.length),
      reversal_amount: major(sum(reversals), currency),
      net_amount: major(sum(redemptions) + sum(reversals), currency),
    };
  });
}
