// Idempotency: a write that was decided has one answer forever. A retry, found by its request_id or idempotency-key,
// gets it again; another request under the same name is refused.
import t, { type Test } from "tap";
import type { Caller, Coupon } from "../../support/caller.ts";
import { isReplay, type Reply } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import { newRequestId } from "../../support/request-id.ts";
import { scenario } from "../../support/scenario.ts";
import { readState } from "../../support/state.ts";
import { credential, template, tenants } from "../../support/tenants.ts";

const world = await scenario(t);
const { till } = world.a;
const psql = await world.openPsql({ triggers: false });

type Body = Record<string, unknown>;
const redeemPath = "/v1/coupons/redeem";
const lockPath = "/v1/coupons/lock";
const batchPath = "/v1/batches";

const makeCoupons = async (count: number) => (await world.a.makeCoupons(count)) as [Coupon, ...Coupon[]];
const bodyOf = ({ code }: Coupon, merchant = "mch_a") => ({ request_id: newRequestId(), coupon: code, merchant });
const post = (path: string, body: Body | string, key?: string, by = till) =>
  by.post(path, body, key === undefined ? {} : { idempotencyKey: key });
const forget = (ids: string[]) => world.owner.rows("delete from core.request where request_id = any ($1)", [ids]);
const countBatches = async () => (await world.owner.rows("select from core.batch")).length;

// As if 91 days had passed for these records.
async function age(ids: string[]): Promise<void> {
  const older = "update core.request set recorded_at = recorded_at - interval '91 days' where request_id = any ($1)";
  await psql.rows(older, [ids]);
  await world.worker.rows("select jobs.prune_requests(90, 1000, 0, 1000)");
}

const newNames = () => [newRequestId(), newRequestId(), newRequestId()] as const;

/** The retry gets the first answer, byte for byte, and changes nothing. Of one by key, only the request_id is kept. */
async function checkReplay(t: Test, first: Reply, retry: () => Promise<Reply>, message: string, byKey = false) {
  const before = await readState(world.owner, { withRequests: !byKey });
  const { status, text, headers } = await retry();
  t.strictSame([status, text, headers["idempotent-replayed"]], [first.status, first.text, "true"], message);
  t.strictSame(await readState(world.owner, { withRequests: !byKey }), before, "a replay changes nothing");
}

/** The attempt is refused, because its request_id or idempotency-key was used for another request. */
async function checkReused(t: Test, attempt: () => Promise<Reply>, message: string) {
  const before = await readState(world.owner, { withRequests: true });
  const reply = await attempt();
  fits(t, reply, { status: 422, json: { code: "IDEMPOTENCY_KEY_REUSED", details: null } }, message);
  t.notOk(isReplay(reply), message);
  t.strictSame(await readState(world.owner, { withRequests: true }), before, "a refusal changes nothing");
}

t.test("A retry is found by its request_id or its idempotency-key; its body is compared by value", async (t) => {
  const [coupon] = await makeCoupons(1);
  const body = { ...bodyOf(coupon), order_amount: 20.5, redemption_context: { items: [{ sku: "Ä", amount: 10 }] } };
  // Node sends headers as Latin-1, so this sends the UTF-8 bytes that other clients send.
  const key = Buffer.from(`Schlüssel ${body.request_id}`).toString("latin1");
  const first = await post(redeemPath, body, key);
  t.ok(first.status === 200 && !isReplay(first), first.text);
  await checkReplay(t, first, () => post(redeemPath, body), "without a key");
  await checkReplay(t, first, () => post(redeemPath, body, "another key"), "with another key");
  const renamed = { ...body, request_id: newRequestId() };
  await checkReplay(t, first, () => post(redeemPath, renamed, key), "by key, with another request_id", true);
  const inGroups = coupon.code.toLowerCase().replace(/(.{4})(?=.)/g, "$1-");
  const spelled = `{ "order_amount":2.050e1, "merchant":"mch_\\u0061", "coupon":"${inGroups}", "request_id":
    "${body.request_id}", "redemption_context":{"items":[{"amount":1e1,"sku":"\\u00c4"}]} }`;
  await checkReplay(t, first, () => post(redeemPath, spelled), "spelled in another way");
});

