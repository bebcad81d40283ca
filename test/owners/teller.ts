// Takes the steps of the story, one after the other, and enters each in the books with the time before and after it.
import type { Test } from "tap";
import { exportCodes } from "../../src/commands/codes.ts";
import { dateOf, daySeconds, noonOffset } from "../support/business-days.ts";
import { pathOf } from "../support/path-of.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { major, moment, openBooks, pick, sameKey, shift, type Books, type Row, type Window } from "./books.ts";
import { amount, discountOf, partyOf, type Coupon, type Owner } from "./tenants.ts";

export type Teller = Awaited<ReturnType<typeof openTeller>>;
/** What acts: one side of a tenant, and the credential of the call. */
export type Side = { teller: Teller; owner: Owner };
export type By = Side & { key: string };

// separateTimes moves each recorded_at back by so much.
const recordedEarlier = 3_600;
const valid = { valid_from: moment("2020-01-01T00:00:00Z"), valid_to: moment("2099-01-01T00:00:00Z") };

export async function openTeller(t: Test, http: boolean) {
  const from = Date.now() / 1000;
  const world = await scenario(t, { file: null, http });
  const books = openBooks();
  const registered_at = { from, to: Date.now() / 1000 };
  books.note("master_key", { version: "1", registered_at, is_in_use: "true" });
  return {
    t,
    world,
    books,
    calendar: openCalendar(),
    owners: [] as Owner[],
    psql: await world.openPsql({ triggers: false }),
    /** How many events are sequenced. */
    sequenced: 0,
    during: <T>(act: () => Promise<T>) => during(world, act),
  };
}

// Each distributor has an open day. `noon` is where it is noon when the story begins.
function openCalendar() {
  const noon = noonOffset();
  const startedAt = Math.floor(Date.now() / 1000);
  // By tenant and party: how many days have passed there.
  const passed = new Map<string, number>();
  const nameOf = ({ tenant, distributorParty }: Owner) => `${tenant} ${distributorParty}`;
  const dayOf = (owner: Owner) => passed.get(nameOf(owner)) ?? 0;
  return {
    noon,
    startedAt,
    dayOf,
    pass: (owner: Owner, days = 1) => passed.set(nameOf(owner), dayOf(owner) + days),
    dateOf: (owner: Owner, days = dayOf(owner)) => dateOf(startedAt + noon + days * daySeconds),
  };
}

async function readClock({ owner }: Scenario): Promise<number> {
  const [row] = await owner.rows<{ now: string }>("select extract(epoch from clock_timestamp())::text as now");
  return Number(row!.now);
}

async function during<T>(world: Scenario, act: () => Promise<T>): Promise<{ answer: T; at: Window }> {
  const from = await readClock(world);
  const answer = await act();
  return { answer, at: { from, to: await readClock(world) } };
}

/** Sends a request and enters its answer. Answers of 200, 404, 409 and, except for a wrong code, 422 are recorded. */
export async function send({ teller, owner, key }: By, operation: string, fields: object, idempotencyKey?: string) {
  const { world, books } = teller;
  const { tenant, side } = owner;
  const caller = partyOf(key);
  const recorded = books.of("request").filter((row) => row.tenant === tenant && row.caller === caller);
  // Callers that both sides share have names for each side. Other callers use the same names.
  const isShared = caller === null || caller === "pty_p";
  const requestId = `${isShared ? `${side} ` : ""}${operation} ${recorded.length}`;
  const isRead = operation === "query";
  const body = isRead ? fields : { request_id: requestId, ...fields };
  const options = idempotencyKey === undefined ? {} : { idempotencyKey };
  const subject = findSubject(books, owner, fields);
  const { answer, at } = await teller.during(() => world.as(key).post(pathOf(operation), body, options));
  const { status, text, json } = answer;
  if (!isRead && [200, 404, 409, 422].includes(status) && json.code !== "COUPON_CODE_INVALID") {
    const first = recorded.find((row) => row.idempotency_key === (idempotencyKey ?? "none"));
    books.note("request", {
      tenant,
      caller,
      request_id: requestId,
      idempotency_key: first === undefined ? (idempotencyKey ?? null) : null,
      first_request_id: first?.request_id ?? null,
      operation,
      http_status: String(status),
      response: text,
      recorded_at: first?.recorded_at ?? at,
      code: json.code ?? null,
      ...subject,
    });
  }
  return { status, text, json, at, requestId };
}

