// A write that was judged has one answer for ever; one that was not judged has none.
import t, { type Test } from "tap";
import { client, type Client, type Reply } from "../../support/client.ts";
import { tenants } from "../../support/provisioning.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { readState } from "../../support/state.ts";

const redeemPath = "/v1/coupons/redeem";
let service: Running;
let a: Client;
t.before(async () => {
  service = await startService(t, { tenants });
  a = service.as("ak_a");
});

const coupons = async (count: number) => (await service.makeBatch(a, "tpl_fixed", count)).codes;
const everything = () => readState(service.owner, { withRequests: true });
const isReplay = (reply: Reply) => reply.headers["idempotent-replayed"] === "true";

async function isReplayOf(t: Test, first: Reply, retry: Promise<Reply>, message = "a replay"): Promise<void> {
  const before = await everything();
  const reply = await retry;
  t.strictSame(
    [reply.status, reply.text, reply.headers["idempotent-replayed"]],
    [first.status, first.text, "true"],
    message,
  );
  t.strictSame(await everything(), before, "and nothing changed");
}

async function isReused(t: Test, attempt: Promise<Reply>, message = "reused"): Promise<void> {
  const before = await everything();
  const reply = await attempt;
  t.match(reply, { status: 422, json: { code: "IDEMPOTENCY_KEY_REUSED", details: null } }, message);
  t.notOk(isReplay(reply));
  t.strictSame(await everything(), before, "and nothing changed");
}

t.test("every write is replayed byte for byte, its effect happens once", async (t) => {
  const [one, two, three, four] = await coupons(4);
  const merchant = "mch_a";
  const lockId = newRequestId();
  const {
    json: {
      batch: { external_id: batch },
    },
  } = await a.post("/v1/batches", { request_id: newRequestId(), template: "tpl_fixed", total_count: 1 });
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
    t.match(first, { status: 200, json: { ok: true } }, `${path} ${first.text}`);
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
    await isReplayOf(t, first, a.post(path, body), "what was answered stays, whatever happened since");
  }
});

