// How retries are recognised: by request_id or idempotency-key, per caller. Also the writes that remember more than
// recorded requests do: cancels that arrive before their lock, and batch creates.
import t from "tap";
import { fits } from "../../support/fits.ts";
import { createClient } from "../../support/signing-client.ts";
import { tenants } from "../../support/tenants.ts";
import { isReplay, startReplayService } from "../../support/replays.ts";
import { newRequestId } from "../../support/service.ts";

const redeemPath = "/v1/coupons/redeem";
const { service, a, isReplayOf, isReplayByKey, isReused, makeCoupons } = await startReplayService(t);

t.test("A retry is recognised by its request_id or by its idempotency-key", async (t) => {
  const [code, other] = await makeCoupons(2);
  const body = { request_id: newRequestId(), coupon: code, merchant: "mch_a" };
  const key = `Schlüssel ${body.request_id}`;
  // Node sends headers as Latin-1, so this sends the UTF-8 bytes that other clients send.
  const idempotencyKey = Buffer.from(key).toString("latin1");
  const first = await a.post(redeemPath, body, { idempotencyKey });
  await isReplayOf(t, first, a.post(redeemPath, body), "by request_id, without a key");
  await isReplayOf(
    t,
    first,
    a.post(redeemPath, body, { idempotencyKey: "another key" }),
    "by request_id, with another key",
  );
  await isReplayByKey(
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

t.test("IDs belong to the caller, not to the access key", async (t) => {
  const [code] = await makeCoupons(1);
  const body = { request_id: newRequestId(), coupon: code, merchant: "mch_a" };
  const first = await a.post(redeemPath, body, { idempotencyKey: "one-key" });
  await isReplayOf(t, first, service.as("ak_a_second").post(redeemPath, body), "another credential of the tenant");
  await isReplayByKey(
    t,
    first,
    service.as("ak_a_second").post(redeemPath, { ...body, request_id: newRequestId() }, { idempotencyKey: "one-key" }),
  );
  fits(t, (await service.as("ak_a_second").get(`/v1/requests/${body.request_id}`)).json, { ok: true });

  // Variant B: each party has its own IDs; a second credential of the same party shares them.
  const again = structuredClone(tenants[2]!);
  again.credentials.push({ access_key: "ak_pos_second", secret: again.credentials[0]!.secret, party: "pty_pos" });
  await service.apply({ tenants: [again] });
  const posSecond = createClient({
    url: service.url,
    accessKey: "ak_pos_second",
    secret: again.credentials[0]!.secret,
  });
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
    "a party does not see the requests of another",
  );
});

t.test("A lock that arrives after its cancel is refused", async (t) => {
  const { codes } = await service.makeBatch(service.as("ak_maker"), "tpl_b", 1);
  const request_id = newRequestId();
  const lock = { request_id, coupon: codes[0], merchant: "mch_b" };
  const cancel = { request_id: newRequestId(), lock_request_id: request_id, coupon: codes[0] };
  const early = await service.as("ak_pos").post("/v1/coupons/cancel", cancel);
  fits(t, early, { status: 409, json: { code: "LOCK_NOT_FOUND" } });
  const late = await service.as("ak_pos").post("/v1/coupons/lock", lock);
  fits(t, late, { status: 409, json: { code: "LOCK_CANCELLED" } });
  await isReplayOf(t, late, service.as("ak_pos").post("/v1/coupons/lock", lock));
  await isReplayOf(t, early, service.as("ak_pos").post("/v1/coupons/cancel", cancel));
  fits(
    t,
    await service.as("ak_pos").post(redeemPath, { ...lock, request_id: newRequestId() }),
    { status: 200 },
    "the coupon is free for a new request",
  );
});

t.test("A repeated batch create never mints twice, even after its record was deleted", async (t) => {
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
  fits(t, again, {
    status: 200,
    json: { batch: { external_id: first.json.batch.external_id, status: "COMPLETED", minted_count: 4 } },
  });
  await service.mint();
  t.strictSame(await batches(), before);
  await service.owner.rows("delete from core.request where request_id = $1", [body.request_id]);
  fits(t, await a.post("/v1/batches", { ...body, total_count: 5 }), {
    status: 422,
    json: { code: "IDEMPOTENCY_KEY_REUSED" },
  });
  t.strictSame(await batches(), before);
  fits(
    t,
    await a.post("/v1/batches", body),
    { status: 200, json: { batch: { external_id: first.json.batch.external_id } } },
    "a wrong retry does not prevent the right one",
  );
});

t.test("A batch create repeated by its idempotency-key never mints twice either", async (t) => {
  const body = { template: "tpl_fixed", total_count: 4 };
  const idempotencyKey = newRequestId();
  const first = await a.post("/v1/batches", { request_id: newRequestId(), ...body }, { idempotencyKey });
  await service.owner.rows("delete from core.request where idempotency_key = $1", [idempotencyKey]);
  const again = await a.post("/v1/batches", { request_id: newRequestId(), ...body }, { idempotencyKey });
  t.equal(again.json.batch.external_id, first.json.batch.external_id);
});

t.test(
  "A batch create that repeats two pruned requests at once is refused, whichever of the two it equals",
  async (t) => {
    const kinds = [
      { names: { request_id: newRequestId() }, total_count: 2 },
      { names: { request_id: newRequestId() }, key: newRequestId(), total_count: 3 },
    ];
    for (const { names, key, total_count } of kinds) {
      const options = key === undefined ? {} : { idempotencyKey: key };
      const body = { ...names, template: "tpl_fixed", total_count };
      t.equal((await a.post("/v1/batches", body, options)).status, 200);
    }
    const forget = () => service.owner.rows("delete from core.request");
    const [one, two] = kinds as [(typeof kinds)[0], (typeof kinds)[0]];
    for (const total_count of [one.total_count, two.total_count, 4]) {
      const body = { ...one.names, template: "tpl_fixed", total_count };
      await forget();
      await isReused(t, a.post("/v1/batches", body, { idempotencyKey: two.key! }), `${total_count} coupons`);
    }
    await forget();
    const [count] = await service.owner.rows(
      "select count(*)::int from core.batch where request_id = any ($1::text[])",
      [kinds.map(({ names }) => names.request_id)],
    );
    t.strictSame({ ...count }, { count: 2 }, "no third batch");
  },
);
