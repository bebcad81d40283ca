// Executes one life: compares each answer with the model's, and at the end the rows that the life leaves in the
// database.
import { createChoices, resolve, type Action } from "./calls.ts";
import { compareAnswer } from "./compare.ts";
import { newCoupon, patches, settle, statusOf, type Coupon } from "./coupon.ts";
import { judge, type Call, type Model } from "./judge.ts";
import type { Life } from "./life.ts";
import { compareRows, lastEvent } from "./rows.ts";
import type { Service } from "./service.ts";
import { kindOf } from "./setup.ts";

// The transcript of a life up to the first difference between service and model. It contains no code.
export class Mismatch extends Error {
  constructor(lines: string[], problem: string) {
    super([...lines, `  !! ${problem}`].join("\n"));
  }
}
type Execution = { service: Service; model: Model; lines: string[] };

export async function execute(service: Service, life: Life): Promise<void> {
  const { setup } = service;
  const since = await lastEvent(service.owner);
  const coupons: Coupon[] = [];
  for (const kind of life.coupons) coupons.push(newCoupon(kindOf(kind), setup.variant, await service.take(kind)));
  const model: Model = { setup, coupons, records: [] };
  const kinds = life.coupons.map((kind, index) => `#${index} ${kind}`).join(", ");
  const execution = { service, model, lines: [`  Variant ${setup.variant}; coupons ${kinds}`] };
  const choices = createChoices(model);
  for (const step of life.steps) await act(execution, resolve(choices, step));
  await work(execution);
  note(execution, "at the end", await compareRows(service.owner, coupons, since));
}

// Throws when there is a problem.
function note({ model: { coupons }, lines }: Execution, what: string, problem: string | null): void {
  const hide = (text: string) =>
    coupons.reduce((shown, { code, id }, at) => shown.replaceAll(code, `#${at}`).replaceAll(id, `cpn #${at}`), text);
  lines.push(`  ${hide(what)}`);
  if (problem !== null) throw new Mismatch(lines, hide(problem));
}

async function act(execution: Execution, action: Action): Promise<void> {
  if (action === null) return;
  if ("call" in action) return send(execution, action.call);
  if ("work" in action) return work(execution);
  const { service, model } = execution;
  const { patch, coupon, to } = action;
  // A coupon whose expiry is not recorded yet could become valid again, with or without the event of its expiry.
  if (patch === "extend" && to !== "past") await work(execution);
  const given = await service.patch(patch, coupon, to);
  const expected = patches[patch](coupon, to);
  const what = `DBA: ${patch} #${model.coupons.indexOf(coupon)} ${patch === "extend" ? to : ""}: ${given ?? "done"}`;
  note(execution, what, given === expected ? null : `expected ${expected ?? "done"}`);
  await workOnRecalls(execution);
}

// The worker of another life might void a recalled coupon at any moment from now on, so this one does it at once.
async function workOnRecalls(execution: Execution): Promise<void> {
  const isDue = (coupon: Coupon) => coupon.isRecalled && ["CREATED", "ISSUED"].includes(statusOf(coupon));
  if (execution.model.coupons.some(isDue)) await work(execution);
}

async function work(execution: Execution): Promise<void> {
  await execution.service.work();
  for (const coupon of execution.model.coupons) settle(coupon);
  note(execution, "the worker expires and recalls coupons", null);
}

async function send(execution: Execution, call: Call): Promise<void> {
  const expected = judge(execution.model, call);
  const answer = await execution.service.send(call);
  const { by, operation, values, requestId, key } = call;
  const named = key === null ? requestId : `${requestId} key ${key}`;
  const given = `${answer.status} ${answer.text}${answer.isReplay ? ", replayed" : ""}`;
  const what = `${by.accessKey} ${operation} ${JSON.stringify(values)} as ${named}: ${given}`;
  note(execution, what, compareAnswer(expected, answer));
  expected.learn?.(answer);
  await workOnRecalls(execution);
}
