// One story of two tenants that leaves rows in every report view and a figure in every metric. It ends with work that
// waits: events, deliveries, batches, days, statements and a lock.
import type { Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import { observeWork } from "../../src/worker/metrics.ts";
import { externalId } from "../../src/common/id.ts";
import { claimBatch, drawHashes, find, mintChunk } from "../support/minting.ts";
import { zoneOf } from "../support/business-days.ts";
import { openMetrics, openMetricsDatabase } from "../support/scrape.ts";
import { startService } from "../support/service.ts";
import { openWorkerSession } from "../support/worker-session.ts";
import { moment, openBooks, shift, type Tenant } from "./books.ts";
import { closeDay, openCalendar, passMidnight, sequence, type Calendar } from "./days.ts";
import { reverse, tellFixed, tellForgotten, tellSecond, voidCoupon } from "./lives.ts";
import { audit, openTeller, orderBatch, separateTimes, type Teller } from "./teller.ts";
import { describe, plans } from "./tenants.ts";
import { tellWebhooks, type Lefts } from "./webhooks.ts";

export type Story = Awaited<ReturnType<typeof tellStory>>;

export async function tellStory(t: Test) {
  const books = openBooks();
  const metrics = await openMetrics(t);
  const from = Date.now() / 1000;
  const service = await startService(t, null, { metrics }, { unknownCodesPerMinute: 1 });
  books.keyRegisteredAt = { from, to: Date.now() / 1000 };
  const observer = observeWork(metrics, openMetricsDatabase(t, service.address, "coupon_worker"));
  const teller = await openTeller(t, service, books);
  const calendar = openCalendar();
  const [a, b] = await provision(teller, calendar);

  const lefts = await tellDays(teller, calendar, a, b);
  await tellWebhooks(t, teller, calendar, lefts, observer);
  await leaveWork(t, teller, calendar, lefts);
  return { teller, books, service, calendar, metrics, observer, eventIds: await readEventIds(teller) };
}

async function provision({ service, books, during, ...teller }: Teller, calendar: Calendar) {
  for (const plan of plans) {
    // The same internal IDs in both tenants, none of them the number of a tenant.
    for (const [table, column, start] of [
      ["party", "party_id", 11],
      ["template", "template_id", 21],
      ["store", "store_id", 31],
    ])
      await service.owner.rows(`alter table core.${table} alter column ${column} restart with ${start}`);
    const declared = describe(plan);
    const { at } = await during(() => service.apply({ tenants: [declared] }));
    const tenant: Tenant = { ...plan, document: declared, appliedAt: at };
    books.tenants.push(tenant);
    // The tenant, parties, merchants, delegates, stores, terminals, templates, the merchants of templates, credentials.
    const rows = plan.variant === "A" ? [1, 4, 3, 2, 3, 3, 3, 3, 2] : [1, 4, 3, 2, 3, 2, 3, 4, 4];
    const changed = rows.reduce((sum, count) => sum + count, 0);
    const details = `{"changed": ${changed}}`;
    audit({ service, books, during, ...teller }, tenant, "apply", tenant.id, at, { details });
    // A zone that no file may declare.
    await service.owner.rows("update core.party set time_zone = $2 where tenant_id = $1", [
      tenant.number,
      zoneOf(calendar.noon),
    ]);
  }
  return books.tenants as [Tenant, Tenant];
}

// On the first day only one distributor of Variant B has a book.
async function tellDays(teller: Teller, calendar: Calendar, a: Tenant, b: Tenant): Promise<Lefts> {
  const [fixedA, secondA, fixedB] = [
    await tellFixed(teller, a),
    await tellSecond(teller, a),
    await tellFixed(teller, b),
  ];
  for (const left of [fixedA, fixedB]) await tellForgotten(teller, left);
  await sequence(teller, calendar);
  await closeDay(teller, calendar, { tenant: a, party: "pty_one" }, true);
  await closeDay(teller, calendar, { tenant: a, party: "pty_two" }, true);
  await closeDay(teller, calendar, { tenant: b, party: "pty_one" }, false);

  await passMidnight(teller, calendar, { tenant: b, party: "pty_two" });
  const secondB = await tellSecond(teller, b);
  await reverse(teller, fixedA.standing, "too late");
  await reverse(teller, fixedB.standing, null);
  await sequence(teller, calendar);
  await closeDay(teller, calendar, { tenant: b, party: "pty_one" }, true, false);
  await closeDay(teller, calendar, { tenant: b, party: "pty_two" }, true, false);
  return { A: { fixed: fixedA, second: secondA }, B: { fixed: fixedB, second: secondB } };
}

// Nothing of this is sequenced, minted or closed any more.
async function leaveWork(t: Test, teller: Teller, calendar: Calendar, { A, B }: Lefts): Promise<void> {
  const { service, books, during } = teller;
  const [a, b] = books.tenants as [Tenant, Tenant];
  await passMidnight(teller, calendar, { tenant: a, party: "pty_two" });
  await passMidnight(teller, calendar, { tenant: a, party: "pty_one" }, -3 * 3_600);
  for (const [tenant, key] of [
    [a, "ak_lost"],
    [b, "ak_gone"],
  ] as const) {
    const { at } = await during(() => service.admin.rows("select admin.revoke_credential($1, 'lost')", [key]));
    books.revoked.set(key, at);
    audit(teller, tenant, "revoke_credential", key, at, { reason: "lost" });
  }
  await mintOne(t, teller, b);
  await orderBatch(teller, a, "tpl_second", 5);
  await voidCoupon(teller, A.fixed.unused.pop()!, "at last");
  await waitLonger(teller);
  await separateTimes(teller);
  await voidCoupon(teller, B.fixed.unused.pop()!, null);
}

// One of two batches and one of two statements have waited for minutes.
async function waitLonger({ psql, books }: Teller): Promise<void> {
  const batch = books.batches.find(({ status }) => status === "PENDING")!;
  const statement = books.statements.find(({ readyAt }) => readyAt === null)!;
  await psql.rows("update core.batch set created_at = created_at - interval '400 seconds' where external_id = $1", [
    batch.id,
  ]);
  await psql.rows(
    `update core.statement s set closed_at = closed_at - interval '500 seconds'
     from core.party p
     where p.tenant_id = s.tenant_id and p.party_id = s.distributor_id
       and s.tenant_id = $1 and p.external_id = $2 and s.business_date = $3::text::date`,
    [statement.tenant.number, statement.distributor, statement.date],
  );
  batch.createdAt = shift(batch.createdAt, -400);
  statement.closedAt = shift(statement.closedAt, -500);
}

// A worker has minted one of three coupons, and still has the lease.
async function mintOne(t: Test, teller: Teller, tenant: Tenant): Promise<void> {
  const { service, books, days, during } = teller;
  const { batch } = await orderBatch(teller, tenant, "tpl_fixed", 3);
  const due = await find(service, batch.id);
  const session = await openWorkerSession(t, service.address);
  const claim = await claimBatch(service, days.worker, session, due);
  const minted = await during(() => mintChunk(days.worker, due, claim!.holder, 1, drawHashes(1)));
  Object.assign(batch, { minted: 1, mintedAt: minted.at, leasedUntil: shift(minted.at, 30) });
  const rows = await service.owner.rows<{ id: string }>(
    "select coupon_id::text as id from core.coupon where batch_id = $1",
    [due.batch_id],
  );
  const validTo = moment("2099-01-01T00:00:00Z");
  const [id, state] = [externalId("cpn", rows[0]!.id), { status: "CREATED", stored: "ISSUED", live: null }];
  books.coupons.push({ batch, id, code: "", number: 1, validTo, ...state });
}

// The only IDs that no answer shows, in the order of the events.
async function readEventIds({ service }: Teller): Promise<string[]> {
  const session = openSession(service.address, { name: "coupon test", role: "coupon_owner" });
  const rows = await session.rows<{ id: string }>("select event_id::text as id from rules.event order by event_seq");
  await session.end();
  return rows.map(({ id }) => externalId("evt", id));
}
