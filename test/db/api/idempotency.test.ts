// Idempotency: a write that was decided has one answer forever. The same request gets it again; another request under
// the same ID is refused.
import t from "tap";
import { postOk } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import { tenants } from "../../support/tenants.ts";
import { isReplay, startReplayService } from "../../support/replays.ts";
import { newRequestId } from "../../support/service.ts";

const redeemPath = "/v1/coupons/redeem";
const { service, a, isReplayOf, isReused, makeCoupons } = await startReplayService(t);

t.test("A repeated write gets the same answer byte for byte, and its effect happens once", async (t) => {
  const [one, two, three, four] = await makeCoupons(4);
  const merchant = "mch_a";
  const lockId = newRequestId();
  const created = await a.post("/v1/batches", { request_id: newRequestId(), template: "tpl_fixed", total_count: 1 });
  const batch = created.json.batch.external_id as string;
  await service.mint();
  const writes: [string, Record<string, unknown>][] = [
    ["/v1/coupons/lock", { request_id: lockId, coupon: one, merchant, order_amount: 12.3, store: "S" }],
    ["/v1/coupons/confirm", { lock_request_id: lockId, coupon: one, merchant }],
    ["/v1/coupons/lock", { request_id: `${lockId}-2`, coupon: two, merchant }],
    ["/v1/coupons/cancel", { lock_request_id: `${lockId}-2`, coupon: two }],
    [redeemPath, { coupon: three, merchant }],
    ["/v1/coupons/void", { coupon: four, merchant, reason: "lost" }],
    ["/v1/batches", { template: "tpl_fixed", total_count: 3 }],
    ["/v1/batches/allocate", { batch }],
  ];
  for (const [path, fields] of writes) {
    const body = { request_id: newRequestId(), ...fields };
    const first = await a.post(path, body);
    fits(t, first, { status: 200, json: { ok: true } }, `${path} ${first.text}`);
    t.notOk(isReplay(first));
    for (let retry = 0; retry < 2; retry += 1) await isReplayOf(t, first, a.post(path, body), path);
    if (path !== redeemPath) continue;
    const reverse = { request_id: newRequestId(), redemption: first.json.redemption };
    await isReplayOf(
      t,
      await a.post("/v1/redemptions/reverse", reverse),
      a.post("/v1/redemptions/reverse", reverse),
      "reverse",
    );
    await isReplayOf(t, first, a.post(path, body), "the answer stays the same after the reversal");
  }
});

t.test("A refusal is final too: it is repeated even when its reason is gone", async (t) => {
  const [code, ahead] = await makeCoupons(2);
  const { id, codes } = await service.makeBatch(a, "tpl_fixed", 1, { isReleased: false });
  const body = { request_id: newRequestId(), coupon: codes[0], merchant: "mch_a" };
  const early = await a.post(redeemPath, body);
  fits(t, early, { status: 409, json: { code: "COUPON_NOT_RELEASED" } });
  await a.post("/v1/batches/allocate", { request_id: newRequestId(), batch: id });
  await isReplayOf(t, early, a.post(redeemPath, body), "409");
  t.equal(
    (await a.post(redeemPath, { ...body, request_id: newRequestId() })).status,
    200,
    "a new request is decided anew",
  );

  const elsewhere = { request_id: newRequestId(), coupon: code, merchant: "mch_new" };
  const unknown = await a.post(redeemPath, elsewhere);
  t.equal(unknown.status, 404);
  await service.apply({
    tenants: [{ ...tenants[0], merchants: [...tenants[0]!.merchants, { id: "mch_new", name: "n", party: "pty_a" }] }],
  });
  await isReplayOf(t, unknown, a.post(redeemPath, elsewhere), "404");

  const unscoped = { request_id: newRequestId(), coupon: ahead, merchant: "mch_a", currency: "USD" };
  const mismatch = await a.post(redeemPath, unscoped);
  fits(t, mismatch, { status: 422, json: { code: "CURRENCY_MISMATCH" } });
  await isReplayOf(t, mismatch, a.post(redeemPath, unscoped), "422");
});

