// The state matrix: every operation on a coupon in every state, in both variants, as states.ts promises it. Each
// cell has a coupon of its own, which the service itself brought into its state.
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
import type { Reply } from "../../support/client.ts";
import { changedTables, findBrokenInvariants, readCouponHistory, type CouponHistory } from "../../support/inspect.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { readState } from "../../support/state.ts";
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

t.test("every operation on a coupon in every state", (t) => checkMatrix(t, allStates, async () => {}));

t.test("the same when the jobs have written down what time has done", (t) =>
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
  // Nobody writes between two cells: what one leaves is what the next begins with.
  let tables = await readState(service.owner);
  for (const { variant, setup, arranged } of scenes) {
    for (const state of wanted) {
      for (const [index, operation] of operations.entries()) {
        const expected = expectedOf(state, operation, variant);
        await t.test(
          `in Variant ${variant}, ${operation} of a coupon that is ${state}: ${expected.code ?? expected.status}`,
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

// Each call is sent twice, so what is found after it is the effect of the first and of no second one.
async function checkCell(t: Test, { service, setup, state, operation, coupon, tables }: Scene): Promise<Tables> {
  const expected = expectedOf(state, operation, setup.variant);
  const [path, body] = requestFor(operation, coupon, setup.merchant);
  const before = { tables, story: await readCouponHistory(service.owner, coupon.couponId) };
  const answer = await setup.till.post(path, body);
  const again = await setup.till.post(path, body);
  const after = {
    tables: await readState(service.owner),
    story: await readCouponHistory(service.owner, coupon.couponId),
  };
  const changed = changedTables(before.tables, after.tables);

  if (expected.code !== undefined) {
    t.match(answer.json, { code: expected.code, request_id: body["request_id"] });
    t.equal(answer.status, expected.code === "NOT_FOUND" ? 404 : 409);
    t.match(
      answer.json.details,
      { NOT_FOUND: { resource: "redemption" }, COUPON_LOCKED: { lock_expires_at: /Z$/ } }[expected.code] ?? null,
    );
    // A cancel may come before its lock, and is then remembered.
    t.strictSame(changed, operation === "cancel" && expected.code === "LOCK_NOT_FOUND" ? ["lock_cancellation"] : []);
    t.strictSame(after.story, before.story);
  } else {
    t.equal(answer.status, 200, answer.text);
    checkAnswer(t, { setup, state, operation, coupon, status: expected.status, answer, story: after.story });
    const wanted = outcomeOf({ setup, operation, coupon, status: expected.status, answer, story: before.story });
    t.strictSame(after.story, wanted.story);
    t.strictSame(changed, wanted.tables);
  }
  if (operation !== "query")
    t.strictSame(
      [again.status, again.text, again.headers["idempotent-replayed"]],
      [answer.status, answer.text, "true"],
    );
  return after.tables;
}

type Success = {
  setup: VariantSetup;
  state: State;
  operation: Operation;
  coupon: Arranged;
  status: string;
  answer: Reply;
  story: CouponHistory;
};

function checkAnswer(t: Test, { setup, state, operation, coupon, status, answer: { json }, story }: Success): void {
  const own = { redemption: coupon.redemption };
  switch (operation) {
    case "lock":
      t.match(json, { ok: true, redemption: /^red_/, discount_amount: 5, lock_expires_at: /Z$/ });
      return void t.strictSame(Object.keys(json), ["ok", "redemption", "discount_amount", "lock_expires_at"]);
    case "redeem":
      t.match(json, { ok: true, redemption: /^red_/, discount_amount: 5 });
      return void t.strictSame(Object.keys(json), ["ok", "redemption", "discount_amount"]);
    case "confirm":
      return void t.strictSame(json, { ok: true, ...own, status: "REDEEMED" });
    case "cancel":
      return void t.strictSame(json, { ok: true, ...own, status: "CANCELLED" });
    case "reverse":
      t.match(json.reversal, /^rvs_/);
      return void t.strictSame(json, { ok: true, ...own, reversal: json.reversal, status: "REVERSED" });
    case "void":
      return void t.strictSame(json, { ok: true, coupon_id: coupon.couponId, status: "VOIDED" });
    case "query": {
      // Variant A shows the redemption that counts; one that was cancelled or has lapsed does not.
      const counts = /^(LOCKED|REDEEMED|REVERSED)/.test(state);
      const fields =
        setup.variant === "B"
          ? ["template_id", "batch_id", "created_at"]
          : ["batch_id", "created_at", "valid_from", "valid_to", ...(counts ? ["redemption"] : [])];
      t.strictSame(Object.keys(json), ["ok", "coupon"]);
      t.strictSame(Object.keys(json.coupon), ["coupon_id", "status", ...fields]);
      t.match(json.coupon, { coupon_id: coupon.couponId, status });
      if (setup.variant === "A" && counts)
        t.match(json.coupon.redemption, {
          merchant_id: setup.merchant,
          status: story.redemptions.at(-1),
          discount_amount: 5,
          currency: "EUR",
        });
    }
  }
}

// What must be written after a success, and the tables in which alone something may change.
function outcomeOf({ setup, operation, coupon, status, answer, story }: Omit<Success, "state">): {
  story: CouponHistory;
  tables: string[];
} {
  // What takes a coupon whose lock has lapsed writes that down too.
  const lapses = story.redemptions.at(-1) === "LOCKED" && ["lock", "redeem", "void"].includes(operation);
  const redemptions = lapses ? story.redemptions.with(-1, "LAPSED") : story.redemptions;
  const redemption = (answer.json.redemption as string | undefined) ?? coupon.redemption;
  const told = (type: string, of: string | null) => ({ type, party: setup.distributor, redemption: of });
  const expired = status === "EXPIRED" ? [told("coupon.expired", null)] : [];
  switch (operation) {
    case "lock": {
      // A coupon whose lock has lapsed is written LOCKED already.
      const tables = status === story.status ? ["redemption"] : ["coupon", "redemption"];
      return { story: { ...story, status, redemptions: [...redemptions, "LOCKED"] }, tables };
    }
    case "redeem":
    case "confirm": {
      const now = operation === "redeem" ? [...redemptions, "REDEEMED"] : redemptions.with(-1, "REDEEMED");
      const events = [...story.events, told("coupon.redeemed", redemption)];
      return {
        story: { status, redemptions: now, amounts: [...story.amounts, 500], events },
        tables: ["coupon", "event", "ledger_entry", "redemption"],
      };
    }
    case "cancel":
      return {
        story: {
          ...story,
          status,
          redemptions: redemptions.with(-1, "CANCELLED"),
          events: [...story.events, ...expired],
        },
        tables: ["coupon", ...expired.map(() => "event"), "redemption"],
      };
    case "reverse": {
      const events = [...story.events, told("coupon.reversed", redemption), ...expired];
      const tables = ["event", "ledger_entry", "redemption", "reversal"];
      return {
        story: { status, redemptions: redemptions.with(-1, "REVERSED"), amounts: [...story.amounts, -500], events },
        tables: status === story.status ? tables : ["coupon", ...tables],
      };
    }
    case "void":
      return {
        story: { ...story, status, redemptions, events: [...story.events, told("coupon.voided", null)] },
        tables: ["coupon", "event", ...(lapses ? ["redemption"] : []), "voiding"],
      };
    case "query":
      return { story, tables: [] };
  }
}

t.test(
  "a lapsed lock counts as gone, also when an earlier redemption of the coupon was locked for longer",
  async (t) => {
    const service = await startService(t);
    const setup = await setUpVariant(service, "A");
    const [coupon] = (await arrange(service, setup, ["REVERSED, reissued"], 1)).get("REVERSED, reissued")!;
    await setUpVariant(service, "A", { reissued: { lock_ttl_seconds: 1 } });
    t.equal((await setup.till.post(...requestFor("lock", coupon!, setup.merchant))).status, 200);
    await untilLocksExpire(service);
    t.match((await setup.till.post(...requestFor("query", coupon!, setup.merchant))).json.coupon, {
      status: "ISSUED",
      redemption: { status: "REVERSED" },
    });
  },
);

t.test("every operation on a batch in every state", async (t) => {
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
    // Nobody mints it, so it stays as it was submitted.
    const ids = { PENDING: await makeBatch(), COMPLETED: minted.id, ALLOCATED: released.id };
    for (const state of ["PENDING", "COMPLETED", "ALLOCATED"] as const) {
      for (const operation of batchOperations) {
        const expected = expectedOfBatch(state, operation);
        await t.test(
          `in Variant ${variant}, ${operation} of a batch that is ${state}: ${expected.code ?? expected.status}`,
          async (t) => {
            const body = { request_id: newRequestId(), batch: ids[state] };
            const call = () =>
              operation === "get" ? maker.get(`/v1/batches/${body.batch}`) : maker.post("/v1/batches/allocate", body);
            const before = await readState(service.owner);
            const answer = await call();
            t.equal((await call()).text, answer.text);
            const changed = changedTables(before, await readState(service.owner));
            if (expected.code !== undefined) {
              t.match(answer, { status: 409, json: { code: expected.code } });
              return void t.strictSame(changed, []);
            }
            const batch = {
              external_id: ids[state],
              status: expected.status,
              total_count: 2,
              minted_count: state === "PENDING" ? 0 : 2,
            };
            t.match(answer, { status: 200, json: { ok: true, batch } });
            t.strictSame(changed, operation === "allocate" ? ["batch", "event"] : []);
            const told = await service.owner.rows(
              "select event_type, party from report.event where batch = $1 order by event_seq",
              [ids[state]],
            );
            if (operation === "allocate")
              t.strictSame(told.at(-1), { event_type: "allocation.completed", party: distributor });
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
