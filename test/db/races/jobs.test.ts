// The jobs that mark expired locks and coupons, while calls and patches work on the same rows.
import t from "tap";
import { connect, openSession } from "../../../src/database/connect.ts";
import type { Database } from "../../../src/database/types.ts";
import { fits } from "../../support/fits.ts";
import { readCouponHistory } from "../../support/inspect.ts";
import { arrangeBefore, untilBlocked, untilPast } from "../../support/race.ts";
import { allAgree, merchant, startRaceFixture, type RaceFixture } from "../../support/race-fixture.ts";
import { newRequestId } from "../../support/service.ts";
import { beginRequest } from "../../support/sessions.ts";
import { waitUntil } from "../../support/wait-until.ts";

let fixture: RaceFixture;
let worker: Database;
let patient: Database;
t.before(async () => {
  fixture = await startRaceFixture(t);
  // A job must not wait for a row that a test holds: with this timeout it fails, and the test with it. One test lets a
  // job wait for a table, and uses the patient connection.
  const settings = { name: "coupon test", role: "coupon_worker", max: 1 };
  worker = connect(fixture.service.address, { ...settings, lockTimeoutMs: 1_500 });
  patient = connect(fixture.service.address, settings);
  t.teardown(() => Promise.all([worker.end(), patient.end()]));
});

const extend = (couponId: string, validTo: string) =>
  fixture.service.admin.rows("select admin.extend_coupon('ten_a', $1, $2, 'to arrange a test')", [couponId, validTo]);
const expire = async (by = worker) =>
  (await by.rows<{ done: number }>("select jobs.expire_coupons(100) as done"))[0]!.done;
const lapse = async () => (await worker.rows<{ done: number }>("select jobs.lapse_locks(100) as done"))[0]!.done;
const lock = async (coupon: string) => {
  const request_id = newRequestId();
  const { lock_expires_at } = (await fixture.lock(coupon, request_id)).json;
  // The answer has milliseconds, the row microseconds.
  return { request_id, end: new Date(Date.parse(lock_expires_at) + 1).toISOString() };
};

t.test("Expiry skips a coupon whose redeem began in time", async (t) => {
  const { couponIds, end, moment } = await arrangeBefore(
    fixture.service,
    async (valid_to, seconds) => {
      await fixture.provision(`tpl_${seconds}`, { valid_to });
      const { codes, couponIds } = await fixture.service.makeBatch(fixture.a, `tpl_${seconds}`, 2);
      const body = { request_id: newRequestId(), coupon: codes[0]!, merchant };
      return { couponIds, end: await beginRequest(fixture.service, "ak_a", "redeem", body) };
    },
    ({ end }) => end("rollback"),
  );
  await untilPast(fixture.service, moment);
  t.type(await expire().catch(String), "number", "the job does not wait");
  t.strictSame(await fixture.readEventTypes(couponIds[0]!), [], "the coupon gets no event while the redeem holds it");
  await end("commit");
  await waitUntil("all coupons to expire", async () => (await expire()) === 0, { everyMs: 0 });
  t.strictSame(await fixture.readEventTypes(couponIds[0]!), ["coupon.redeemed"]);
  t.strictSame(await fixture.readEventTypes(couponIds[1]!), ["coupon.expired"]);
  await allAgree(t, fixture);
});