t.test("Bodies are compared by value, not byte by byte", async (t) => {
  const [code] = (await makeCoupons(1)) as [string];
  const request_id = newRequestId();
  const context = { items: [{ sku: "Ä", quantity: 1, amount: 10 }], till: { no: 3 } };
  const first = await a.post(redeemPath, {
    request_id,
    coupon: code,
    merchant: "mch_a",
    order_amount: 20.5,
    store: "S 1",
    redemption_context: context,
  });
  t.equal(first.status, 200);
  const inGroups = code.toLowerCase().replace(/(.{4})(?=.)/g, "$1-");
  const items = `{"till":{"no":3.0},"items":[{"amount":10,"quantity":1,"sku":"Ä"}]}`;
  const sameValues = [
    // Other order of keys.
    `{"redemption_context":${items},"store":"S 1","order_amount":20.5,` +
      `"merchant":"mch_a","coupon":"${code}","request_id":"${request_id}"}`,
    // Code in groups and lower case, escaped characters, other spellings of numbers, spaces around the store.
    `{"request_id":"${request_id}","coupon":"${inGroups}","merchant":"mch_\\u0061","order_amount":2.050e1,` +
      `"store":" S 1 ","redemption_context":{"items":[{"sku":"\\u00c4","quantity":1.0,"amount":1e1}],"till":{"no":3}}}`,
    // White space, letters o and l for digits 0 and 1.
    `\n{ "request_id" : "${request_id}" , "coupon" : "${code.replaceAll("0", "o").replaceAll("1", "L")}", ` +
      `"merchant":"mch_a", "order_amount":20.50,"store":"S 1", ` +
      `"redemption_context":{"items":[{"sku":"Ä","quantity":1,"amount":10.00}],"till":{"no":30e-1}}}`,
  ];
  for (const text of sameValues) await isReplayOf(t, first, a.post(redeemPath, text), text.replace(code, "…"));
});

t.test("Another body or operation under a used ID is refused, and the first answer stays", async (t) => {
  const [code, other] = await makeCoupons(2);
  const body = {
    request_id: newRequestId(),
    coupon: code,
    merchant: "mch_a",
    order_amount: 20,
    redemption_context: {
      items: [
        { sku: "x", amount: 1 },
        { sku: "y", amount: 2 },
      ],
    },
  };
  const first = await a.post(redeemPath, body, { idempotencyKey: `${body.request_id}-key` });
  t.equal(first.status, 200);
  const { order_amount: _, ...without } = body;
  const others: object[] = [
    { ...body, coupon: other },
    { ...body, merchant: "mch_a2" },
    { ...body, order_amount: 20.01 },
    without,
    { ...body, order_id: "1" },
    { ...body, currency: "EUR" },
    { ...body, redemption_context: { items: body.redemption_context.items.toReversed() } },
    { ...body, redemption_context: {} },
    { ...body, redemption_context: { ...body.redemption_context, till: 1 } },
  ];
  for (const changed of others) await isReused(t, a.post(redeemPath, changed), JSON.stringify(Object.keys(changed)));
  await isReused(t, a.post("/v1/coupons/lock", body), "another operation");
  await isReused(t, a.post("/v1/batches", { request_id: body.request_id, template: "tpl_fixed", total_count: 1 }));
  await isReused(
    t,
    a.post(
      redeemPath,
      { ...body, request_id: newRequestId(), order_amount: 1 },
      { idempotencyKey: `${body.request_id}-key` },
    ),
    "another body by key",
  );
  await isReused(
    t,
    a.post("/v1/coupons/lock", { ...body, request_id: newRequestId() }, { idempotencyKey: `${body.request_id}-key` }),
    "another operation by key",
  );
  await isReplayOf(t, first, a.post(redeemPath, body));
});

t.test("Once its record is pruned, a request_id locks again, and names the newest of its locks", async (t) => {
  const [coupon] = await makeCoupons(1);
  const place = { coupon, merchant: "mch_a" };
  const lock = { request_id: newRequestId(), ...place };
  const named = { coupon, lock_request_id: lock.request_id };
  await postOk(a, "/v1/coupons/lock", lock);
  await postOk(a, "/v1/coupons/cancel", { request_id: newRequestId(), ...named });
  await service.owner.rows("delete from core.request where request_id = $1", [lock.request_id]);
  const { lock_expires_at, redemption } = await postOk(a, "/v1/coupons/lock", lock);
  fits(t, await a.post("/v1/coupons/lock", { ...lock, request_id: newRequestId() }), {
    status: 409,
    json: { code: "COUPON_LOCKED", details: { lock_expires_at } },
  });
  fits(t, await postOk(a, "/v1/coupons/confirm", { request_id: newRequestId(), ...place, ...named }), { redemption });
});
