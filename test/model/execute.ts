// Executes one run: compares each answer with the model's, and at the end everything that the run leaves in the
// database.
import { compareAnswer, show } from "./compare.ts";
import { writeBody } from "./body.ts";
import type { Call } from "./call.ts";
import { newCoupon, patches, work, type Coupon } from "./coupon.ts";
import type { Environment } from "./environment.ts";
import { kindOf } from "./kinds.ts";
import type { Model } from "./knowledge.ts";
import { createModel, judge } from "./model.ts";
import { createResolver, type Action } from "./resolve.ts";
import { compareRows, lastEvent } from "./rows.ts";
import type { Run } from "./steps.ts";

// The transcript of a run up to the first difference between service and model. It contains no code.
export class Mismatch extends Error {
  constructor(lines: string[], problem: string) {
    super([...lines, `  !! ${problem}`].join("\n"));
  }
}
export type Executed = { steps: number; coupons: Coupon[] };
type Execution = { environment: Environment; model: Model; isOverHttp: boolean; transcript: Transcript };
type Transcript = ReturnType<typeof createTranscript>;

export async function execute(environment: Environment, run: Run): Promise<Executed> {
  const { setup, service, badCodes } = environment;
  const since = await lastEvent(service.owner);
  const coupons: Coupon[] = [];
  for (const kind of run.coupons) coupons.push(newCoupon(kind, setup.variant, await environment.take(kind)));
  const model = createModel(setup, coupons, badCodes.mistyped);
  const transcript = createTranscript(environment, run, coupons);
  const execution = { environment, model, isOverHttp: run.isOverHttp, transcript };

  const resolve = createResolver(model, badCodes);
  for (const step of run.steps) await act(execution, resolve(step));
  await act(execution, { work: true });
  for (const coupon of coupons) await queryAtEnd(execution, coupon);
  transcript.add("at the end", await compareRows(service.owner, setup, coupons, since));
  return { steps: run.steps.length, coupons };
}

function createTranscript({ setup, badCodes }: Environment, { coupons: kinds, isOverHttp }: Run, coupons: Coupon[]) {
  const names = kinds.map((kind, index) => `#${index} ${kind}`).join(", ");
  const lines = [`  Variant ${setup.variant}, ${isOverHttp ? "over HTTP" : "through the gate"}; coupons ${names}`];
  const hide = (text: string) =>
    coupons
      .reduce((shown, { code, id }, index) => shown.replaceAll(code, `#${index}`).replaceAll(id, `cpn #${index}`), text)
      .replaceAll(badCodes.unknown, "#unknown")
      .replaceAll(badCodes.mistyped, "#mistyped");
  return {
    // Throws when there is a problem.
    add(what: string, problem: string | null): void {
      lines.push(`  ${hide(what)}`);
      if (problem !== null) throw new Mismatch(lines, hide(problem));
    },
  };
}

async function act(execution: Execution, action: Action): Promise<void> {
  if (action === null) return;
  if ("call" in action) return call(execution, action);
  const { environment, model, transcript } = execution;
  if ("work" in action) {
    await environment.work();
    work(model.coupons);
    return transcript.add("the worker expires coupons", null);
  }
  const { patch, coupon, to } = action;
  const given = await environment.patch(patch, coupon, to);
  const expected = patches[patch](coupon, to ?? "usual");
  transcript.add(
    `DBA: ${patch} #${model.coupons.indexOf(coupon)} ${to ?? ""}: ${given ?? "done"}`,
    given === expected ? null : `expected ${expected ?? "done"}`,
  );
}

async function call(execution: Execution, { call, body }: { call: Call; body: string }): Promise<void> {
  const { environment, model, isOverHttp, transcript } = execution;
  const expected = judge(model, call);
  const reply = await environment.send(call, body, isOverHttp);
  const { by, operation, values, requestId, key } = call;
  const request = `${by.accessKey} ${operation} ${JSON.stringify(values)} as ${requestId}`;
  transcript.add(
    `${request}${key === null ? "" : ` key ${key}`}: ${show(reply)}`,
    compareAnswer(expected, reply, call),
  );
  expected.learn?.(reply);
}

async function queryAtEnd(execution: Execution, coupon: Coupon): Promise<void> {
  const by = execution.model.setup.callers[0]!;
  const values = { coupon: coupon.code, merchant: kindOf(coupon.kind).merchants?.[0] ?? "mch_1" };
  const requestId = "the end";
  await call(execution, {
    call: { by, operation: "query", requestId, key: null, values },
    body: writeBody({ requestId, values }),
  });
}
