// The calls on a coupon as steps of a search. What a call may do, and what it answers, is for the model to say. The end
// of a lock is a step too, because the model has no clock.
import { copyOf, newCoupon, type Coupon, type Minted, type Redemption } from "../model/coupon.ts";
import { compareAnswer } from "../model/compare.ts";
import { isoTime, judge, type Answer, type Call, type Expected, type Model } from "../model/judge.ts";
import type { Kind } from "../model/setup.ts";
import { isFinal, verdictOf, type Attempt, type Entry } from "./clients.ts";
import type { Search, Step } from "./linearize.ts";
import { lockSecondsOf, tenants, type Variant } from "./workload.ts";

export type Subject = Minted & { variant: Variant; template: string };
// A request, however often it was sent, or one reading of a query. Without an answer it may have taken effect at any
// time, or never.
export type Operation = { call: Call; attempts: Attempt[]; from: number; to: number; answer: Answer | null };
// ended: locks whose end came before them. A statement may take longer than its lock lasts.
export type State = { model: Model; ended: string[] };

// The clock of the database is the clock of this machine, which may be corrected during a run.
const clockToleranceMs = 250;

// Attempts that were turned away have no effect. A query without an answer says nothing.
export function operationsOf({ call: { kind, variant, accessKey, requestId, idempotencyKey }, body, attempts }: Entry) {
  const { request_id: _, ...values } = body;
  const scope = variant === "A" ? "tenant" : accessKey;
  const merchants = tenants[variant].tills.map(({ merchant }) => merchant);
  const by = { accessKey, scope, merchants, isOwn: true, mayRelease: false };
  const call = { by, operation: kind as Call["operation"], requestId, key: idempotencyKey, values };
  const sent = attempts.filter((attempt) => verdictOf(attempt) !== "unprocessed");
  const answered = sent.filter(isFinal).sort((a, b) => a.endedAt - b.endedAt);
  if (kind === "query") return answered.map((attempt) => operationOf(call, [attempt], attempt));
  return sent.length === 0 ? [] : [operationOf(call, sent, answered[0])];
}

function operationOf(call: Call, attempts: Attempt[], answered: Attempt | undefined): Operation {
  const from = Math.min(...attempts.map(({ sentAt }) => sentAt));
  if (answered === undefined) return { call, attempts, from, to: Infinity, answer: null };
  const { status, text, endedAt } = answered;
  const answer = { status: status!, text, json: JSON.parse(text), isReplay: false };
  return { call, attempts, from, to: endedAt, answer };
}

// startedAt: what the clock of the machine showed at 0 of the operations' times.
export function stepsOf(operations: Operation[], subject: Subject, startedAt: number): Step<State>[] {
  const unclaimed = findUnclaimed(operations);
  const toLocal = (time: string) => Date.parse(time) - startedAt;
  return operations.flatMap((operation) => {
    const { from, to, call } = operation;
    const step: Step<State> = { from, to, apply: (state) => perform(state, operation, { unclaimed, toLocal }) };
    const end = endOfLock(operation, subject, toLocal);
    return end === null ? [step] : [step, { ...end, apply: (state: State) => endLock(state, call.requestId, end.to) }];
  });
}

// A lock and its decision, which only an answer shows, use the same clock.
function endOfLock({ call, from, answer }: Operation, { template }: Subject, toLocal: (time: string) => number) {
  if (call.operation !== "lock") return null;
  if (answer === null) return { from: from + lockSecondsOf[template]! * 1_000 - clockToleranceMs, to: Infinity };
  if (answer.status !== 200) return null;
  const endsAt = toLocal(answer.json.lock_expires_at);
  return { from: endsAt - clockToleranceMs, to: endsAt + clockToleranceMs };
}

// The redemptions that answers and calls name, and that no known answer has granted.
function findUnclaimed(operations: Operation[]): string[] {
  const granted = operations.map(({ call, answer }) => (isGrant(call) ? answer?.json.redemption : undefined));
  const named = operations.flatMap(
    ({ call, answer }) => `${JSON.stringify(call.values)} ${answer?.text ?? ""}`.match(/\bred_\w{26}\b/g) ?? [],
  );
  return [...new Set(named)].filter((id) => !granted.includes(id));
}

