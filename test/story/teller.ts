// Takes the steps of the story, one after the other, and enters each in the books with the time before and after it.
import type { Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import { exportCodes } from "../../src/commands/codes.ts";
import { createExpirer } from "../../src/worker/tasks/expire.ts";
import { keepBusinessDays } from "../support/business-days.ts";
import type { Reply } from "../support/client.ts";
import { pathOf } from "../support/path-of.ts";
import { newRequestId, type Running } from "../support/service.ts";
import type { Batch, Books, Coupon, Entry, Event, Redemption, Tenant, Window } from "./books.ts";
import { amount, moment, shift } from "./books.ts";
import { keys, partyOf } from "./tenants.ts";

export type Teller = Awaited<ReturnType<typeof openTeller>>;
type Done<T> = { answer: T; at: Window };

// The test moves each recorded_at back by so much before the sequencer runs, so it differs from occurred_at.
const recordedEarlier = 3_600;

export async function openTeller(t: Test, service: Running, books: Books) {
  const days = await keepBusinessDays(t, service);
  const psql = openSession(service.address, { name: "psql" });
  await psql.run("set session_replication_role = replica");
  t.teardown(() => psql.end());
  const expire = createExpirer({ database: days.worker, stopping: new AbortController().signal });
  const teller = { t, service, books, days, psql, expire, isRecorded: new Set<Entry | Event>() };
  return { ...teller, during: <T>(act: () => Promise<T>) => during(service, act) };
}

async function readClock({ owner }: Running): Promise<number> {
  const [row] = await owner.rows<{ now: string }>("select extract(epoch from clock_timestamp())::text as now");
  return Number(row!.now);
}

export async function during<T>(service: Running, act: () => Promise<T>): Promise<Done<T>> {
  const from = await readClock(service);
  const answer = await act();
  return { answer, at: { from, to: await readClock(service) } };
}

/** Sends a request and enters its answer. Answers of 200, 404, 409 and, except for a wrong code, 422 are recorded. */
export async function send(
  { service, books, during }: Teller,
  tenant: Tenant,
  accessKey: string,
  operation: string,
  fields: object,
  idempotencyKey?: string,
): Promise<Done<Reply>> {
  const requestId = newRequestId();
  const isRead = operation === "query";
  const body = isRead ? fields : { request_id: requestId, ...fields };
  const started = performance.now();
  const options = idempotencyKey === undefined ? {} : { idempotencyKey };
  const done = await during(() => service.as(accessKey).post(pathOf(operation), body, options));
  const { status, text, json } = done.answer;
  const code = status === 200 ? "OK" : json.code;
  books.answers.push({ operation, status, code, seconds: (performance.now() - started) / 1_000 });
  const first = books.requests.find(({ tenant: one, key }) => one === tenant && key !== null && key === idempotencyKey);
  if (!isRead && [200, 404, 409, 422].includes(status) && code !== "COUPON_CODE_INVALID")
    books.requests.push({
      tenant,
      caller: partyOf[accessKey]!,
      requestId,
      key: first === undefined ? (idempotencyKey ?? null) : null,
      firstRequestId: first?.requestId ?? null,
      operation,
      status,
      response: text,
      at: first?.at ?? done.at,
    });
  return done;
}

export async function sendOk(
  teller: Teller,
  ...call: Parameters<typeof send> extends [Teller, ...infer R] ? R : never
) {
  const { answer, at } = await send(teller, ...call);
  if (answer.status !== 200) throw new Error(`${call[2]}: ${answer.text}`);
  return { json: answer.json, text: answer.text, at, requestId: teller.books.requests.at(-1)?.requestId ?? "" };
}

export function happen(
  { books }: Teller,
  event: Pick<Event, "tenant" | "type" | "party"> & Partial<Event>,
  at: Window,
) {
  const noted = { batch: null, coupon: null, entry: null, date: null, occurredAt: at, recordedAt: at, ...event };
  books.events.push({ ...noted, seq: books.events.length + 1 });
}

/** `details` is JSON as PostgreSQL writes it. */
export function audit({ books }: Teller, tenant: Tenant, action: string, target: string, at: Window, more = {}) {
  books.audits.push({ tenant, action, target, reason: null, details: "{}", at, ...more });
}

/** A batch that is ordered, minted, exported and, unless it is held back, released. */
export async function makeBatch(
  teller: Teller,
  tenant: Tenant,
  template: string,
  total: number,
  isReleased = true,
): Promise<{ batch: Batch; coupons: Coupon[] }> {
  const { service, books, during } = teller;
  const { batch, maker } = await orderBatch(teller, tenant, template, total);
  const minted = await during(() => service.mint());
  Object.assign(batch, { status: "COMPLETED", minted: total, mintedAt: minted.at, completedAt: minted.at });
  happen(teller, { tenant, type: "batch.generated", party: "pty_one", batch }, minted.at);
  const codes = () => Array.fromAsync(exportCodes(service.admin, service.keys, batch.id, true));
  const exported = await during(codes);
  const details = `{"status": "COMPLETED", "total_count": ${total}}`;
  audit(teller, tenant, "export_codes", batch.id, exported.at, { details });
  if (isReleased) {
    const { at } = await sendOk(teller, tenant, maker, "allocate_batch", { batch: batch.id });
    Object.assign(batch, { status: "ALLOCATED", allocatedAt: at });
    happen(teller, { tenant, type: "allocation.completed", party: batch.distributor, batch }, at);
  }
  const held = tenant.variant === "B" ? "CREATED" : "ISSUED";
  const coupons = exported.answer.flat().map(({ coupon_id, code }, index) => ({
    batch,
    id: coupon_id,
    code,
    number: index + 1,
    status: isReleased ? "ISSUED" : held,
    stored: "ISSUED",
    validTo: moment("2099-01-01T00:00:00Z"),
    live: null,
  }));
  books.coupons.push(...coupons);
  return { batch, coupons };
}

export async function orderBatch(teller: Teller, tenant: Tenant, template: string, total: number) {
  const maker = keys[tenant.variant].maker;
  const { json, at } = await sendOk(teller, tenant, maker, "create_batch", { template, total_count: total });
  const batch: Batch = {
    tenant,
    id: json.batch.external_id,
    template,
    distributor: template === "tpl_second" ? "pty_two" : "pty_one",
    currency: template === "tpl_second" ? tenant.foreign : "EUR",
    status: "PENDING",
    total,
    minted: 0,
    leasedUntil: null,
    createdAt: at,
    mintedAt: null,
    completedAt: null,
    allocatedAt: null,
    destroyedAt: null,
  };
  teller.books.batches.push(batch);
  return { batch, maker };
}

type Order = { orderMinor: number; merchant?: string; store?: string; terminal?: string; order_id?: string };

/** A lock or a redeem. Its answer shows the discount, in the tenant's unit. */
export async function grant(
  teller: Teller,
  operation: "lock" | "redeem",
  coupon: Coupon,
  { orderMinor, merchant = "mch_kiosk", ...place }: Order,
): Promise<Redemption> {
  const { t, books } = teller;
  const { tenant, currency, template } = coupon.batch;
  const accessKey = merchant === "mch_kiosk" ? keys[tenant.variant].shop : keys[tenant.variant].till;
  const order_amount = Number(amount(tenant, orderMinor, currency));
  const fields = { coupon: coupon.code, merchant, order_amount, ...place };
  const { json, text, at, requestId } = await sendOk(teller, tenant, accessKey, operation, fields);
  // tpl_second: 12.5 percent, capped.
  const cap = tenant.variant === "A" ? 700 : 800;
  const isFixed = template === "tpl_fixed";
  const discountMinor = isFixed ? tenant.fixedMinor : Math.min(Math.floor(orderMinor / 8), cap);
  const shown = (answer: string) => /"discount_amount":([^,}]+)/.exec(answer)?.[1];
  const expected = amount(tenant, discountMinor, currency);
  t.equal(shown(text), expected, `${operation} in ${tenant.id}`);
  const { text: queried } = await sendOk(teller, tenant, accessKey, "query", { coupon: coupon.code, merchant });
  t.equal(shown(queried), tenant.variant === "A" ? expected : undefined, `query in ${tenant.id}`);
  const isLock = operation === "lock";
  const secondTtl = tenant.variant === "A" ? 600 : 660;
  const status = isLock ? "LOCKED" : "REDEEMED";
  const redemption: Redemption = {
    coupon,
    id: json.redemption,
    merchant,
    caller: partyOf[accessKey]!,
    lockRequestId: requestId,
    discountMinor,
    orderMinor,
    store: place.store ?? null,
    terminal: place.terminal ?? null,
    orderId: place.order_id ?? null,
    status,
    stored: status,
    startedAt: at,
    expiresAt: isLock ? shift(at, isFixed ? 900 : secondTtl) : null,
    redeemedAt: isLock ? null : at,
    endedAt: null,
    reversal: null,
    reason: null,
  };
  books.redemptions.push(redemption);
  Object.assign(coupon, { status, stored: status, live: redemption });
  if (!isLock) enter(teller, redemption, "REDEMPTION", at);
  return redemption;
}