t.test("The lapse job skips a lock whose confirm began in time; a confirm that is too late is refused", async (t) => {
  const { codes, couponIds, late, end } = await arrangeBefore(
    fixture.service,
    async (_, lock_ttl_seconds) => {
      const template = `tpl_lock${lock_ttl_seconds}`;
      await fixture.provision(template, { lock_ttl_seconds });
      const { codes, couponIds } = await fixture.service.makeBatch(fixture.a, template, 2);
      const [early, late] = [await lock(codes[0]!), await lock(codes[1]!)];
      const end = await beginRequest(fixture.service, "ak_a", "confirm", {
        request_id: newRequestId(),
        lock_request_id: early.request_id,
        coupon: codes[0]!,
        merchant,
      });
      return { codes, couponIds, late, end };
    },
    // The locks of a try that was late would count below.
    async ({ end, late }) => {
      await end("rollback");
      await untilPast(fixture.service, late.end);
      await lapse();
    },
  );
  await untilPast(fixture.service, late.end);
  t.equal(await lapse().catch(String), 1, "only the lock that no session holds");
  await end("commit");
  t.equal(await lapse(), 0);
  const tooLate = await fixture.confirm(codes[1]!, late.request_id);
  fits(t, tooLate, { status: 409, json: { code: "LOCK_EXPIRED" } });
  fits(t, await readCouponHistory(fixture.service.owner, couponIds[0]!), {
    status: "REDEEMED",
    redemptions: ["REDEEMED"],
  });
  fits(t, await readCouponHistory(fixture.service.owner, couponIds[1]!), {
    status: "ISSUED",
    redemptions: ["LAPSED"],
    events: [],
  });
  await allAgree(t, fixture);
});

t.test("A coupon that is extended while the expiry job runs does not expire", async (t) => {
  await fixture.provision("tpl_soon", {});
  // More coupons than the job takes in its first step.
  const { couponIds } = await fixture.service.makeBatch(fixture.a, "tpl_soon", 14);
  for (const [index, id] of couponIds.entries())
    await extend(id, new Date(Date.UTC(2021, 0, 1, 0, 0, index)).toISOString());
  const psql = openSession(fixture.service.address, { name: "coupon test", role: "coupon_owner" });
  await psql.run("begin; lock table core.event in share mode");
  // The job blocks when it writes its first event.
  const done = expire(patient);
  await untilBlocked(fixture.service, 1)
    .then(() => extend(couponIds.at(-1)!, "2098-01-01T00:00:00Z"))
    .finally(() => psql.run("commit"));
  await psql.end();
  await done;
  fits(t, await readCouponHistory(fixture.service.owner, couponIds[0]!), { status: "EXPIRED" });
  fits(t, await readCouponHistory(fixture.service.owner, couponIds.at(-1)!), { status: "ISSUED", events: [] });
  await extend(couponIds.at(-1)!, "2021-01-01T00:00:00Z");
  t.equal(await expire(), 1, "the job sees the new end");
  await allAgree(t, fixture);
});

t.test("An expired lock cannot be released", async (t) => {
  await fixture.provision("tpl_soon", { lock_ttl_seconds: 1 });
  const { codes, couponIds } = await fixture.service.makeBatch(fixture.a, "tpl_soon", 1);
  const { end } = await lock(codes[0]!);
  await untilPast(fixture.service, end);
  await t.rejects(
    fixture.service.admin.rows("select admin.release_lock('ten_a', $1, 'till broke down')", [couponIds[0]]),
    {
      code: "CP409",
    },
  );
  fits(t, await readCouponHistory(fixture.service.owner, couponIds[0]!), { redemptions: ["LOCKED"] });
});

t.test("A batch whose row another session holds keeps no other batch from expiring", async (t) => {
  await waitUntil("earlier batches to expire", async () => (await expire()) === 0, { everyMs: 0 });
  const make = () => fixture.service.makeBatch(fixture.a, "tpl_fixed", 2, { isOver: true });
  const [held, free] = [await make(), await make()];
  const psql = openSession(fixture.service.address, { name: "psql" });
  t.teardown(() => psql.end());
  await psql.run("begin");
  await psql.rows("select from core.batch where external_id = $1 for update", [held.id]);
  t.strictSame([await expire().catch(String), await expire().catch(String)], [2, 0], "the job does not wait");
  const readTypes = ({ couponIds }: typeof held) => Promise.all(couponIds.map(fixture.readEventTypes));
  t.strictSame(
    [await readTypes(held), await readTypes(free)],
    [
      [[], []],
      [["coupon.expired"], ["coupon.expired"]],
    ],
  );
  await psql.run("commit");
  t.equal(await expire(), 2);
  await allAgree(t, fixture);
});
