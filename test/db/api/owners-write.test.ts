// What each write changes where other owners have rows with the same keys: the rows of its caller, and no others. The
// rows of all tenants are compared before and after.
import t, { type Test } from "tap";
import { routes } from "../../../src/http/routes/table.ts";
import { fits } from "../../support/fits.ts";
import type { Story } from "../../support/owners.ts";
import type { Running } from "../../support/service.ts";
import { startOwners } from "../../support/start-owners.ts";
import { compareRows, nameTables, readRows, toTwin } from "../../support/twin.ts";

let service: Running;
let stories: Story[];

t.before(async () => {
  ({ service, stories } = await startOwners(t));
});

type Write = {
  by: "shop" | "maker";
  path: string;
  body: (story: Story) => Record<string, unknown>;
  answer: (story: Story) => Record<string, unknown>;
  changes: Record<string, string>;
  // The refusal of the same once more. In the twin the rows are as before.
  again?: string;
};

const request = "-0 +1";
const granted = { coupon: "-1 +1", redemption: "-0 +1", request };
const grant = (operation: string): Pick<Write, "by" | "path" | "body" | "answer"> => ({
  by: "shop",
  path: `/v1/coupons/${operation}`,
  body: ({ coupons, merchant, store, terminal, variant }) => ({
    coupon: coupons[`to ${operation}` as "to lock"].code,
    merchant,
    ...(variant === "B" && { store, terminal }),
  }),
  answer: ({ amount }) => ({ ok: true, discount_amount: amount }),
});
const shownBatch = (story: Story, more: object) => ({ ok: true, batch: { ...story.batches["COMPLETED"], ...more } });

const writes: Record<string, Write> = {
  lock: { ...grant("lock"), changes: granted, again: "COUPON_LOCKED" },
  redeem: {
    ...grant("redeem"),
    changes: { ...granted, ledger_entry: "-0 +1" },
    again: "COUPON_REDEEMED",
  },
  confirm: {
    by: "shop",
    path: "/v1/coupons/confirm",
    body: ({ coupons, merchant, lockRequestIds }) => ({
      coupon: coupons["to confirm"].code,
      merchant,
      lock_request_id: lockRequestIds["to confirm"],
    }),
    answer: ({ coupons }) => ({ ok: true, redemption: coupons["to confirm"].redemption, status: "REDEEMED" }),
    changes: { coupon: "-1 +1", redemption: "-1 +1", ledger_entry: "-0 +1", request },
    again: "LOCK_CONFIRMED",
  },
  cancel: {
    by: "shop",
    path: "/v1/coupons/cancel",
    body: ({ coupons, lockRequestIds }) => ({
      coupon: coupons["to cancel"].code,
      lock_request_id: lockRequestIds["to cancel"],
    }),
    answer: ({ coupons }) => ({ ok: true, redemption: coupons["to cancel"].redemption, status: "CANCELLED" }),
    changes: { coupon: "-1 +1", redemption: "-1 +1", request },
    again: "LOCK_CANCELLED",
  },
  reverse: {
    by: "shop",
    path: "/v1/redemptions/reverse",
    body: ({ coupons }) => ({ redemption: coupons["to reverse"].redemption }),
    answer: ({ coupons }) => ({ ok: true, redemption: coupons["to reverse"].redemption, status: "REVERSED" }),
    changes: {
      coupon: "-1 +1",
      redemption: "-1 +1",
      reversal: "-0 +1",
      ledger_entry: "-0 +1",
      request,
    },
    again: "REDEMPTION_REVERSED",
  },
  void: {
    by: "shop",
    path: "/v1/coupons/void",
    body: ({ coupons, merchant }) => ({ coupon: coupons["to void"].code, merchant }),
    answer: ({ coupons }) => ({ ok: true, coupon_id: coupons["to void"].id, status: "VOIDED" }),
    changes: { coupon: "-1 +1", voiding: "-0 +1", event: "-0 +1", request },
    again: "COUPON_NOT_VOIDABLE",
  },
  create_batch: {
    by: "maker",
    path: "/v1/batches",
    body: ({ template }) => ({ template, total_count: 6 }),
    answer: ({ batches }) => ({ ok: true, batch: { ...batches["PENDING"], total_count: 6 } }),
    changes: { batch: "-0 +1", request },
  },
  allocate_batch: {
    by: "maker",
    path: "/v1/batches/allocate",
    body: ({ batches }) => ({ batch: batches["COMPLETED"]!.external_id }),
    answer: (story) => shownBatch(story, { status: "ALLOCATED" }),
    changes: { batch: "-1 +1", event: "-0 +1", request },
    again: "BATCH_ALREADY_ALLOCATED",
  },
};

t.test("Every write has a test with several owners", async (t) => {
  const names = routes.filter(({ isWrite }) => isWrite).map(({ operation }) => operation);
  // In webhook-scope.test.ts.
  const webhookWrites = ["replay_events", "test_webhook"];
  t.strictSame([...Object.keys(writes), ...webhookWrites].sort(), names.sort());
});