const isGrant = ({ operation }: Call): boolean => operation === "lock" || operation === "redeem";

export function searchOf({ variant, template, ...minted }: Subject, limit: number): Search<State> {
  const kind: Kind = { template, currency: "EUR", fixed: 500, isReissued: true };
  const setup = { variant, unit: "major" as const, callers: [] };
  const model: Model = { setup, coupons: [newCoupon(kind, variant, minted)], records: [] };
  return { initial: { model, ended: [] }, keyOf, limit };
}

const couponOf = ({ model }: State): Coupon => model.coupons[0]!;

// The calls that have come follow from the steps that have been done, all but those without an answer: what matters of
// those is here too.
function keyOf(state: State): string {
  const { redemptions, isVoided, marks } = couponOf(state);
  const each = redemptions.map(({ id, lockId, status, isPastEnd }) => `${id} ${lockId} ${status} ${isPastEnd}`);
  return JSON.stringify([each, isVoided, [...marks].sort(), [...state.ended].sort()]);
}

const copy = ({ model, ended }: State): State => ({
  model: { ...model, coupons: model.coupons.map(copyOf), records: [...model.records] },
  ended: [...ended],
});

type Context = { unclaimed: string[]; toLocal(time: string): number };

function perform(state: State, operation: Operation, { unclaimed, toLocal }: Context): State[] {
  const { call, answer } = operation;
  return [state, ...decidedBefore(state, operation, toLocal)].flatMap((before) => {
    const expected = judge(before.model, call);
    if (before !== state && expected.status !== 200) return [];
    if (answer !== null) return compareAnswer(expected, answer) === null ? [learn(before, call, answer)] : [];
    return imagineAnswers(before, call, expected, unclaimed).map((imagined) => learn(before, call, imagined));
  });
}

// A confirm or cancel that decides just before the end of its lock may commit after it. It holds the coupon meanwhile,
// so nothing else has happened to the coupon, but a query may have shown it without the lock.
function decidedBefore(state: State, { call, from }: Operation, toLocal: Context["toLocal"]): State[] {
  const last = couponOf(state).redemptions.at(-1);
  if (last === undefined || last.lockId !== call.values["lock_request_id"]) return [];
  if (last.status !== "LOCKED" || !last.isPastEnd || couponOf(state).isVoided) return [];
  const { lockExpiresAt } = last;
  if (typeof lockExpiresAt === "string" && from > toLocal(lockExpiresAt) + clockToleranceMs) return [];
  const before = copy(state);
  couponOf(before).redemptions.at(-1)!.isPastEnd = false;
  return [before];
}

// The answers that may have been lost.
function imagineAnswers(state: State, call: Call, { status }: Expected, unclaimed: string[]): Answer[] {
  const answerOf = (json: object) => ({ status, text: JSON.stringify(json), json, isReplay: false });
  if (status !== 200 || !isGrant(call)) return [answerOf({})];
  const isFree = (id: string) => !couponOf(state).redemptions.some((one) => one.id === id);
  const more = call.operation === "lock" ? { lock_expires_at: isoTime } : {};
  const ids = [...unclaimed.filter(isFree), `never seen: ${call.requestId}`];
  return ids.map((redemption) => answerOf({ redemption, ...more }));
}

// The state after a call with this answer.
function learn(state: State, call: Call, answer: Answer): State {
  const next = copy(state);
  judge(next.model, call).learn?.(answer);
  const index = next.ended.indexOf(call.requestId);
  if (index === -1 || !isGrant(call)) return next;
  next.ended.splice(index, 1);
  const lock = findLock(next, call.requestId);
  if (lock !== undefined) lock.isPastEnd = true;
  return next;
}

// The end of a lock that may never have come can wait for it.
function endLock(state: State, lockId: string, to: number): State[] {
  const next = copy(state);
  const lock = findLock(next, lockId);
  if (lock?.status === "LOCKED") lock.isPastEnd = true;
  if (lock === undefined) next.ended.push(lockId);
  return lock === undefined && to === Infinity ? [] : [next];
}

const findLock = (state: State, lockId: string): Redemption | undefined =>
  couponOf(state).redemptions.find((redemption) => redemption.lockId === lockId);