/** The ledger entry and the event of a redemption or a reversal. */
export function enter(teller: Teller, redemption: Redemption, type: Entry["type"], at: Window) {
  const { batch } = redemption.coupon;
  const isReversal = type === "REVERSAL";
  const entry: Entry = {
    redemption,
    id: isReversal ? redemption.reversal! : redemption.id,
    type,
    minor: isReversal ? -redemption.discountMinor : redemption.discountMinor,
    occurredAt: at,
    recordedAt: at,
    date: null,
    number: null,
  };
  teller.books.entries.push(entry);
  const event = isReversal ? "coupon.reversed" : "coupon.redeemed";
  happen(teller, { tenant: batch.tenant, type: event, party: batch.distributor, coupon: redemption.coupon, entry }, at);
}

/** Moves recorded_at of what was recorded since the last time; see recordedEarlier. */
export async function separateTimes({ psql, books, isRecorded }: Teller): Promise<void> {
  for (const table of ["event", "ledger_entry"])
    await psql.rows(
      `update core.${table} set recorded_at = recorded_at - interval '1 hour'
       where recorded_at > clock_timestamp() - interval '30 minutes'`,
    );
  for (const one of [...books.entries, ...books.events].filter((row) => !isRecorded.has(row))) {
    one.recordedAt = shift(one.recordedAt, -recordedEarlier);
    isRecorded.add(one);
  }
}
