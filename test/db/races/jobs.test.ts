// The jobs that write down what time has done, on the same rows as tills and patches at the same moment.
import t from "tap";
import { connect, openSession } from "../../../src/database/connect.ts";
import type { Database } from "../../../src/database/types.ts";
import type { Client } from "../../support/client.ts";
import { findBrokenInvariants, readCouponHistory } from "../../support/inspect.ts";
import { untilPast, untilBlocked } from "../../support/race.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { beginRequest } from "../../support/sessions.ts";

const merchant = "mch_a";
let service: Running;
let a: Client;
let worker: Database;
t.before(async () => {
  service = await startService(t);
  a = service.as("ak_a");
  // A job that waits for a row that a test holds fails, and the test with it.
  worker = connect(service.address, { name: "coupon test", role: "coupon_worker", max: 1, lockTimeoutMs: 1_500 });
  t.teardown(() => worker.end());
});

async function provision(more: object): Promise<void> {
  const valid = { valid_from: "2020-01-01T00:00:00Z", valid_to: "2099-01-01T00:00:00Z" };
  const template = {
    id: "tpl_soon",
    name: "soon over",
    maker: "pty_a",
    currency: "EUR",
    discount: { type: "fixed", amount: 5 },
    ...valid,
    ...more,
  };
  await service.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", templates: [template] }] });
}
const extend = (couponId: string, validTo: string) =>
  service.admin.rows("select admin.extend_coupon('ten_a', $1, $2, 'to arrange a test')", [couponId, validTo]);
const expire = async () => (await worker.rows<{ done: number }>("select jobs.expire_coupons(100) as done"))[0]!.done;
const lapse = async () => (await worker.rows<{ done: number }>("select jobs.lapse_locks(100) as done"))[0]!.done;
const lock = async (coupon: string) => {
  const request_id = newRequestId();
  const { lock_expires_at } = (await a.post("/v1/coupons/lock", { request_id, coupon, merchant })).json;
  // The answer shows milliseconds, the row has more.
  return { request_id, end: new Date(Date.parse(lock_expires_at) + 1).toISOString() };
};
const typesOf = async (couponId: string) =>
  (await readCouponHistory(service.owner, couponId)).events.map(({ type }) => type);

t.test("expiry that meets a redeem taken in time lets it be", async (t) => {
  const validTo = new Date(Date.now() + 1_000).toISOString();
  await provision({ valid_to: validTo });
  const { codes, couponIds } = await service.makeBatch(a, "tpl_soon", 2);
  const end = await beginRequest(service, "ak_a", "redeem", {
    request_id: newRequestId(),
    coupon: codes[0]!,
    merchant,
  });
  await untilPast(service, validTo);
  t.type(await expire().catch(String), "number", "it does not wait");
  t.strictSame(await typesOf(couponIds[0]!), [], "nothing is said of it while somebody holds it");
  await end("commit");
  while ((await expire()) > 0);
  t.strictSame(await typesOf(couponIds[0]!), ["coupon.redeemed"]);
  t.strictSame(await typesOf(couponIds[1]!), ["coupon.expired"]);
  t.strictSame(await findBrokenInvariants(service.owner), []);
});

t.test("lapse that meets a confirm taken in time leaves it alone, and one that comes too late is told", async (t) => {
  await provision({ lock_ttl_seconds: 1 });
  const { codes, couponIds } = await service.makeBatch(a, "tpl_soon", 2);
  const [early, late] = [await lock(codes[0]!), await lock(codes[1]!)];
  const end = await beginRequest(service, "ak_a", "confirm", {
    request_id: newRequestId(),
    lock_request_id: early.request_id,
    coupon: codes[0]!,
    merchant,
  });
  await untilPast(service, late.end);
  t.equal(await lapse().catch(String), 1, "the one that nobody holds");
  await end("commit");
  t.equal(await lapse(), 0);
  const tooLate = await a.post("/v1/coupons/confirm", {
    request_id: newRequestId(),
    lock_request_id: late.request_id,
    coupon: codes[1],
    merchant,
  });
  t.match(tooLate, { status: 409, json: { code: "LOCK_EXPIRED" } });
  t.match(await readCouponHistory(service.owner, couponIds[0]!), { status: "REDEEMED", redemptions: ["REDEEMED"] });
  t.match(await readCouponHistory(service.owner, couponIds[1]!), {
    status: "ISSUED",
    redemptions: ["LAPSED"],
    events: [],
  });
  t.strictSame(await findBrokenInvariants(service.owner), []);
});

t.test("a coupon that is extended while expiry is on its way to it does not expire", async (t) => {
  await provision({});
  // More than the job takes in its first gulp.
  const { couponIds } = await service.makeBatch(a, "tpl_soon", 14);
  for (const [index, id] of couponIds.entries())
    await extend(id, new Date(Date.UTC(2021, 0, 1, 0, 0, index)).toISOString());
  const psql = openSession(service.address, { name: "coupon test", role: "coupon_owner" });
  await psql.run("begin; lock table core.event in share mode");
  // It waits with its first event.
  const done = expire();
  await untilBlocked(service, 1)
    .then(() => extend(couponIds.at(-1)!, "2098-01-01T00:00:00Z"))
    .finally(() => psql.run("commit"));
  await psql.end();
  await done;
  t.match(await readCouponHistory(service.owner, couponIds[0]!), { status: "EXPIRED" });
  t.match(await readCouponHistory(service.owner, couponIds.at(-1)!), { status: "ISSUED", events: [] });
  await extend(couponIds.at(-1)!, "2021-01-01T00:00:00Z");
  t.equal(await expire(), 1, "its new end is known");
  t.strictSame(await findBrokenInvariants(service.owner), []);
});

t.test("a lock past its end cannot be released: it is gone already", async (t) => {
  await provision({ lock_ttl_seconds: 1 });
  const { codes, couponIds } = await service.makeBatch(a, "tpl_soon", 1);
  const { end } = await lock(codes[0]!);
  await untilPast(service, end);
  await t.rejects(service.admin.rows("select admin.release_lock('ten_a', $1, 'till broke down')", [couponIds[0]]), {
    code: "CP409",
  });
  t.match(await readCouponHistory(service.owner, couponIds[0]!), { redemptions: ["LOCKED"] });
});
