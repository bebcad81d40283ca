// Judges the history of each coupon: is there an order of its calls, each at a moment between its request and its
// answer, in which the model gives every answer? Calls on different coupons have nothing to do with each other.
import type { Entry, History } from "./clients.ts";
import { linearize, type Verdict } from "./linearize.ts";
import { operationsOf, searchOf, stepsOf, type Operation, type Subject } from "./operations.ts";

// states: of the searches. most: calls on one coupon. unexplained, undecided: printed histories.
export type Judgement = {
  calls: number;
  coupons: number;
  states: number;
  ms: number;
  most: number;
  unexplained: string[];
  undecided: string[];
};
type Limits = { states: number; statesOfConflict: number };

const usualLimits = { states: 100_000, statesOfConflict: 10_000 };

export function judgeHistories(
  { entries, startedAt }: History,
  subjects: Subject[],
  limits: Limits = usualLimits,
): Judgement {
  const beganAt = performance.now();
  const judgement: Judgement = { calls: 0, coupons: 0, states: 0, ms: 0, most: 0, unexplained: [], undecided: [] };
  const byCode = Map.groupBy(entries.values(), (entry) => findCode(entry, entries));
  for (const subject of subjects) {
    const operations = (byCode.get(subject.code) ?? []).flatMap(operationsOf).sort((a, b) => a.from - b.from);
    if (operations.length === 0) continue;
    const decide = (some: Operation[], limit: number): Verdict =>
      linearize(stepsOf(some, subject, startedAt), searchOf(subject, limit));
    const { is, states } = decide(operations, limits.states);
    judgement.calls += operations.length;
    judgement.coupons += 1;
    judgement.states += states;
    judgement.most = Math.max(judgement.most, operations.length);
    if (is === "undecided") judgement.undecided.push(print(subject, operations, []));
    if (is !== "unexplained") continue;
    const isConflict = (some: Operation[]) => decide(some, limits.statesOfConflict).is === "unexplained";
    judgement.unexplained.push(print(subject, operations, findConflict(operations, isConflict)));
  }
  judgement.ms = performance.now() - beganAt;
  return judgement;
}

// The code of the coupon that a call is about; a reverse names the call whose redemption it reverses.
function findCode({ call: { values, needs } }: Entry, entries: History["entries"]): unknown {
  if (values["coupon"] !== undefined || needs === null) return values["coupon"];
  return entries.get(needs)?.call.values["coupon"];
}

// A few calls whose answers contradict each other, whatever the others were answered: the earliest such calls.
function findConflict(operations: Operation[], isConflict: (some: Operation[]) => boolean): Operation[] {
  let known = operations;
  for (const operation of operations.toReversed()) {
    const fewer = known.map((one) => (one === operation ? { ...one, to: Infinity, answer: null } : one));
    if (isConflict(fewer)) known = fewer;
  }
  return known.filter(({ answer }) => answer !== null);
}

// Times are in milliseconds since the first call. Codes are not shown.
function print({ id, batch, template }: Subject, operations: Operation[], conflict: Operation[]): string {
  const isMarked = ({ call, from }: Operation) =>
    conflict.some((one) => one.call.requestId === call.requestId && one.from === from);
  const lines = operations.map((operation) => {
    const { call, from, to } = operation;
    const { coupon: _, ...values } = call.values;
    const moment = (at: number) => String(Math.round(at - operations[0]!.from)).padStart(6);
    const time = `${moment(from)} – ${to === Infinity ? "     ?" : moment(to)}`;
    const what = `${call.by.accessKey} ${call.operation} ${call.requestId} ${JSON.stringify(values)}`;
    return `  ${isMarked(operation) ? "!!" : "  "} ${time}  ${what}: ${printAnswers(operation, id)}`;
  });
  return [`coupon ${id} of ${batch}, ${template}; !! marks answers that contradict each other`, ...lines].join("\n");
}

function printAnswers({ attempts, answer }: Operation, id: string): string {
  const others = attempts.filter(({ status }) => status !== answer?.status).map(({ status, code }) => code ?? status);
  if (answer === null) return others.join(", ");
  const { ok: _, message: __, request_id: ___, details, coupon, ...shown } = answer.json;
  const { status, coupon_id, redemption: last } = coupon ?? {};
  const of = coupon_id === id ? "" : ` of ${coupon_id}`;
  const text = coupon
    ? `${status}${of}${last ? `, ${last.redemption} ${last.status}` : ""}`
    : JSON.stringify({ ...shown, ...(details && { details }) });
  return [...others, `${answer.status} ${text}`].join(", ");
}
