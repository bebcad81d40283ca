// Jobs and reads wait for no row, but their transaction can be old: what counts is the clock where they decide.
import t from "tap";
import { lookupHash } from "../../../src/crypto/coupon-code.ts";
import { openSession } from "../../../src/database/connect.ts";
import { daySeconds, setZone, zoneOf } from "../../support/business-days.ts";
import { fits } from "../../support/fits.ts";
import { readCouponHistory } from "../../support/inspect.ts";
import { untilBlocked, untilPast } from "../../support/race.ts";
import { allAgree, merchant, startRaceFixture, type RaceFixture } from "../../support/race-fixture.ts";
import type { Running } from "../../support/service.ts";
import { startStatementFixture } from "../../support/statement-fixture.ts";
import { openTill } from "../../support/writers.ts";

let fixture: RaceFixture;
t.before(async () => {
  fixture = await startRaceFixture(t);
});

const isFixed = "set local session_replication_role = replica;";
const ofCoupon = "where coupon_id = rules.parse_id('cpn', $1)";
const endValidity = `update core.coupon set valid_to = clock_timestamp() ${ofCoupon}`;
const endLock = `update core.redemption set lock_expires_at = clock_timestamp() ${ofCoupon} and status = 'LOCKED'`;

// A transaction of the worker that began before `change`. Returns what its query answers afterwards.
async function inOldTransaction(
  service: Pick<Running, "address">,
  query: string,
  change: () => Promise<unknown>,
): Promise<unknown> {
  const worker = openSession(service.address, { name: "coupon test worker", role: "coupon_worker" });
  try {
    await worker.run("begin");
    await worker.rows("select now()");
    await change();
    const [row] = await worker.rows<{ done: unknown }>(`select ${query} as done`);
    await worker.run("commit");
    return row!.done;
  } finally {
    await worker.end();
  }
}

// Changes a row of a coupon as if time had passed. A trigger would refuse some of these changes.
async function pass(change: string, key: string, prepare = ""): Promise<void> {
  const psql = openSession(fixture.service.address, { name: "psql" });
  try {
    await psql.run(`begin; ${prepare}`);
    await psql.rows(change, [key]);
    await psql.run("commit");
  } finally {
    await psql.end();
  }
}

t.test("The lapse job takes the locks that have expired by now", async (t) => {
  const { code, id } = await fixture.makeCoupon();
  await fixture.lock(code);
  const { service } = fixture;
  t.equal(await inOldTransaction(service, "jobs.lapse_locks(100)", () => pass(endLock, id, isFixed)), 1);
  fits(t, await readCouponHistory(service.owner, id), { status: "ISSUED", redemptions: ["LAPSED"], events: [] });
  const [lock] = await service.owner.rows<{ is_later: boolean }>(
    `select ended_at >= lock_expires_at as is_later from core.redemption ${ofCoupon}`,
    [id],
  );
  t.equal(lock!.is_later, true, "it ended no earlier than it expired");
  await allAgree(t, fixture);
});

t.test("The expiry job takes the coupons and batches that are over by now", async (t) => {
  const { service } = fixture;
  const extended = await fixture.makeCoupon();
  t.equal(await inOldTransaction(service, "jobs.expire_coupons(100)", () => pass(endValidity, extended.id)), 1);
  fits(t, await readCouponHistory(service.owner, extended.id), {
    status: "EXPIRED",
    events: [{ type: "coupon.expired" }],
  });

  const { id, couponIds } = await service.makeBatch(fixture.a, "tpl_fixed", 2);
  const endBatch = async () => {
    for (const coupon of couponIds) await pass(endValidity, coupon, isFixed);
    await pass("update core.batch set valid_to = clock_timestamp() where external_id = $1", id, isFixed);
  };
  t.equal(await inOldTransaction(service, "jobs.expire_coupons(100)", endBatch), 2);
  for (const coupon of couponIds)
    fits(t, await readCouponHistory(service.owner, coupon), {
      status: "EXPIRED",
      events: [{ type: "coupon.expired" }],
    });
  await allAgree(t, fixture);
});

t.test("A business day is closed when it is over by now", async (t) => {
  const { service, books, parties } = await startStatementFixture(t, 1);
  await books.sequence();
  const now = Math.floor(Date.now() / 1000);
  // Local time is now 4 s after midnight; the day is over 5 s after midnight.
  const closed = await inOldTransaction(service, "jobs.close_days(10)", async () => {
    await setZone(service, parties[0]!, zoneOf(daySeconds - (now % daySeconds) + 4));
    await untilPast(service, new Date((now + 1) * 1000).toISOString());
  });
  t.equal(closed, 1);
});

t.test("A query and the creation of a batch see what is over by now", async (t) => {
  const { service } = fixture;
  await fixture.provision("tpl_soon", {});
  const { code, id } = await fixture.makeCoupon();
  const till = await openTill(service);
  await till.session.run("begin");
  await till.session.rows("select now()");
  await pass(endValidity, id);
  await pass("update core.template set valid_to = clock_timestamp() where external_id = $1", "tpl_soon", isFixed);
  const answers = await till.send(
    [
      { operation: "query", args: { coupon: lookupHash(service.keys, code), merchant }, body_hash: null },
      { operation: "create_batch", args: { template: "tpl_soon", total_count: 1, key_version: "1" } },
    ],
    true,
  );
  await till.session.run("commit");
  await till.session.end();
  fits(
    t,
    answers.map(({ body }) => JSON.parse(body) as unknown),
    [{ coupon: { status: "EXPIRED" } }, { code: "TEMPLATE_EXPIRED" }],
  );
});

t.test("A patch to a time that passes during its wait does not bring an EXPIRED coupon back", async (t) => {
  const { id } = await fixture.makeCoupon();
  const extend = (validTo: string) =>
    fixture.service.admin.rows("select admin.extend_coupon('ten_a', $1, $2, 'to arrange a test')", [id, validTo]);
  await extend("2021-01-01T00:00:00Z");
  await inOldTransaction(fixture.service, "jobs.expire_coupons(100)", async () => {});
  const psql = openSession(fixture.service.address, { name: "psql" });
  await psql.run("begin");
  await psql.rows(`select from core.coupon ${ofCoupon} for update`, [id]);
  const validTo = new Date(Date.now() + 700).toISOString();
  const extended = t.resolves(extend(validTo));
  await untilBlocked(fixture.service, 1)
    .then(() => untilPast(fixture.service, validTo))
    .finally(() => psql.run("commit"));
  await psql.end();
  await extended;
  fits(t, await readCouponHistory(fixture.service.owner, id), { status: "EXPIRED", events: { length: 1 } });
});

t.test("A voiding of a batch leaves the coupons whose validity ends while it runs", async (t) => {
  const { service } = fixture;
  // More coupons than a loop of PL/pgSQL reads ahead.
  const { id, couponIds } = await service.makeBatch(fixture.a, "tpl_fixed", 14);
  const psql = openSession(service.address, { name: "psql" });
  await psql.run("begin; lock table core.event in share mode");
  // It blocks when it writes its first event.
  const voiding = service.admin.rows<{ count: number }>("select admin.void_batch('ten_a', $1, 'recalled') as count", [
    id,
  ]);
  await untilBlocked(service, 1)
    .then(() => pass(endValidity, couponIds.at(-1)!))
    .finally(() => psql.run("commit"));
  await psql.end();
  t.equal((await voiding)[0]!.count, 13);
  fits(t, await readCouponHistory(service.owner, couponIds.at(-1)!), { status: "ISSUED", events: [] });
  await allAgree(t, fixture);
});