// What a call is about. A coupon is known by its code, and a redemption by its ID or its lock.
function findSubject(books: Books, { coupons }: Owner, fields: Row): Row {
  const { redemption, lock_request_id } = fields;
  const named = Object.values(coupons).find(({ code }) => code === fields.coupon)?.id;
  const live = books
    .of("redemption")
    .find((row) => row.redemption === redemption || (row.coupon === named && row.lock_request_id === lock_request_id));
  const coupon = named ?? live?.coupon;
  const batch = books.of("coupon").find((row) => row.coupon === coupon)?.batch ?? fields.batch;
  return {
    coupon,
    merchant: fields.merchant ?? live?.merchant,
    store: fields.store ?? live?.store,
    template: fields.template ?? books.of("batch").find((row) => row.batch === batch)?.template,
  };
}

export async function sendOk(by: By, operation: string, fields: object) {
  const answer = await send(by, operation, fields);
  if (answer.status !== 200) throw new Error(`${operation}: ${answer.text}`);
  return answer;
}

/** The event of a coupon, a batch, a day or a ledger entry. readEvents adds its number, and its ID if it needs one. */
export function happen({ teller, owner }: Side, event_type: string, at: Window, of: Row): void {
  const recorded_at = shift(at, -recordedEarlier);
  const { tenant, distributorParty: party } = owner;
  teller.books.note("event", { tenant, event_type, party, occurred_at: at, recorded_at, ...of });
}

type Audited = { tenant: string; action: string; target: string; reason?: string; details: string; client?: string };

/** A changed field in the details, as PostgreSQL writes it. */
export const changed = (name: string, was: string, is: string): string =>
  `{"${name}": {"new": "${is}", "old": "${was}"}}`;

/** Does something as an administrator, and enters it in the audit. `details` is JSON as PostgreSQL writes it. */
export async function patch(teller: Teller, what: Audited, act: () => Promise<unknown>): Promise<Window> {
  const { at } = await teller.during(act);
  enterAudit(teller, what, at);
  return at;
}

export function enterAudit({ world, books }: Pick<Teller, "world" | "books">, what: Audited, at: Window): void {
  books.note("audit", { login: world.address.user!, client: "coupon test", ...what, recorded_at: at });
}

/** A batch with a coupon for each name, minted, exported and, unless it is held back, released. */
export async function makeBatch(side: Side, template: string, names: string[], isReleased = true): Promise<string> {
  const { teller, owner } = side;
  const { world, books, during } = teller;
  const { tenant, variant, maker, makerParty } = owner;
  const total_count = names.length;
  const batch = await orderBatch(side, template, total_count);
  const id = batch.batch;
  const { at } = await during(() => world.mint());
  Object.assign(batch, { status: "COMPLETED", minted_count: String(total_count), completed_at: at });
  happen(side, "batch.generated", at, { party: makerParty, batch: id });
  const pages: { code: string; coupon_id: string }[][] = [];
  const readCodes = async () => pages.push(...(await Array.fromAsync(exportCodes(world.admin, world.keys, id, true))));
  const details = `{"status": "COMPLETED", "total_count": ${total_count}}`;
  await patch(teller, { tenant, action: "export_codes", target: id, details }, readCodes);
  for (const [index, { code, coupon_id }] of pages.flat().entries()) {
    const row = books.note("coupon", {
      tenant,
      coupon: coupon_id,
      status: isReleased || variant === "A" ? "ISSUED" : "CREATED",
      stored_status: "ISSUED",
      batch: id,
      number: String(index + 1),
      template,
      ...valid,
      created_at: at,
    });
    owner.coupons[names[index]!] = { code, id: coupon_id, row, requestId: "none", last: {} };
  }
  if (!isReleased) return id;
  const released = await sendOk({ ...side, key: maker }, "allocate_batch", { batch: id });
  Object.assign(batch, { status: "ALLOCATED", allocated_at: released.at });
  happen(side, "allocation.completed", released.at, { batch: id });
  return id;
}