t.test(
  "The answer to a lock stays the same when its end is moved, or the lock is confirmed and reversed",
  async (t) => {
    const [coupon] = await makeCoupons(1);
    const { request_id: lock_request_id, ...order } = bodyOf(coupon);
    const key = newRequestId();
    const first = await post(lockPath, { ...order, request_id: lock_request_id }, key);
    t.match(first.text, /"lock_expires_at":"/);
    const retries = async (message: string) => {
      await checkReplay(t, first, () => post(lockPath, { ...order, request_id: lock_request_id }), message);
      const renamed = { ...order, request_id: newRequestId() };
      await checkReplay(t, first, () => post(lockPath, renamed, key), `${message}, by key`, true);
      for (const id of [lock_request_id, renamed.request_id])
        t.ok((await till.get(`/v1/requests/${id}`)).text.includes(`"response":${first.text},`), message);
      const text = "select response from report.request where request_id = any ($1)";
      const rows = await psql.rows<{ response: string }>(text, [[lock_request_id, renamed.request_id]]);
      t.strictSame(
        [...rows].map(({ response }) => response),
        [first.text, first.text],
        message,
      );
    };
    await world.owner.rows("update core.redemption set lock_expires_at = lock_expires_at - interval '1 minute'");
    await retries("with another end");
    const { json } = await post("/v1/coupons/confirm", { ...bodyOf(coupon), lock_request_id });
    const reversal = { request_id: newRequestId(), redemption: json.redemption };
    t.equal((await post("/v1/redemptions/reverse", reversal)).status, 200);
    await retries("reversed");
  },
);

t.test("Another body or operation under a used name is refused, and the first answer stays", async (t) => {
  const [coupon, other] = await makeCoupons(2);
  const key = newRequestId();
  const body = { ...bodyOf(coupon), order_amount: 20, redemption_context: { till: 1 } };
  const first = await post(redeemPath, body, key);
  const attempts: [string, Body][] = [
    [redeemPath, { ...body, order_amount: 20.01 }],
    [redeemPath, { ...body, coupon: other!.code }],
    [redeemPath, { ...body, order_id: "1" }],
    [redeemPath, { ...body, redemption_context: { till: 2 } }],
    [lockPath, body],
    [batchPath, { request_id: body.request_id, template: "tpl_fixed", total_count: 1 }],
  ];
  for (const [path, changed] of attempts) {
    await checkReused(t, () => post(path, changed), `${path} ${JSON.stringify(changed)}`);
    const renamed = { ...changed, request_id: newRequestId() };
    await checkReused(t, () => post(path, renamed, key), `by key: ${path} ${JSON.stringify(changed)}`);
  }
  const [second, secondKey] = [bodyOf(other!), newRequestId()];
  await post(redeemPath, second, secondKey);
  await checkReused(t, () => post(redeemPath, second, key), "the request_id of one and the key of another");
  await checkReused(t, () => post(redeemPath, body, secondKey), "the key of one and the request_id of another");
  await checkReplay(t, first, () => post(redeemPath, body), "the first answer");
});

t.test("Names belong to the caller, not to the access key", async (t) => {
  const [coupon] = await makeCoupons(1);
  const [body, key] = [bodyOf(coupon), newRequestId()];
  const second = world.a.otherTill;
  const first = await post(redeemPath, body, key);
  const renamed = { ...body, request_id: newRequestId() };
  await checkReplay(t, first, () => post(redeemPath, body, undefined, second), "another credential of the tenant");
  await checkReplay(t, first, () => post(redeemPath, renamed, key, second), "the same by key", true);
  fits(t, (await second.get(`/v1/requests/${body.request_id}`)).json, { ok: true });

  // Variant B: each party has its own names; a second credential of the same party shares them.
  const tenantB = structuredClone(tenants[2]!);
  tenantB.credentials.push(credential("ak_pos_second", "pty_pos"));
  await world.apply({ tenants: [tenantB] });
  const [one, two] = (await world.b.makeCoupons(2)) as [Coupon, Coupon];
  const lock = { ...bodyOf(one, "mch_b"), request_id: body.request_id };
  const locked = await post(lockPath, lock, key, world.b.till);
  t.ok(locked.status === 200 && !isReplay(locked), "another tenant may use the same names");
  const byOwn = () => post(lockPath, lock, undefined, world.as("ak_pos_second"));
  await checkReplay(t, locked, byOwn, "another credential of the party");
  const byOther = await post(lockPath, { ...lock, coupon: two.code }, key, world.b.otherTill);
  t.ok(byOther.status === 200 && !isReplay(byOther), "another party may use the same names");
  t.equal((await world.as("ak_other").get(`/v1/requests/${lock.request_id}`)).status, 404);
});

t.test("A refusal is final too: it is repeated even when its reason is gone", async (t) => {
  const [coupon] = (await world.a.makeCoupons(1, "ISSUED", "tpl_scoped")) as [Coupon];
  const body = bodyOf(coupon);
  const refusal = await post(redeemPath, body);
  fits(t, refusal, { status: 422, json: { code: "MERCHANT_NOT_IN_SCOPE" } });
  const templates = [template("tpl_scoped", "pty_a", { merchants: ["mch_a", "mch_a2"] })];
  await world.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", templates }] });
  await checkReplay(t, refusal, () => post(redeemPath, body), "the refusal");
  t.equal((await post(redeemPath, bodyOf(coupon))).status, 200, "a new request is decided anew");
});

t.test("get_request returns the outcome of a request, whatever characters its ID has", async (t) => {
  const [coupon] = await makeCoupons(1);
  const granted = { ...bodyOf(coupon), request_id: `${newRequestId()} ä/ö?#%2F "\\😀` };
  for (const body of [granted, bodyOf(coupon, "mch_none")]) {
    const { request_id } = body;
    const target = `/v1/requests/${encodeURIComponent(request_id)}`;
    fits(t, await till.get(target), { status: 404, json: { code: "NOT_FOUND", details: { resource: "request" } } });
    const first = await post(redeemPath, body);
    const { text, json } = await till.get(target);
    t.ok(text.includes(`"response":${first.text}`), "the answer, byte for byte");
    const recorded_at = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
    const request = { request_id, operation: "redeem", http_status: first.status, response: first.json, recorded_at };
    fits(t, json, { ok: true, request });
  }
});

t.test("A repeated batch create never mints twice, even after its record was deleted", async (t) => {
  const body = { request_id: newRequestId(), template: "tpl_fixed", total_count: 4 };
  const key = newRequestId();
  const made = await post(batchPath, body, key);
  await world.mint();
  const before = await countBatches();
  const batch = { external_id: made.json.batch.external_id, status: "COMPLETED", minted_count: 4 };
  await forget([body.request_id]);
  await checkReused(t, () => post(batchPath, { ...body, total_count: 5 }), "a wrong retry");
  fits(t, await post(batchPath, body), { status: 200, json: { batch } }, "a wrong one does not prevent the right one");
  await forget([body.request_id]);
  fits(t, (await post(batchPath, { ...body, request_id: newRequestId() }, key)).json, { batch }, "by key");
  t.equal(await countBatches(), before);
});

t.test("A batch create that repeats two pruned requests at once is refused, whichever it equals", async (t) => {
  const [one, two, key] = newNames();
  const order = (request_id: string, total_count: number) => ({ request_id, template: "tpl_fixed", total_count });
  await post(batchPath, order(one, 2));
  await post(batchPath, order(two, 3), key);
  await forget([one, two]);
  for (const count of [2, 3, 4]) await checkReused(t, () => post(batchPath, order(one, count), key), `${count}`);
});

t.test("The request_id of a retry by idempotency-key names the request from then on", async (t) => {
  const [first, retry, key] = newNames();
  const order = { template: "tpl_fixed", total_count: 3 };
  const made = await post(batchPath, { ...order, request_id: first }, key);
  const retried = { ...order, request_id: retry };
  await checkReplay(t, made, () => post(batchPath, retried, key), "by key", true);
  await checkReplay(t, made, () => post(batchPath, retried), "without the key");
  await checkReused(t, () => post(batchPath, { ...retried, total_count: 4 }), "another body");
  t.strictSame((await till.get(`/v1/requests/${retry}`)).json.request.response, made.json);

  const { till: pos, otherTill: shop, makeCoupons } = world.b;
  const [one, other] = (await makeCoupons(2)) as [Coupon, Coupon];
  for (const coupon of [one, other]) {
    const [first, retry, key] = newNames();
    const body = bodyOf(coupon, "mch_b");
    coupon.redemption = (await post(lockPath, { ...body, request_id: first }, key, pos)).json.redemption;
    await post(lockPath, { ...body, request_id: retry }, key, pos);
    coupon.lockRequestId = retry;
  }
  const notFound = { status: 409, json: { code: "LOCK_NOT_FOUND" } };
  fits(t, await pos.confirm({ ...one, code: other.code }), notFound, "another coupon");
  fits(t, await shop.confirm(one), notFound, "another caller");
  fits(t, await pos.confirm(one), { status: 200, json: { redemption: one.redemption } });
  fits(t, await pos.cancel(other), { status: 200, json: { redemption: other.redemption } });

  // A refused lock has no redemption.
  const [id, again, otherKey] = newNames();
  const body = bodyOf(one, "mch_b");
  const refusal = await post(lockPath, { ...body, request_id: id }, otherKey, pos);
  t.equal(refusal.json.code, "COUPON_REDEEMED");
  const retriedLock = { ...body, request_id: again };
  await checkReplay(t, refusal, () => post(lockPath, retriedLock, otherKey, pos), "a refusal by key", true);
});

t.test("The record of a retry by idempotency-key has the time of the first one, and is pruned with it", async (t) => {
  const [first, retry, key] = newNames();
  const body = bodyOf((await makeCoupons(1))[0]);
  for (const request_id of [first, retry]) await post(lockPath, { ...body, request_id }, key);
  const recordedAt = async (id: string) => (await till.get(`/v1/requests/${id}`)).json.request?.recorded_at;
  t.equal(await recordedAt(retry), await recordedAt(first));
  await forget([first]);
  t.equal((await world.owner.rows("select from report.invariants")).length, 0, "a retry alone is no contradiction");
  await age([retry]);
  t.equal(await recordedAt(retry), undefined);
});

t.test("Records of batch creates are pruned, except retries that nothing else keeps from minting again", async (t) => {
  await world.apply({
    tenants: [{ id: "ten_b", name: "B", variant: "B", templates: [template("tpl_other", "pty_other")] }],
  });
  for (const [by, name, other, otherName] of [
    [world.a.maker, "tpl_fixed", world.as("ak_a_stranger"), "tpl_a2s"],
    [world.b.maker, "tpl_b", world.as("ak_other"), "tpl_other"],
  ] as const) {
    const [first, retry, key] = newNames();
    const refused = newRequestId();
    const create = (caller: Caller, template: string, request_id: string, key?: string) =>
      post(batchPath, { template, total_count: 3, request_id }, key, caller);
    const made = await create(by, name, first, key);
    await create(by, name, retry, key);
    t.equal((await create(by, "tpl_none", refused)).status, 404);
    // A batch of another tenant or caller with the request_id of the retry does not end it.
    t.equal((await create(other, otherName, retry)).status, 200);
    await age([first, retry, refused]);
    const kept = await world.owner.rows(
      `select request_id, response::jsonb -> 'batch' ->> 'external_id' as batch
       from report.request where request_id = any ($1)`,
      [[first, retry, refused]],
    );
    t.strictSame([...kept], [{ request_id: retry, batch: made.json.batch.external_id }]);
    for (const id of [first, retry]) t.strictSame((await create(by, name, id)).json.batch, made.json.batch);
  }
});

t.test("A request_id that named other locks, whose records are pruned, names the latest one", async (t) => {
  for (const [former, named] of [
    ["first", "first"],
    ["first", "retry"],
    ["retry", "retry"],
  ] as const) {
    const [first, retry, key] = newNames();
    const ids = { first, retry };
    const [coupon] = await makeCoupons(1);
    await till.ok.lock(coupon, { request_id: ids[former] });
    await till.ok.cancel(coupon);
    await age([ids[former]]);
    const { json } = await post(lockPath, { ...bodyOf(coupon), request_id: first }, key);
    await post(lockPath, { ...bodyOf(coupon), request_id: retry }, key);
    const confirmed = await till.confirm({ ...coupon, lockRequestId: ids[named] });
    fits(t, confirmed, { status: 200, json: { redemption: json.redemption } }, `${former}, ${named}`);
  }
});

t.test("report.request says what a recorded answer is about, of a refusal what the call named", async (t) => {
  const { maker, till: pos, otherTill, makeCoupons: make } = world.b;
  const [used, locked, held, foreign] = (await make(4)) as [Coupon, Coupon, Coupon, Coupon];
  const { coupons: unreleased, id: batch } = await world.makeBatch(maker, "tpl_b", 1, { isReleased: false });
  const place = { store: "S1" };
  const about = async (reply: Promise<Reply>) => {
    await reply;
    const [row] = await world.owner.rows(
      `select code, merchant, coupon, store, template, coupon_key = report.parse_id(coupon) as is_its_key
       from report.request order by recorded_at desc limit 1`,
    );
    const { is_its_key, ...rest } = row!;
    t.equal(is_its_key, rest.coupon === null ? null : true);
    return rest;
  };
  const atShop = (code: string | null, { id: coupon }: Coupon, store: string | null = null, merchant = "mch_b") => ({
    code,
    merchant,
    coupon,
    store,
    template: "tpl_b",
  });
  const nothing = { merchant: null, coupon: null, store: null };
  const calls: [() => Promise<Reply>, object][] = [
    [() => pos.redeem(used, place), atShop(null, used, "S1")],
    [() => pos.redeem(used, { store: "S2" }), atShop("COUPON_REDEEMED", used, "S2")],
    [() => pos.redeem(used, { store: "no store" }), atShop("NOT_FOUND", used, "no store")],
    [() => pos.lock(held, { merchant: "mch_b2" }), atShop("NOT_FOUND", held, null, "mch_b2")],
    [() => pos.lock(held, { merchant: "mch_none" }), { ...atShop("NOT_FOUND", held), merchant: null }],
    [
      () => pos.lock({ ...held, code: foreignCode }),
      { ...nothing, code: "NOT_FOUND", merchant: "mch_b", template: null },
    ],
    [() => pos.lock(unreleased[0]!), atShop("COUPON_NOT_RELEASED", unreleased[0]!)],
    [() => pos.lock(locked, place), atShop(null, locked, "S1")],
    [() => pos.confirm(locked), atShop(null, locked, "S1")],
    [() => pos.confirm(locked), atShop("LOCK_CONFIRMED", locked, "S1")],
    [() => pos.cancel(locked), atShop("LOCK_CONFIRMED", locked, "S1")],
    [() => pos.cancel(held), { ...atShop("LOCK_NOT_FOUND", held), merchant: null }],
    [() => pos.reverse(locked), atShop(null, locked, "S1")],
    [() => pos.reverse(locked), atShop("REDEMPTION_REVERSED", locked, "S1")],
    [() => otherTill.reverse(used), atShop(null, used, "S1")],
    [() => pos.void(foreign), atShop(null, foreign)],
    [() => pos.void(foreign), atShop("COUPON_NOT_VOIDABLE", foreign)],
    [() => maker.createBatch("tpl_none", 1), { ...nothing, code: "NOT_FOUND", template: null }],
    [
      () => maker.createBatch("tpl_b", 1, { distributor: "pty_none" }),
      { ...nothing, code: "NOT_FOUND", template: "tpl_b" },
    ],
    [() => pos.createBatch("tpl_b", 1), { ...nothing, code: "NOT_FOUND", template: "tpl_b" }],
    [() => maker.createBatch("tpl_b", 1), { ...nothing, code: null, template: "tpl_b" }],
    [() => maker.allocateBatch(batch), { ...nothing, code: null, template: "tpl_b" }],
    [() => maker.allocateBatch(batch), { ...nothing, code: "BATCH_ALREADY_ALLOCATED", template: "tpl_b" }],
    [() => pos.suspendBatch(batch), { ...nothing, code: "NOT_FOUND", template: "tpl_b" }],
  ];
  const foreignCode = (await makeCoupons(1))[0].code;
  for (const [call, expected] of calls) t.strictSame(await about(call()), expected);
});
