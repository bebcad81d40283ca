// A retry with a new request_id that is found by its idempotency-key: its request_id names the request too.
import t from "tap";
import { openSession } from "../../../src/database/connect.ts";
import { fits } from "../../support/fits.ts";
import { startReplayService } from "../../support/replays.ts";
import { newRequestId } from "../../support/service.ts";
import { template } from "../../support/tenants.ts";

const { service, a, isReplayOf, isReplayByKey, isReused, makeCoupons } = await startReplayService(t);
const psql = openSession(service.address, { name: "psql" });
await psql.run("set session_replication_role = replica");
t.teardown(() => psql.end());

// As if 91 days had passed for these records.
async function age(requestIds: string[]): Promise<void> {
  const older = "update core.request set recorded_at = recorded_at - interval '91 days' where request_id = any ($1)";
  await psql.rows(older, [requestIds]);
  await service.owner.rows("select jobs.prune_requests(90, 1000, 0, 1000)");
}

t.test("The request_id of a retry by idempotency-key names the request from then on", async (t) => {
  const newNames = () => ({ first: newRequestId(), retry: newRequestId(), idempotencyKey: newRequestId() });
  const countBatches = () => service.owner.rows("select count(*)::int from core.batch");
  const batch = newNames();
  const order = { template: "tpl_fixed", total_count: 3 };
  const made = await a.post("/v1/batches", { ...order, request_id: batch.first }, batch);
  const retried = { ...order, request_id: batch.retry };
  await isReplayByKey(t, made, a.post("/v1/batches", retried, batch));
  const before = await countBatches();
  await isReplayOf(t, made, a.post("/v1/batches", retried), "without the key");
  await isReplayOf(t, made, a.post("/v1/batches", retried, batch), "again with the key");
  await isReused(t, a.post("/v1/batches", { ...retried, total_count: 4 }));
  t.strictSame(await countBatches(), before);
  t.strictSame((await a.get(`/v1/requests/${batch.retry}`)).json.request.response, made.json);

  const { codes } = await service.makeBatch(service.as("ak_maker"), "tpl_b", 3);
  const [pos, shop] = [service.as("ak_pos"), service.as("ak_shop")];
  const lock = async (coupon: string | undefined) => {
    const names = newNames();
    const body = { coupon, merchant: "mch_b" };
    const { json } = await pos.post("/v1/coupons/lock", { ...body, request_id: names.first }, names);
    await pos.post("/v1/coupons/lock", { ...body, request_id: names.retry }, names);
    const end = (by: typeof pos, operation: "confirm" | "cancel", coupon: string | undefined) =>
      by.post(`/v1/coupons/${operation}`, {
        request_id: newRequestId(),
        coupon,
        lock_request_id: names.retry,
        ...(operation === "confirm" && { merchant: "mch_b" }),
      });
    return { redemption: json.redemption, end };
  };
  const [one, other] = [await lock(codes[0]), await lock(codes[1])];
  const notFound = { status: 409, json: { code: "LOCK_NOT_FOUND" } };
  fits(t, await one.end(pos, "confirm", codes[1]), notFound, "another coupon");
  fits(t, await one.end(shop, "confirm", codes[0]), notFound, "another caller");
  fits(t, await one.end(pos, "confirm", codes[0]), { status: 200, json: { redemption: one.redemption } });
  fits(t, await one.end(pos, "cancel", codes[0]), { status: 409, json: { code: "LOCK_CONFIRMED" } });
  fits(t, await other.end(pos, "cancel", codes[1]), { status: 200, json: { redemption: other.redemption } });

  // A refused lock has no redemption.
  const names = newNames();
  const refused = { coupon: codes[0], merchant: "mch_b" };
  const refusal = await pos.post("/v1/coupons/lock", { ...refused, request_id: names.first }, names);
  t.equal(refusal.status, 409);
  await isReplayByKey(t, refusal, pos.post("/v1/coupons/lock", { ...refused, request_id: names.retry }, names));
  await isReplayOf(t, refusal, pos.post("/v1/coupons/lock", { ...refused, request_id: names.retry }));
});