export async function orderBatch(side: Side, template: string, total_count: number): Promise<Row> {
  const { tenant, maker, makerParty, distributorParty } = side.owner;
  const { json, at } = await sendOk({ ...side, key: maker }, "create_batch", { template, total_count });
  return side.teller.books.note("batch", {
    tenant,
    batch: json.batch.external_id,
    status: "PENDING",
    total_count: String(total_count),
    minted_count: "0",
    template,
    maker: makerParty,
    distributor: distributorParty,
    ...valid,
    key_version: "1",
    created_at: at,
    recall_voided_count: "0",
  });
}

/** What a grant sends. Further fields, such as order_id, also stand in the books under their names. */
export type Order = { orderMinor: number; merchant?: string; [field: string]: string | number | undefined };

/** A lock or a redeem, at the owner's merchant unless the order names another. */
export async function grant(by: By, operation: "lock" | "redeem", coupon: Coupon, order: Order): Promise<void> {
  const { t, books } = by.teller;
  const { tenant, side, currency, merchant: own } = by.owner;
  const { orderMinor, merchant = own, ...place } = order;
  const order_amount = Number(amount(by.owner, orderMinor, currency));
  const fields = { coupon: coupon.code, merchant, order_amount, ...place };
  const { json, text, at, requestId } = await sendOk(by, operation, fields);
  const discountMinor = discountOf(by.owner, orderMinor);
  const shown = (answer: string) => /"discount_amount":([^,}]+)/.exec(answer)?.[1];
  const discount = amount(by.owner, discountMinor, currency);
  t.equal(shown(text), discount, `${operation} in ${tenant}`);
  const queried = await sendOk(by, "query", { coupon: coupon.code, merchant });
  t.equal(shown(queried.text), discount, `query in ${tenant}`);
  const isLock = operation === "lock";
  const status = isLock ? "LOCKED" : "REDEEMED";
  const lock_expires_at = isLock ? shift(at, side === 1 ? 604_800 : 604_000) : null;
  const last = books.note("redemption", {
    tenant,
    redemption: json.redemption,
    status,
    stored_status: status,
    coupon: coupon.id,
    merchant,
    caller: partyOf(by.key),
    lock_request_id: requestId,
    discount_amount: major(discountMinor, currency),
    order_amount: major(orderMinor, currency),
    currency,
    ...place,
    started_at: at,
    lock_expires_at,
    redeemed_at: isLock ? null : at,
  });
  Object.assign(coupon, { requestId, last });
  Object.assign(coupon.row, { status, stored_status: status, live_redemption: json.redemption, lock_expires_at });
  if (!isLock) enter(by, coupon, "REDEMPTION", at);
}

/** The ledger entry and the event of the coupon's last redemption or of its reversal. */
export function enter(side: Side, { row, last }: Coupon, entry_type: "REDEMPTION" | "REVERSAL", at: Window): void {
  const isReversal = entry_type === "REVERSAL";
  const id = (isReversal ? last.reversal : last.redemption) as string;
  const { distributorParty: distributor, makerParty: maker } = side.owner;
  const same = "tenant redemption coupon merchant store terminal order_id order_amount discount_amount currency";
  const reversed = { reversal: id, discount_amount: `-${last.discount_amount}` };
  side.teller.books.note("ledger", {
    ...pick(last, same),
    ...pick(row, "batch template"),
    ...(isReversal && reversed),
    entry: sameKey("led", id),
    entry_type,
    maker,
    distributor,
    occurred_at: at,
    recorded_at: shift(at, -recordedEarlier),
  });
  const of = { event: sameKey("evt", id), ...pick(last, "coupon redemption") };
  happen(side, isReversal ? "coupon.reversed" : "coupon.redeemed", at, of);
}

/** Moves recorded_at of what was recorded lately, so that it differs from occurred_at. */
export async function separateTimes({ psql }: Teller): Promise<void> {
  for (const table of ["event", "ledger_entry"])
    await psql.rows(
      `update core.${table} set recorded_at = recorded_at - interval '1 hour'
       where recorded_at > clock_timestamp() - interval '30 minutes'`,
    );
}
