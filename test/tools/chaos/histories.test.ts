// The checker judges recorded histories: a clean one, the same with faults that a service could have, and histories
// that leave open what happened. No service runs.
import fc from "fast-check";
import t, { type Test } from "tap";
import type { Attempt, Entry, History } from "./clients.ts";
import { judgeHistories } from "./histories.ts";
import { linearize, type Step } from "./linearize.ts";
import { tenants, usualTemplate, type Kind } from "./workload.ts";

// at: when it was sent and answered. null: 503. lost: an earlier attempt, with the same fate.
type Span = [from: number, to: number];
type Row = { name: string; till: 0 | 1; kind: Kind; values?: object; at: Span; answer: object | null; lost?: Span };

const startedAt = Date.parse("2026-11-20T10:00:00Z");
const timeAt = (ms: number) => new Date(startedAt + ms).toISOString();
const redemption = (number: number) => `red_${String(number).padStart(26, "0")}`;
const minted = { code: "CODE", id: `cpn_${"1".repeat(26)}`, batch: "bat_1" };
const subject = { ...minted, variant: "A" as const, template: usualTemplate };
const lockEnd = 900_000;

const granted = (number: number, more = {}) => ({
  ok: true,
  redemption: redemption(number),
  coupon_id: minted.id,
  discount_amount: 5,
  currency: "EUR",
  ...more,
});
const locked = (number: number, end = lockEnd) => granted(number, { lock_expires_at: timeAt(end) });
const became = (number: number, status: string) => ({ ok: true, redemption: redemption(number), status });
const reversed = (number: number) => ({ ...became(number, "REVERSED"), reversal: `rvs_${"2".repeat(26)}` });
const refused = (code: string, details: object | null = null) => ({ code, message: "why", request_id: "id", details });
const lockedUntil = (end = lockEnd) => refused("COUPON_LOCKED", { lock_expires_at: timeAt(end) });
const expired = (end = lockEnd) => refused("LOCK_EXPIRED", { lock_expires_at: timeAt(end) });
const redeemed = refused("COUPON_REDEEMED", { redeemed_at: timeAt(0) });

function shown(status: string, number?: number, till: 0 | 1 = 0) {
  const known = { coupon_id: minted.id, template_id: usualTemplate, batch_id: minted.batch, created_at: timeAt(0) };
  const valid = { valid_from: "2020-01-01T00:00:00.000Z", valid_to: "2099-01-01T00:00:00.000Z" };
  const last = number !== undefined && {
    redemption: redemption(number),
    merchant_id: tenants.A.tills[till].merchant,
    status: status === "ISSUED" ? "REVERSED" : status,
    started_at: timeAt(0),
    discount_amount: 5,
    currency: "EUR",
  };
  return { ok: true, coupon: { ...known, ...valid, status, ...(last && { redemption: last }) } };
}

function call(at: Row["at"], till: 0 | 1, kind: Kind, name: string, answer: object | null, values?: object): Row {
  return { at, till, kind, name, answer, ...(values && { values }) };
}
const order = { order_amount: 20 };
const ofLock = (name: string) => ({ lock_request_id: name });

const clean: Row[] = [
  call([0, 10], 0, "lock", "lock", locked(1), order),
  call([2, 12], 1, "lock", "late lock", lockedUntil(), order),
  call([3, 9], 1, "query", "early query", shown("ISSUED")),
  call([20, 25], 1, "query", "query", shown("LOCKED", 1)),
  call([30, 40], 0, "confirm", "confirm", became(1, "REDEEMED"), ofLock("lock")),
  call([31, 50], 1, "redeem", "late redeem", redeemed, order),
  call([60, 70], 0, "reverse", "reverse", reversed(1), { redemption: redemption(1) }),
  call([65, 80], 1, "redeem", "redeem", granted(2), order),
  call([90, 95], 0, "query", "last query", shown("REDEEMED", 2, 1)),
];

const attemptOf = ({ at: [sentAt, endedAt], answer }: Pick<Row, "at" | "answer">): Attempt => {
  const { code = null } = (answer ?? { code: "UNAVAILABLE" }) as { code?: string };
  const status = answer === null ? 503 : code === null ? 200 : 409;
  return { sentAt, endedAt, status, code, text: JSON.stringify(answer), isReplay: false };
};

