// The state matrix: every operation on a coupon in every state, in both variants, has the result that states.ts lists.
// Each cell has its own coupon, which the service itself brought into its state.
import { readFileSync } from "node:fs";
import t, { type Test } from "tap";
import {
  arrange,
  setUpVariant,
  requestFor,
  untilLocksExpire,
  type Arranged,
  type VariantSetup,
} from "../../support/arrange.ts";
import { fits } from "../../support/fits.ts";
import { changedTables, findBrokenInvariants, readCouponHistory } from "../../support/inspect.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { readState } from "../../support/state.ts";
import { checkAnswer, effectOf, effectOfRefusal } from "./state-effects.ts";
import {
  batchOperations,
  expectedOf,
  expectedOfBatch,
  operations,
  renderStates,
  states,
  variants,
  type Operation,
  type State,
} from "./states.ts";

const allStates = Object.keys(states) as State[];
const madeByTime: State[] = ["ISSUED, its lock lapsed", "EXPIRED", "EXPIRED, its lock lapsed"];

t.test("Every operation on a coupon in every state has the listed result", (t) =>
  checkMatrix(t, allStates, async () => {}),
);

t.test("The results stay the same after the jobs have marked expired locks and coupons", (t) =>
  checkMatrix(t, madeByTime, async (service) => {
    const coupons = variants.length * operations.length;
    const [done] = await service.owner.rows(
      "select jobs.lapse_locks(1000) as lapsed, jobs.expire_coupons(1000) as expired",
    );
    t.strictSame({ ...done }, { lapsed: 2 * coupons, expired: 2 * coupons });
  }),
);

async function checkMatrix(t: Test, wanted: State[], letTimePass: (service: Running) => Promise<void>): Promise<void> {
  const service = await startService(t);
  const scenes = [];
  for (const variant of variants) {
    const setup = await setUpVariant(service, variant);
    scenes.push({ variant, setup, arranged: await arrange(service, setup, wanted, operations.length) });
  }
  await untilLocksExpire(service);
  await letTimePass(service);
  // Nothing writes between two cells, so the tables after one cell are the tables before the next.
  let tables = await readState(service.owner);
  for (const { variant, setup, arranged } of scenes) {
    for (const state of wanted) {
      for (const [index, operation] of operations.entries()) {
        const expected = expectedOf(state, operation, variant);
        await t.test(
          `In Variant ${variant}, ${operation} of a coupon that is ${state}: ${expected.code ?? expected.status}`,
          async (t) => {
            tables = await checkCell(t, {
              service,
              setup,
              state,
              operation,
              coupon: arranged.get(state)![index]!,
              tables,
            });
          },
        );
      }
    }
  }
  t.strictSame(await findBrokenInvariants(service.owner), []);
}

type Scene = {
  service: Running;
  setup: VariantSetup;
  state: State;
  operation: Operation;
  coupon: Arranged;
  tables: Tables;
};
type Tables = Awaited<ReturnType<typeof readState>>;

// Sends each call twice. The effect that it then finds happened once, and the second answer is a replay.
async function checkCell(t: Test, { service, setup, state, operation, coupon, tables }: Scene): Promise<Tables> {
  const expected = expectedOf(state, operation, setup.variant);
  const [path, body] = requestFor(operation, coupon, setup.merchant);
  const before = { tables, history: await readCouponHistory(service.owner, coupon.couponId) };
  const answer = await setup.till.post(path, body);
  const again = await setup.till.post(path, body);
  const after = {
    tables: await readState(service.owner),
    history: await readCouponHistory(service.owner, coupon.couponId),
  };
  const changed = changedTables(before.tables, after.tables);

  if (expected.code !== undefined) {
    fits(t, answer.json, { code: expected.code, request_id: body["request_id"] });
    t.equal(answer.status, expected.code === "NOT_FOUND" ? 404 : 409);
    fits(
      t,
      answer.json.details,
      { NOT_FOUND: { resource: "redemption" }, COUPON_LOCKED: { lock_expires_at: /Z$/ } }[expected.code] ?? null,
    );
    const effect = effectOfRefusal({ setup, state, operation, answer, history: before.history });
    t.strictSame(after.history, effect.history);
    t.strictSame(changed, effect.tables);
  } else {
    t.equal(answer.status, 200, answer.text);
    checkAnswer(t, { setup, state, operation, coupon, status: expected.status, answer, history: after.history });
    const effect = effectOf({ setup, operation, coupon, status: expected.status, answer, history: before.history });
    t.strictSame(after.history, effect.history);
    t.strictSame(changed, effect.tables);
  }
  if (operation !== "query")
    t.strictSame(
      [again.status, again.text, again.headers["idempotent-replayed"]],
      [answer.status, answer.text, "true"],
    );
  return after.tables;
}

