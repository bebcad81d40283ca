// Business days: noon never passes during the story, and a day ends when the story moves a distributor's time zone to
// the east.
import { createHash } from "node:crypto";
import { daySeconds, noonOffset, zoneOf } from "../support/business-days.ts";
import type { Statement, Tenant } from "./books.ts";
import { during, happen, separateTimes, type Teller } from "./teller.ts";

export type Calendar = ReturnType<typeof openCalendar>;
type Distributor = { tenant: Tenant; party: string };

/** `noon` is where it is noon now. Each distributor has an open day. */
export function openCalendar() {
  const noon = noonOffset();
  const startedAt = Math.floor(Date.now() / 1000);
  // By tenant and party: the days that have passed there, and its time zone.
  const moved = new Map<string, { days: number; zone: string }>();
  const nameOf = ({ tenant, party }: Distributor) => `${tenant.id} ${party}`;
  const zone = (distributor: Distributor) => moved.get(nameOf(distributor))?.zone ?? zoneOf(noon);
  const dateOf = (distributor: Distributor) => {
    const days = moved.get(nameOf(distributor))?.days ?? 0;
    return new Date((startedAt + noon + days * daySeconds) * 1000).toISOString().slice(0, 10);
  };
  return { noon, startedAt, moved, nameOf, zone, dateOf };
}

/** Moves the distributor's clock to the next day; `seconds` moves it some more or less. */
export async function passMidnight(
  { service }: Teller,
  calendar: Calendar,
  distributor: Distributor,
  seconds = 0,
): Promise<void> {
  const days = (calendar.moved.get(calendar.nameOf(distributor))?.days ?? 0) + 1;
  const zone = zoneOf(calendar.noon + days * daySeconds + seconds);
  calendar.moved.set(calendar.nameOf(distributor), { days, zone });
  await service.owner.rows("update core.party set time_zone = $3 where tenant_id = $1 and external_id = $2", [
    distributor.tenant.number,
    distributor.party,
    zone,
  ]);
}

/** The sequencer posts each new entry to the day that its distributor's clock shows. */
export async function sequence(teller: Teller, calendar: Calendar): Promise<void> {
  await separateTimes(teller);
  await teller.days.sequence();
  const { entries } = teller.books;
  for (const entry of entries.filter(({ date }) => date === null)) {
    const { tenant, distributor: party } = entry.redemption.coupon.batch;
    entry.date = calendar.dateOf({ tenant, party });
    entry.number = 1 + entriesOf(teller, { tenant, party }, entry.date).filter(({ number }) => number !== null).length;
  }
}

function entriesOf({ books }: Teller, { tenant, party }: Distributor, on: string) {
  return books.entries.filter(({ date, redemption: { coupon } }) => {
    const { batch } = coupon;
    return date === on && batch.tenant === tenant && batch.distributor === party;
  });
}

/** Closes the day of one distributor and, if asked, finishes its statement. */
export async function closeDay(
  teller: Teller,
  calendar: Calendar,
  distributor: Distributor,
  isOneOfSeveral: boolean,
  isFinished = true,
): Promise<void> {
  const { service, books, days } = teller;
  const { tenant, party } = distributor;
  const date = calendar.dateOf(distributor);
  // No day is closed while an event of some seconds ago waits for the sequencer.
  await sequence(teller, calendar);
  await passMidnight(teller, calendar, distributor);
  const { at: closedAt } = await during(service, days.closer.closeDays);
  const entries = entriesOf(teller, distributor, date);
  const statement: Statement = {
    tenant,
    distributor: party,
    date,
    closedAt,
    readyAt: null,
    entries,
    isOneOfSeveral,
    files: null,
  };
  books.statements.push(statement);
  if (!isFinished) return;
  const { at } = await during(service, days.closer.finishStatements);
  happen(teller, { tenant, type: "reconciliation.ready", party, date }, at);
  statement.readyAt = at;
  statement.files = {
    detail: await download(teller, statement, "detail"),
    summary: await download(teller, statement, "summary"),
  };
}

async function download({ service, books }: Teller, { tenant, distributor, date }: Statement, kind: string) {
  const accessKey = tenant.variant === "A" ? "ak_minor" : "ak_maker";
  const started = performance.now();
  const target = `/v1/reconciliations/${date}/${kind}?distributor=${distributor}`;
  const { status, text } = await service.as(accessKey).get(target);
  if (status !== 200) throw new Error(text);
  const seconds = (performance.now() - started) / 1000;
  books.answers.push({ operation: "get_reconciliation", status, code: "OK", seconds });
  return { bytes: Buffer.byteLength(text), sha256: createHash("sha256").update(text).digest("hex"), text };
}