function record(rows: Row[]): History {
  const entries = rows.map((row): [string, Entry] => {
    const { name, till, kind, values = {} } = row;
    const { accessKey, merchant } = tenants.A.tills[till];
    const more = kind === "cancel" ? {} : { merchant };
    const body = kind === "reverse" ? values : { ...values, coupon: minted.code, ...more };
    const lost = row.lost === undefined ? [] : [attemptOf({ at: row.lost, answer: null })];
    const attempts = [...lost, attemptOf(row)];
    const names = { requestId: name, variant: "A" as const, accessKey, kind };
    const call = { ...names, values: { coupon: minted.code }, needs: null, idempotencyKey: null, again: "never" };
    return [name, { call: call as Entry["call"], body: { request_id: name, ...body }, attempts }];
  });
  return { entries: new Map(entries), attempts: [], startedAt };
}

const replace = (name: string, more: Partial<Row>): Row[] =>
  clean.map((row) => (row.name === name ? { ...row, ...more } : row));
const judge = (rows: Row[]) => judgeHistories(record(rows), [subject]);

// names: the calls whose answers contradict each other.
function findsConflict(t: Test, rows: Row[], names: string[]): void {
  const { unexplained } = judge(rows);
  t.equal(unexplained.length, 1);
  const [history = ""] = unexplained;
  t.match(history, new RegExp(`^coupon ${minted.id}`), "names the coupon");
  t.equal(history.split("\n").length, rows.length + 1, "shows the whole history");
  t.notMatch(history, minted.code, "shows no code");
  const marked = rows.filter(({ name, kind }) => history.match(new RegExp(`!! .* ${kind} ${name} {`)));
  t.strictSame(
    marked.map(({ name }) => name),
    names,
  );
}

t.test("a clean history is explained, in few states", async (t) => {
  const { calls, coupons, most, states, ...found } = judge(clean);
  t.strictSame([calls, coupons, most], [clean.length, 1, clean.length]);
  t.ok(states <= 3 * clean.length, `${states} states`);
  t.strictSame([found.unexplained, found.undecided], [[], []]);
});

t.test("a query that answers from the past contradicts the calls that were answered before", async (t) => {
  findsConflict(t, replace("last query", { answer: shown("ISSUED") }), ["lock", "last query"]);
  findsConflict(t, replace("last query", { answer: shown("REDEEMED", 1) }), ["reverse", "last query"]);
  findsConflict(t, replace("query", { answer: shown("ISSUED") }), ["lock", "query"]);
});

t.test("a refusal contradicts the calls that leave no reason for it", async (t) => {
  const early = call([20, 30], 1, "void", "early void", refused("COUPON_NOT_VOIDABLE"));
  findsConflict(t, [early, call([40, 50], 0, "lock", "lock", locked(1), order)], ["early void"]);
  findsConflict(t, replace("confirm", { answer: expired() }), ["confirm"]);
  findsConflict(t, replace("redeem", { at: [75, 80], answer: lockedUntil() }), ["late lock", "confirm", "redeem"]);
});

t.test("two grants at the same time contradict each other", async (t) => {
  findsConflict(t, replace("late lock", { answer: locked(3) }), ["lock", "late lock"]);
  findsConflict(t, replace("late redeem", { answer: granted(3) }), ["lock", "late redeem"]);
});

const unknown = call([0, 10], 0, "redeem", "unknown", null, order);
const query = (from: number, answer: object) => call([from, from + 5], 1, "query", `query at ${from}`, answer);
const brief = call([0, 10], 0, "lock", "brief", locked(1, 1_000), order);
const confirmBrief = (at: Row["at"]) => call(at, 0, "confirm", "confirm", became(1, "REDEEMED"), ofLock("brief"));
const lockAgain = (at: Row["at"], answer: object) => call(at, 1, "lock", "again", answer, order);

t.test("calls without an answer may take effect at any later time, or never", async (t) => {
  const histories: Record<string, Row[]> = {
    "it took effect": [unknown, query(20, shown("REDEEMED", 1))],
    "it never did": [unknown, query(20, shown("ISSUED")), call([30, 40], 1, "redeem", "redeem", granted(2), order)],
    "it did later": [unknown, query(20, shown("ISSUED")), query(30, shown("REDEEMED", 1))],
    "the repeat has the answer": [
      { ...unknown, at: [500, 510], answer: granted(1), lost: [0, 10] },
      query(20, shown("ISSUED")),
      query(30, shown("REDEEMED", 1)),
      query(40, shown("REDEEMED", 1)),
    ],
    "a later call shows the redemption": [
      call([0, 10], 0, "lock", "lock", null, order),
      lockAgain([12, 15], lockedUntil(12_345)),
      call([20, 30], 0, "confirm", "confirm", became(1, "REDEEMED"), ofLock("lock")),
    ],
    "a cancel came before its lock": [
      call([0, 10], 0, "cancel", "cancel", null, ofLock("lock")),
      call([20, 30], 0, "lock", "lock", refused("LOCK_CANCELLED"), order),
    ],
  };
  for (const [title, rows] of Object.entries(histories)) t.strictSame(judge(rows).unexplained, [], title);
  const [seen, unseen] = [query(20, shown("REDEEMED", 1)), query(30, shown("ISSUED"))];
  findsConflict(t, [unknown, seen, unseen], [seen.name, unseen.name]);
  findsConflict(t, [seen, { ...unknown, at: [26, 30] }], [seen.name]);
});

