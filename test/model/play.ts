// One run: each step is done, its answer compared with the model's, and in the end all that is left in the database.
import { compareAnswer, show } from "./compare.ts";
import { newCoupon, patches, work, type Coupon } from "./coupon.ts";
import { kindOf } from "./kinds.ts";
import { createModel, type Call } from "./model.ts";
import { createResolver, type Doing } from "./resolve.ts";
import { compareRows, lastEvent } from "./rows.ts";
import { spell } from "./spell.ts";
import type { Run } from "./steps.ts";
import type { World } from "./world.ts";

// What a run was, step by step, up to where the service and the model part. It holds no code.
export class Departure extends Error {
  constructor(lines: string[], problem: string) {
    super([...lines, `  !! ${problem}`].join("\n"));
  }
}
export type Played = { steps: number; coupons: Coupon[] };

export async function play(world: World, run: Run): Promise<Played> {
  const { cast } = world;
  const since = await lastEvent(world.service.owner);
  const coupons: Coupon[] = [];
  for (const kind of run.coupons) coupons.push(newCoupon(kind, cast.variant, await world.take(kind)));
  const model = createModel(cast, coupons, world.odd.mistyped);
  const resolve = createResolver(cast, model, world.odd);
  const lines = [
    `  Variant ${cast.variant}, ${run.isOverHttp ? "over HTTP" : "by the gate"}; coupons ${run.coupons.map((kind, index) => `#${index} ${kind}`).join(", ")}`,
  ];

  const tell = (what: string, problem: string | null) => {
    lines.push(`  ${what}`);
    if (problem !== null) throw new Departure(lines, problem);
  };
  const hide = (text: string) =>
    coupons
      .reduce((shown, { code, id }, index) => shown.replaceAll(code, `#${index}`).replaceAll(id, `cpn #${index}`), text)
      .replaceAll(world.odd.ghost, "#ghost")
      .replaceAll(world.odd.mistyped, "#mistyped");

  async function call({ call, body }: { call: Call; body: string }): Promise<void> {
    const expected = model.judge(call);
    const reply = await world.send(call, body, run.isOverHttp);
    const problem = compareAnswer(expected, reply, call);
    const key = call.key === null ? "" : ` key ${call.key}`;
    tell(
      hide(
        `${call.by.accessKey} ${call.operation} ${JSON.stringify(call.values)} as ${call.requestId}${key}: ${show(reply)}`,
      ),
      problem && hide(problem),
    );
    expected.learn?.(reply);
  }

  async function act(doing: Doing): Promise<void> {
    if (doing === null) return;
    if ("call" in doing) return call(doing);
    if ("work" in doing) {
      await world.work();
      work(coupons);
      return tell("the worker has worked", null);
    }
    const { patch, coupon, to } = doing;
    const given = await world.patch(patch, coupon, to);
    const expected = patches[patch](coupon, to ?? "usual");
    tell(
      `DBA: ${patch} #${coupons.indexOf(coupon)} ${to ?? ""}: ${given ?? "done"}`,
      given === expected ? null : `expected ${expected ?? "it to be done"}`,
    );
  }

  for (const step of run.steps) await act(resolve(step));
  await act({ work: true });
  for (const coupon of coupons) {
    const by = cast.callers[0]!;
    const values = { coupon: coupon.code, merchant: kindOf(coupon.kind).merchants?.[0] ?? "mch_1" };
    await call({
      call: { by, operation: "query", requestId: "the end", key: null, values },
      body: spell({ requestId: "the end", values }),
    });
  }
  const problem = await compareRows(world.service.owner, cast, coupons, since);
  tell("in the end", problem && hide(problem));
  return { steps: run.steps.length, coupons };
}