t.test("refusals are final too: the reason may be gone, the answer stays", async (t) => {
  const [code, ahead] = await coupons(2);
  const { id, codes } = await service.makeBatch(a, "tpl_fixed", 1, { isReleased: false });
  const body = { request_id: newRequestId(), coupon: codes[0], merchant: "mch_a" };
  const early = await a.post(redeemPath, body);
  t.match(early, { status: 409, json: { code: "COUPON_NOT_RELEASED" } });
  await a.post("/v1/batches/allocate", { request_id: newRequestId(), batch: id });
  await isReplayOf(t, early, a.post(redeemPath, body), "409");
  t.equal(
    (await a.post(redeemPath, { ...body, request_id: newRequestId() })).status,
    200,
    "a new request is judged anew",
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
  t.match(mismatch, { status: 422, json: { code: "CURRENCY_MISMATCH" } });
  await isReplayOf(t, mismatch, a.post(redeemPath, unscoped), "422");
});

t.test("bodies are compared by their values, not by their bytes", async (t) => {
  const [code] = (await coupons(1)) as [string];
  const request_id = newRequestId();
  const context = { items: [{ sku: "Ä", quantity: 1, amount: 10 }] };
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
  const spellings = [
    `{"redemption_context":{"items":[{"amount":10,"quantity":1,"sku":"Ä"}]},"store":"S 1","order_amount":20.5,"merchant":"mch_a","coupon":"${code}","request_id":"${request_id}"}`,
    `{"request_id":"${request_id}","coupon":"${inGroups}","merchant":"mch_\\u0061","order_amount":2.050e1,"store":" S 1 ","redemption_context":{"items":[{"sku":"\\u00c4","quantity":1.0,"amount":1e1}]}}`,
    `\n{ "request_id" : "${request_id}" , "coupon" : "${code.replaceAll("0", "o").replaceAll("1", "L")}", "merchant":"mch_a", "order_amount":20.50,"store":"S 1", "redemption_context":{"items":[{"sku":"A\\u0308"}]}}`.replace(
      '"A\\u0308"',
      '"Ä","quantity":1,"amount":10.00',
    ),
  ];
  for (const text of spellings) await isReplayOf(t, first, a.post(redeemPath, text), text.replace(code, "…"));
});

t.test("another body or another operation under a used id is refused, and the first answer stays", async (t) => {
  const [code, other] = await coupons(2);
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

t.test("a retry is known by its request_id or by its idempotency-key", async (t) => {
  const [code, other] = await coupons(2);
  const body = { request_id: newRequestId(), coupon: code, merchant: "mch_a" };
  const key = `Schlüssel ${body.request_id}`;
  // A header's bytes: node sends Latin-1, a partner sends UTF-8.
  const idempotencyKey = Buffer.from(key).toString("latin1");
  const first = await a.post(redeemPath, body, { idempotencyKey });
  await isReplayOf(t, first, a.post(redeemPath, body), "by request_id, without a key");
  await isReplayOf(
    t,
    first,
    a.post(redeemPath, body, { idempotencyKey: "another key" }),
    "by request_id, with another key",
  );
  await isReplayOf(
    t,
    first,
    a.post(redeemPath, { ...body, request_id: newRequestId() }, { idempotencyKey }),
    "by key, with another request_id",
  );
  const second = { request_id: newRequestId(), coupon: other, merchant: "mch_a" };
  t.equal((await a.post(redeemPath, second, { idempotencyKey: `${key}-2`.replace("ü", "u") })).status, 200);
  await isReused(t, a.post(redeemPath, second, { idempotencyKey }), "request_id of one and key of another");
  await isReused(t, a.post(redeemPath, body, { idempotencyKey: `${key}-2`.replace("ü", "u") }));
});

t.test("the scope is the caller, not the access key", async (t) => {
  const [code] = await coupons(1);
  const body = { request_id: newRequestId(), coupon: code, merchant: "mch_a" };
  const first = await a.post(redeemPath, body, { idempotencyKey: "one-key" });
  await isReplayOf(t, first, service.as("ak_a_second").post(redeemPath, body), "another credential of the tenant");
  await isReplayOf(
    t,
    first,
    service.as("ak_a_second").post(redeemPath, { ...body, request_id: newRequestId() }, { idempotencyKey: "one-key" }),
  );
  t.match((await service.as("ak_a_second").get(`/v1/requests/${body.request_id}`)).json, { ok: true });

  // Variant B: each party has its own ids; a second credential of the same party shares them.
  const again = structuredClone(tenants[2]!);
  again.credentials.push({ access_key: "ak_pos_second", secret: again.credentials[0]!.secret, party: "pty_pos" });
  await service.apply({ tenants: [again] });
  const posSecond = client({ url: service.url, accessKey: "ak_pos_second", secret: again.credentials[0]!.secret });
  const { codes } = await service.makeBatch(service.as("ak_maker"), "tpl_b", 2);
  const lock = { request_id: body.request_id, coupon: codes[0], merchant: "mch_b" };
  const locked = await service.as("ak_pos").post("/v1/coupons/lock", lock, { idempotencyKey: "one-key" });
  t.ok(locked.status === 200 && !isReplay(locked), "another tenant may use the same ids");
  await isReplayOf(t, locked, posSecond.post("/v1/coupons/lock", lock), "another credential of the party");
  const byOwner = await service
    .as("ak_shop")
    .post("/v1/coupons/lock", { ...lock, coupon: codes[1] }, { idempotencyKey: "one-key" });
  t.ok(byOwner.status === 200 && !isReplay(byOwner), "another party may use the same ids");
  t.equal(
    (await service.as("ak_other").get(`/v1/requests/${lock.request_id}`)).status,
    404,
    "and does not see another's",
  );
});

t.test("a late lock is refused after its cancel, for the caller who cancelled", async (t) => {
  const { codes } = await service.makeBatch(service.as("ak_maker"), "tpl_b", 1);
  const request_id = newRequestId();
  const lock = { request_id, coupon: codes[0], merchant: "mch_b" };
  const cancel = { request_id: newRequestId(), lock_request_id: request_id, coupon: codes[0] };
  const early = await service.as("ak_pos").post("/v1/coupons/cancel", cancel);
  t.match(early, { status: 409, json: { code: "LOCK_NOT_FOUND" } });
  const late = await service.as("ak_pos").post("/v1/coupons/lock", lock);
  t.match(late, { status: 409, json: { code: "LOCK_CANCELLED" } });
  await isReplayOf(t, late, service.as("ak_pos").post("/v1/coupons/lock", lock));
  await isReplayOf(t, early, service.as("ak_pos").post("/v1/coupons/cancel", cancel));
  t.match(
    await service.as("ak_pos").post(redeemPath, { ...lock, request_id: newRequestId() }),
    { status: 200 },
    "the coupon is free for a new request",
  );
});

t.test("a batch create never mints twice, also when its record is long gone", async (t) => {
  const body = { request_id: newRequestId(), template: "tpl_fixed", total_count: 4 };
  const first = await a.post("/v1/batches", body);
  await service.mint();
  const pruned = await service.owner.rows("delete from core.request where request_id = $1 returning 1", [
    body.request_id,
  ]);
  t.equal(pruned.length, 1);
  const batches = () =>
    service.owner.rows("select external_id, minted_count from core.batch where request_id = $1", [body.request_id]);
  const before = await batches();
  const again = await a.post("/v1/batches", body);
  t.match(again, {
    status: 200,
    json: { batch: { external_id: first.json.batch.external_id, status: "COMPLETED", minted_count: 4 } },
  });
  await service.mint();
  t.strictSame(await batches(), before);
  await service.owner.rows("delete from core.request where request_id = $1", [body.request_id]);
  t.match(await a.post("/v1/batches", { ...body, total_count: 5 }), {
    status: 422,
    json: { code: "IDEMPOTENCY_KEY_REUSED" },
  });
  t.strictSame(await batches(), before);
  t.match(
    await a.post("/v1/batches", body),
    { status: 200, json: { batch: { external_id: first.json.batch.external_id } } },
    "a wrong retry does not stand in the right one's way",
  );
});

t.test("a batch create that is known by its idempotency-key never mints twice either", async (t) => {
  const body = { template: "tpl_fixed", total_count: 4 };
  const idempotencyKey = newRequestId();
  const first = await a.post("/v1/batches", { request_id: newRequestId(), ...body }, { idempotencyKey });
  await service.owner.rows("delete from core.request where idempotency_key = $1", [idempotencyKey]);
  const again = await a.post("/v1/batches", { request_id: newRequestId(), ...body }, { idempotencyKey });
  t.equal(again.json.batch.external_id, first.json.batch.external_id);
});