t.test("An expired lock counts as gone, also when an earlier redemption of the coupon had a longer lock", async (t) => {
  const service = await startService(t);
  const setup = await setUpVariant(service, "A");
  const [coupon] = (await arrange(service, setup, ["REVERSED, reissued"], 1)).get("REVERSED, reissued")!;
  await setUpVariant(service, "A", { reissued: { lock_ttl_seconds: 1 } });
  t.equal((await setup.till.post(...requestFor("lock", coupon!, setup.merchant))).status, 200);
  await untilLocksExpire(service);
  fits(t, (await setup.till.post(...requestFor("query", coupon!, setup.merchant))).json.coupon, {
    status: "ISSUED",
    redemption: { status: "REVERSED" },
  });
});

t.test("Every operation on a batch in every state has the listed result", async (t) => {
  const service = await startService(t);
  for (const variant of variants) {
    const { maker, distributor, templates } = await setUpVariant(service, variant);
    const makeBatch = async () =>
      (await maker.post("/v1/batches", { request_id: newRequestId(), template: templates.usual, total_count: 2 })).json
        .batch.external_id as string;
    const [released, minted] = [
      await service.makeBatch(maker, templates.usual, 2),
      await service.makeBatch(maker, templates.usual, 2, { isReleased: false }),
    ];
    // The pending batch is never minted.
    const ids = { PENDING: await makeBatch(), COMPLETED: minted.id, ALLOCATED: released.id };
    for (const state of ["PENDING", "COMPLETED", "ALLOCATED"] as const) {
      for (const operation of batchOperations) {
        const expected = expectedOfBatch(state, operation);
        await t.test(
          `In Variant ${variant}, ${operation} of a batch that is ${state}: ${expected.code ?? expected.status}`,
          async (t) => {
            const body = { request_id: newRequestId(), batch: ids[state] };
            const call = () =>
              operation === "get" ? maker.get(`/v1/batches/${body.batch}`) : maker.post("/v1/batches/allocate", body);
            const before = await readState(service.owner);
            const answer = await call();
            t.equal((await call()).text, answer.text);
            const changed = changedTables(before, await readState(service.owner));
            if (expected.code !== undefined) {
              fits(t, answer, { status: 409, json: { code: expected.code } });
              return void t.strictSame(changed, []);
            }
            const batch = {
              external_id: ids[state],
              status: expected.status,
              total_count: 2,
              minted_count: state === "PENDING" ? 0 : 2,
            };
            fits(t, answer, { status: 200, json: { ok: true, batch } });
            t.strictSame(changed, operation === "allocate" ? ["batch", "event"] : []);
            const events = await service.owner.rows(
              "select event_type, party from report.event where batch = $1 order by event_seq",
              [ids[state]],
            );
            if (operation === "allocate")
              t.strictSame(events.at(-1), { event_type: "allocation.completed", party: distributor });
          },
        );
      }
    }
  }
  t.strictSame(await findBrokenInvariants(service.owner), []);
});

const [begin, end] = ["<!-- states:begin -->", "<!-- states:end -->"];
const page = readFileSync(new URL("../../../docs/integrate.md", import.meta.url), "utf8");
t.test("docs/integrate.md shows this table", async (t) => {
  t.ok(page.includes(begin) && page.includes(end));
  t.equal(page.slice(page.indexOf(begin) + begin.length, page.indexOf(end)).trim(), renderStates().trim());
});
