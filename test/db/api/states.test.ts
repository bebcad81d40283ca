// The state matrix: every operation on a coupon in every state, in both variants, has the result that states.ts lists.
// Each cell has its own coupon.
import { generateX25519Identity, identityToRecipient } from "age-encryption";
import { readFileSync } from "node:fs";
import t, { type Test } from "tap";
import type { Caller, Coupon } from "../../support/caller.ts";
import { isReplay } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import { changedTables, readCouponHistory } from "../../support/inspect.ts";
import { newRequestId } from "../../support/request-id.ts";
import { scenario } from "../../support/scenario.ts";
import type { Scene } from "../../support/scene.ts";
import { readState } from "../../support/state.ts";
import { effectOf, effectOfRefusal } from "./state-effects.ts";
import {
  allBatchStates,
  batchOperations,
  expectedOf,
  operations,
  renderStates,
  resultOfBatch,
  states,
  variants,
  type BatchState,
  type Operation,
  type State,
} from "./states.ts";

const world = await scenario(t);
const scenes = [world.a, world.b];
const allStates = Object.keys(states) as State[];
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const madeByTime: State[] = ["ISSUED, its lock lapsed", "EXPIRED", "EXPIRED, its lock lapsed"];

// By variant and state, one coupon for each operation.
const rows = new Map<string, Coupon[]>();
const arrange = (wanted: State[]) =>
  Promise.all(
    scenes.flatMap((scene) =>
      wanted.map(async (state) => {
        rows.set(`${scene.variant} ${state}`, await scene.makeCoupons(operations.length, state));
      }),
    ),
  );

await arrange(allStates);

for (const variant of variants)
  for (const state of allStates)
    t.test(`Variant ${variant}: each operation on a coupon that is ${state} has the listed result`, (t) =>
      checkRow(t, variant === "A" ? world.a : world.b, state),
    );

t.test("The results stay the same after the jobs have marked expired locks and coupons", async (t) => {
  await arrange(madeByTime);
  await world.worker.rows("select jobs.lapse_locks(1000), jobs.expire_coupons(1000)");
  for (const scene of scenes)
    for (const state of madeByTime) {
      const [coupon] = rows.get(`${scene.variant} ${state}`)!;
      const { status } = await readCouponHistory(world.owner, coupon!.id);
      t.equal(status, expectedOf(state, "query", scene.variant).status);
      await checkRow(t, scene, state);
    }
});

async function checkRow(t: Test, scene: Scene, state: State): Promise<void> {
  const coupons = rows.get(`${scene.variant} ${state}`)!;
  // Nothing writes between two cells, so the tables after one cell are the tables before the next.
  let tables = await readState(world.owner);
  for (const [index, operation] of operations.entries())
    tables = await checkCell(t, { scene, state, operation, coupon: coupons[index]!, tables });
}

// The names of all fields in order, whatever their values.
const listNames = (json: object) => JSON.stringify(json).match(/"\w+"(?=:)/g);

type Cell = { scene: Scene; state: State; operation: Operation; coupon: Coupon; tables: Record<string, string> };

// Sends each call twice. The effect that it then finds happened once, and the second answer is a replay.
async function checkCell(t: Test, { scene, state, operation, coupon, tables }: Cell): Promise<Cell["tables"]> {
  const expected = expectedOf(state, operation, scene.variant);
  const history = await readCouponHistory(world.owner, coupon.id);
  const named = { ...coupon };
  const more = {
    ...(operation !== "query" && { request_id: newRequestId() }),
    ...(/lock|redeem|query/.test(operation) && { order_amount: 20 }),
  };
  const { status, text, json } = await scene.till[operation](coupon, more);
  const again = await scene.till[operation]({ ...named }, more);
  const [after, newHistory] = await Promise.all([readState(world.owner), readCouponHistory(world.owner, coupon.id)]);

  const cell = `${operation}: ${expected.code ?? expected.status}`;
  const given = { scene, state, operation, coupon: named, json, history };
  const effect = expected.code === undefined ? effectOf(given, expected.status) : effectOfRefusal(given, expected.code);
  fits(t, json, effect.json, cell);
  const said = Object.values<string>(json.details ?? {});
  t.strictSame(
    said.filter((value) => !json.message.includes(value)),
    [],
    "the message has the details",
  );
  t.strictSame(
    {
      httpStatus: status,
      names: listNames(json),
      history: newHistory,
      tables: changedTables(tables, after),
      replay: [again.status, again.text, isReplay(again)],
    },
    {
      httpStatus: effect.httpStatus,
      names: listNames(effect.json),
      history: effect.history,
      tables: effect.tables,
      replay: [status, text, operation !== "query"],
    },
    cell,
  );
  return after;
}