t.test("The record of a retry by idempotency-key has the time of the first one, and is pruned with it", async (t) => {
  const [coupon] = await makeCoupons(1);
  const [first, retry, idempotencyKey] = [newRequestId(), newRequestId(), newRequestId()];
  const body = { coupon, merchant: "mch_a" };
  await a.post("/v1/coupons/lock", { ...body, request_id: first }, { idempotencyKey });
  await a.post("/v1/coupons/lock", { ...body, request_id: retry }, { idempotencyKey });
  const recordedAt = async (id: string) => (await a.get(`/v1/requests/${id}`)).json.request?.recorded_at;
  t.equal(await recordedAt(retry), await recordedAt(first));
  await service.owner.rows("delete from core.request where request_id = $1", [first]);
  t.equal((await service.owner.rows("select * from report.invariants")).length, 0, "a retry alone is no contradiction");
  await age([retry]);
  t.equal(await recordedAt(retry), undefined);
});

t.test("A retry by idempotency-key never mints again, even after the retention", async (t) => {
  const body = { template: "tpl_fixed", total_count: 3 };
  const names = [newRequestId(), newRequestId(), newRequestId()];
  const [first, retry, late] = names;
  const idempotencyKey = newRequestId();
  const create = (request_id: string | undefined, key?: string) =>
    a.post("/v1/batches", { ...body, request_id }, key === undefined ? {} : { idempotencyKey: key });
  const made = await create(first, idempotencyKey);
  await create(retry, idempotencyKey);
  await age(names);
  await create(late, idempotencyKey);
  await age(names);
  const kept = await service.owner.rows("select request_id from core.request where request_id = any ($1)", [names]);
  t.strictSame(kept.map(({ request_id }) => request_id).sort(), [retry, late].sort());
  const batches = await service.owner.rows("select count(*)::int from core.batch");
  for (const name of names) t.equal((await create(name)).json.batch.external_id, made.json.batch.external_id);
  t.strictSame(await service.owner.rows("select count(*)::int from core.batch"), batches);
});

t.test("A batch of another tenant or caller with the request_id of a retry does not end the retry", async (t) => {
  const templates = [template("tpl_other", "pty_other")];
  await service.apply({ tenants: [{ id: "ten_b", name: "B", variant: "B", templates }] });
  for (const [by, name, other, otherName] of [
    ["ak_a", "tpl_fixed", "ak_a_stranger", "tpl_a2s"],
    ["ak_maker", "tpl_b", "ak_other", "tpl_other"],
  ] as const) {
    const [first, retry, idempotencyKey] = [newRequestId(), newRequestId(), newRequestId()];
    const create = (caller: string, template: string, request_id: string, key = {}) =>
      service.as(caller).post("/v1/batches", { template, total_count: 3, request_id }, key);
    const made = await create(by, name, first, { idempotencyKey });
    await create(by, name, retry, { idempotencyKey });
    t.equal((await create(other, otherName, retry)).status, 200);
    await age([first, retry]);
    const kept = await service.owner.rows<{ request_id: string; batch: string }>(
      `select request_id, response::jsonb -> 'batch' ->> 'external_id' as batch
       from report.request where request_id = any ($1)`,
      [[first, retry]],
    );
    t.strictSame(
      kept.map(({ request_id, batch }) => [request_id, batch]),
      [[retry, made.json.batch.external_id]],
      `${by}: nothing but the retry is kept`,
    );
    await isReplayOf(t, made, create(by, name, retry));
  }
});

t.test("The record of a refused batch create is pruned", async (t) => {
  const request_id = newRequestId();
  const refusal = await a.post("/v1/batches", { request_id, template: "tpl_none", total_count: 3 });
  const count = () => service.owner.rows("select from core.request where request_id = $1", [request_id]);
  t.strictSame([refusal.status, (await count()).length], [404, 1]);
  await age([request_id]);
  t.equal((await count()).length, 0);
});

t.test("A request_id that named other locks before names the latest one", async (t) => {
  for (const isRetryNamed of [true, false]) {
    const [coupon] = await makeCoupons(1);
    const [first, retry, idempotencyKey] = [newRequestId(), newRequestId(), newRequestId()];
    const lock = (request_id: string, header = {}) =>
      a.post("/v1/coupons/lock", { request_id, coupon, merchant: "mch_a" }, header);
    const end = (operation: string, lock_request_id: string, more = {}) =>
      a.post(`/v1/coupons/${operation}`, { request_id: newRequestId(), coupon, lock_request_id, ...more });
    const before = isRetryNamed ? retry : first;
    await lock(before);
    fits(t, await end("cancel", before), { status: 200 });
    await age([before]);
    const { json } = await lock(first, { idempotencyKey });
    await lock(retry, { idempotencyKey });
    fits(t, await end("confirm", retry, { merchant: "mch_a" }), { status: 200, json: { redemption: json.redemption } });
  }
});