t.test("a lock ends at its end, give or take the clock", async (t) => {
  const histories: Record<string, Row[]> = {
    "the coupon is free": [brief, lockAgain([1_500, 1_510], locked(2)), query(1_600, shown("LOCKED", 2, 1))],
    "the clock was corrected": [brief, lockAgain([900, 910], locked(2)), query(1_600, shown("LOCKED", 2, 1))],
    "the confirm decided in time": [brief, confirmBrief([990, 1_400]), query(1_300, shown("ISSUED"))],
    "the grant took longer than the lock": [
      { ...brief, at: [0, 5_000] },
      call([2_000, 2_010], 0, "confirm", "early", refused("LOCK_NOT_FOUND"), ofLock("brief")),
      call([5_100, 5_110], 0, "confirm", "late", expired(1_000), ofLock("brief")),
    ],
  };
  for (const [title, rows] of Object.entries(histories)) t.strictSame(judge(rows).unexplained, [], title);
  findsConflict(t, [brief, lockAgain([500, 510], locked(2))], ["brief", "again"]);
  findsConflict(t, [brief, lockAgain([2_000, 2_010], lockedUntil(1_000))], ["brief", "again"]);
  findsConflict(t, [brief, confirmBrief([2_000, 2_010])], ["brief", "confirm"]);
  const meanwhile = lockAgain([1_300, 1_310], locked(2));
  findsConflict(t, [brief, confirmBrief([990, 1_400]), meanwhile], ["confirm", "again"]);
  const voided = call([1_300, 1_310], 1, "void", "void", { ok: true, coupon_id: minted.id, status: "VOIDED" });
  findsConflict(t, [brief, confirmBrief([990, 1_400]), voided], ["confirm", "void"]);
  const ofOther = call([990, 1_400], 1, "confirm", "of other", refused("LOCK_NOT_FOUND"), ofLock("brief"));
  for (const first of [ofOther, query(1_200, shown("LOCKED", 1))])
    findsConflict(t, [brief, first, query(2_000, shown("LOCKED", 1))], ["brief", "query at 2000"]);
});

t.test("a search that reaches its limit is undecided", async (t) => {
  const { undecided, unexplained } = judgeHistories(record(clean), [subject], { states: 3, statesOfConflict: 3 });
  t.strictSame([undecided.length, unexplained.length], [1, 0]);
});

t.test("the search visits each set of steps once", async (t) => {
  const addition: Step<number> = { from: 0, to: 9, apply: (state) => [state + 1] };
  const wrong: Step<number> = { from: 0, to: 9, apply: () => [] };
  const steps = [wrong, ...Array.from({ length: 8 }, () => ({ ...addition }))];
  const verdict = linearize(steps, { initial: 0, keyOf: String, limit: 1_000 });
  t.strictSame(verdict, { is: "unexplained", states: 2 ** 8 });
});

// Additions and readings of one number.
const numberCall = fc.record({ from: fc.nat(9), lasts: fc.nat(5), isAddition: fc.boolean(), value: fc.nat(3) });

t.test("the search agrees with trying every order", async () => {
  const property = fc.property(fc.array(fc.tuple(numberCall, fc.nat(3)), { maxLength: 6 }), (calls) => {
    const steps = calls.map(([{ from, lasts, isAddition, value }, luck]): Step<number> => {
      const to = isAddition && luck === 0 ? Infinity : from + lasts;
      return { from, to, apply: (state) => (isAddition ? [state + 1] : state === value ? [state] : []) };
    });
    const tryAll = (left: Step<number>[], state: number): boolean =>
      left.every(({ to }) => to === Infinity) ||
      left.some((step) => {
        const others = left.filter((one) => one !== step);
        return others.every(({ to }) => to >= step.from) && step.apply(state).some((next) => tryAll(others, next));
      });
    const { is } = linearize(steps, { initial: 0, keyOf: String, limit: 10_000 });
    return is === (tryAll(steps, 0) ? "explained" : "unexplained");
  });
  fc.assert(property, { numRuns: 500 });
});