t.test("An expired lock counts as gone, also when an earlier redemption of the coupon had a longer lock", async (t) => {
  const { makeCoupons, endLock, till } = world.a;
  const [coupon] = (await makeCoupons(1, "REVERSED, reissued")) as [Coupon];
  await till.ok.lock(coupon);
  await endLock(coupon);
  fits(t, (await till.ok.query(coupon)).coupon, { status: "ISSUED", redemption: { status: "REVERSED" } });
});

// What a successful call changes in the answer, and the tables that it changes.
const batchEffects = {
  "→ ALLOCATED": { batch: { status: "ALLOCATED" }, tables: ["batch", "event"] },
  "→ suspended": { batch: { suspended_at: time }, tables: ["audit", "batch"] },
  "→ resumed": { batch: { suspended_at: null }, tables: ["audit", "batch"] },
  "→ recalled": {
    batch: { suspended_at: time, recall: { requested_at: time, voided_count: 0, finished_at: null } },
    tables: ["audit", "batch"],
  },
  "→ exported": { batch: {}, tables: ["audit"] },
};
const isEffect = (result: string): result is keyof typeof batchEffects => result in batchEffects;

t.test("Each operation on a batch in every state has the listed result, the second time too", async (t) => {
  const public_key = await identityToRecipient(await generateX25519Identity());
  await world.owner.rows("update core.party set public_key = $1 where external_id in ('pty_a', 'pty_maker')", [
    public_key,
  ]);
  const reads = { get: "", export: "/codes" };
  for (const { maker, template } of scenes)
    for (const state of allBatchStates)
      for (const operation of batchOperations) {
        const cell = `${operation} of a batch that is ${state}`;
        const id = await makeBatchIn(maker, template, state);
        const call = (request_id: string) =>
          operation === "get" || operation === "export"
            ? maker.get(`/v1/batches/${id}${reads[operation]}`)
            : maker[`${operation}Batch`](id, { request_id });
        const shown = (await maker.get(`/v1/batches/${id}`)).json["batch"] as object;
        const before = await readState(world.owner);
        const request_id = newRequestId();
        const reply = await call(request_id);
        // The refusal of a read has an ID of the service.
        const [first, second] = [reply, await call(request_id)].map(({ text }) => text.replace(/req_\w{26}/, ""));
        t.equal(second, first, cell);
        const changed = changedTables(before, await readState(world.owner));
        const result = resultOfBatch(state, operation);
        if (result.includes("_")) {
          fits(t, reply, { status: 409, json: { code: result } }, cell);
          t.strictSame(changed, [], cell);
          continue;
        }
        const { batch, tables } = isEffect(result) ? batchEffects[result] : { batch: {}, tables: [] };
        const isExport = operation === "export";
        const json = isExport ? { batch: id, public_key } : { ok: true, batch: { ...shown, ...batch } };
        fits(t, reply, { status: 200, json }, cell);
        t.strictSame(changed, tables, cell);
        if (operation !== "allocate") t.equal((await call(newRequestId())).text, reply.text, `${cell} again`);
      }
});

// One that is PENDING is never minted.
async function makeBatchIn(maker: Caller, template: string, state: BatchState): Promise<string> {
  const [status, stop] = state.split(", ");
  const id =
    status === "PENDING"
      ? ((await maker.ok.createBatch(template, 2)).batch.external_id as string)
      : (await world.makeBatch(maker, template, 2, { isReleased: status === "ALLOCATED" })).id;
  if (stop !== undefined) await maker.ok[stop === "suspended" ? "suspendBatch" : "recallBatch"](id);
  return id;
}

const [begin, end] = ["<!-- states:begin -->", "<!-- states:end -->"];
const page = readFileSync(new URL("../../../docs/integrate.md", import.meta.url), "utf8");
t.test("docs/integrate.md shows this table", async (t) => {
  t.ok(page.includes(begin) && page.includes(end));
  t.equal(page.slice(page.indexOf(begin) + begin.length, page.indexOf(end)).trim(), renderStates().trim());
});