// The request_id and the key are the same for every caller, because each has its own.
async function send(operation: string, story: Story, time = "first", names = {}) {
  const { by, path, body } = writes[operation]!;
  const request_id = `${story.variant === "A" ? story.side : ""} ${time} ${operation}`;
  return service
    .as(story[by])
    .post(path, { request_id, ...body(story), ...names }, { idempotencyKey: `key ${request_id}` });
}

async function checkWrite(t: Test, operation: string, story: Story): Promise<void> {
  const { answer, changes } = writes[operation]!;
  const before = await readRows(service.owner);
  const reply = await send(operation, story);
  const { redemption: _, reversal: _v, lock_expires_at: _e, ...rest } = reply.json;
  const { redemption, ...expected } = answer(story);
  if (redemption !== undefined) t.equal(reply.json.redemption, redemption);
  if (operation === "create_batch")
    for (const name of ["external_id", "created_at"]) {
      t.not(rest.batch[name], (expected["batch"] as any)[name]);
      rest.batch[name] = (expected["batch"] as any)[name];
    }
  t.strictSame(rest, expected, reply.text);
  const after = await readRows(service.owner);
  t.strictSame(compareRows(before, after), nameTables(story.tenant, changes), "only rows of the caller");
  const again = await send(operation, story);
  t.strictSame([again.text, again.headers["idempotent-replayed"]], [reply.text, "true"], "its own record is replayed");
  t.strictSame(compareRows(after, await readRows(service.owner)), {}, "a replay changes nothing");
  const { again: code } = writes[operation]!;
  if (code === undefined) return;
  t.equal((await send(operation, story, "second")).json.code, code);
  t.strictSame(compareRows(after, await readRows(service.owner)), { [`${story.tenant} request`]: request });
}

for (const operation of Object.keys(writes))
  t.test(`${operation} changes rows of its caller only`, async (t) => {
    for (const story of stories)
      await t.test(`${story.tenant}, side ${story.side}`, (t) => checkWrite(t, operation, story));
  });

t.test("After the records of requests are pruned, a repeated create_batch finds the batch of its caller", async (t) => {
  const first = await service.owner.rows<{ tenant: string; maker: string; batch: string }>(
    "select tenant, maker, batch from report.batch where total_count = 6",
  );
  t.equal(first.length, stories.length);
  // Once by the key and once by the request_id.
  for (const isByKey of [true, false]) {
    await service.owner.rows("delete from core.request");
    for (const story of stories) {
      const names = isByKey ? { request_id: `another ${story.side}` } : {};
      const { json } = await send("create_batch", story, "first", names);
      const own = first.find(({ tenant, maker }) => tenant === story.tenant && maker === story.makerParty);
      t.equal(json.batch.external_id, own!.batch);
    }
  }
});

t.test("A cancel before its lock refuses the late lock of its caller only", async (t) => {
  for (const { tenant, variant, shop, merchant, coupons, lockRequestIds } of stories) {
    const kind = "cancelled before its lock";
    const lock = { request_id: lockRequestIds[kind], merchant, coupon: coupons[kind].code };
    const late = await service.as(shop).post("/v1/coupons/lock", lock);
    fits(t, late, { status: 409, json: { code: "LOCK_CANCELLED" } }, `${tenant} ${shop}`);
    if (variant === "A" || merchant !== "mch_1") continue;
    // A delegate of mch_1.
    const { status } = await service.as(shop.replace(/s.$/, "p")).post("/v1/coupons/lock", lock);
    t.equal(status, 200, "another caller");
  }
});

t.test("A terminal of the twin's store is unknown", async (t) => {
  for (const { variant, shop, merchant, coupons, store, terminal } of stories) {
    if (variant === "A") continue;
    const lock = {
      request_id: "wrong terminal",
      coupon: coupons.issued.code,
      merchant,
      store,
      terminal: toTwin(terminal),
    };
    fits(
      t,
      await service.as(shop).post("/v1/coupons/lock", lock),
      { status: 404, json: { details: { resource: "terminal" } } },
      shop,
    );
  }
});

// Twins first: they have the larger numbers, so the rows of the other tenant are read before theirs.
t.test("A lock ends an expired lock of its caller only", async (t) => {
  await service.owner.rows("update core.redemption set lock_expires_at = started_at where status = 'LOCKED'");
  for (const { tenant, variant, shop, merchant, coupons, store, terminal } of stories.toReversed()) {
    const place = { merchant, ...(variant === "B" && { store, terminal }) };
    const before = await readRows(service.owner);
    const lock = { request_id: `${tenant} ${shop} again`, coupon: coupons.locked.code, ...place };
    fits(t, await service.as(shop).post("/v1/coupons/lock", lock), { status: 200 }, `${tenant} ${shop}`);
    t.strictSame(
      compareRows(before, await readRows(service.owner)),
      nameTables(tenant, { redemption: "-1 +2", request }),
    );
  }
});
