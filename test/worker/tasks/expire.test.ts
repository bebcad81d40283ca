// Expiry: what time has done is written down once, in small steps, and told for each released coupon.
import t, { type Test } from "tap";
import { connect, openSession } from "../../../src/database/connect.ts";
import type { Database, Session } from "../../../src/database/types.ts";
import { createExpirer } from "../../../src/worker/tasks/expire.ts";
import type { Client } from "../../support/client.ts";
import { newRequestId, startService, type Batch, type Running } from "../../support/service.ts";
import { beginRequest, holdCoupon } from "../../support/sessions.ts";

const template = (id: string, more: object) => ({
  id,
  name: id,
  maker: "pty_a",
  currency: "EUR",
  discount: { type: "fixed", amount: 5 },
  valid_from: "2020-01-01T00:00:00Z",
  valid_to: "2099-01-01T00:00:00Z",
  ...more,
});
const templates = [
  template("tpl_past", { valid_to: "2021-01-01T00:00:00Z" }),
  template("tpl_live", {}),
  template("tpl_again", { after_reversal: "reissued" }),
];
const merchant = "mch_a";

let service: Running;
let till: Client;
let worker: Database;
let psql: Session;
let expire: () => Promise<unknown>;

t.before(async () => {
  service = await startService(t);
  await service.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", templates }] });
  till = service.as("ak_a");
  worker = connect(service.address, {
    name: "coupon test worker",
    role: "coupon_worker",
    max: 2,
    lockTimeoutMs: 5_000,
  });
  psql = openSession(service.address, { name: "psql" });
  await psql.run("set session_replication_role = replica");
  expire = createExpirer({ database: worker, stopping: new AbortController().signal });
  t.teardown(() => Promise.all([worker.end(), psql.end()]));
});

const make = (kind: string, count: number, isReleased = true) => service.makeBatch(till, kind, count, { isReleased });

async function must(path: string, body: object): Promise<any> {
  const { status, text, json } = await till.post(path, { request_id: newRequestId(), ...body });
  if (status !== 200) throw new Error(`${path}: ${text}`);
  return json;
}

async function lock(code: string): Promise<string> {
  const requestId = newRequestId();
  await must("/v1/coupons/lock", { request_id: requestId, coupon: code, merchant });
  return requestId;
}

// As if time had passed: the batch and its coupons have ended, without anybody's patch.
async function end(batch: Batch, when = "clock_timestamp()"): Promise<void> {
  await psql.rows(
    `update core.coupon c
     set valid_to = ${when}
     from core.batch b
     where b.batch_id = c.batch_id and b.external_id = $1`,
    [batch.id],
  );
  await psql.rows(
    `update core.batch b
     set valid_to = (select max(c.valid_to) from core.coupon c where c.batch_id = b.batch_id)
     where b.external_id = $1`,
    [batch.id],
  );
}

async function endLock(couponId: string): Promise<void> {
  await psql.rows(
    `update core.redemption
     set lock_expires_at = clock_timestamp()
     where status = 'LOCKED' and coupon_id = rules.parse_id('cpn', $1)`,
    [couponId],
  );
}

const extend = (couponId: string, to: string) =>
  service.admin.rows("select admin.extend_coupon('ten_a', $1, $2, 'to arrange a test')", [couponId, to]);

// Coupons of a batch by status and by how often coupon.expired was told of them: { "EXPIRED 1": 3 }.
async function look(batch: Batch): Promise<Record<string, number>> {
  const rows = await service.owner.rows<{ what: string; count: number }>(
    `select s.what, count(*)::int from (
       select c.status || ' ' || (select count(*) from core.event e
         where (e.tenant_id, e.coupon_id, e.event_type) = (c.tenant_id, c.coupon_id, 'coupon.expired')) as what
       from core.coupon c join core.batch b using (tenant_id, batch_id) where b.external_id = $1) s
     group by s.what`,
    [batch.id],
  );
  return Object.fromEntries(rows.map(({ what, count }) => [what, count]));
}

async function statusOf(couponId: string): Promise<string> {
  const [row] = await service.owner.rows<{ status: string }>(
    "select status from core.coupon where coupon_id = rules.parse_id('cpn', $1)",
    [couponId],
  );
  return row!.status;
}

t.test(
  "released coupons past valid_to become EXPIRED and each is told once; those of an unreleased batch when it is released",
  async (t) => {
    const [released, unreleased, live] = [
      await make("tpl_past", 2_500),
      await make("tpl_past", 30, false),
      await make("tpl_live", 30),
    ];
    await expire();
    await expire();
    t.strictSame(await look(released), { "EXPIRED 1": 2_500 });
    t.strictSame(await look(unreleased), { "ISSUED 0": 30 });
    t.strictSame(await look(live), { "ISSUED 0": 30 });
    await must("/v1/batches/allocate", { batch: unreleased.id });
    await expire();
    t.strictSame(await look(unreleased), { "EXPIRED 1": 30 });
  },
);

t.test("a step is a transaction of as many rows as asked for and no more, and the last one says 0", async (t) => {
  const batch = await make("tpl_past", 250);
  const run = async (text: string) => (await worker.rows<{ done: number }>(`select ${text}(100) as done`))[0]!.done;
  for (const [done, now] of [
    [100, { "EXPIRED 1": 100, "ISSUED 0": 150 }],
    [100, { "EXPIRED 1": 200, "ISSUED 0": 50 }],
    [50, { "EXPIRED 1": 250 }],
  ] as const) {
    t.equal(await run("jobs.expire_coupons"), done);
    t.strictSame(await look(batch), now);
  }
  t.equal(await run("jobs.expire_coupons"), 0);

  const { codes, couponIds } = await make("tpl_live", 250);
  await Promise.all(codes.map(lock));
  await Promise.all(couponIds.map(endLock));
  const steps = [];
  for (let index = 0; index < 4; index += 1) steps.push(await run("jobs.lapse_locks"));
  t.strictSame(steps, [100, 100, 50, 0]);
});

t.test("a lapsed lock gives its coupon back, or lets it expire, and the redemption is LAPSED", async (t) => {
  const [live, ended] = [await make("tpl_live", 3), await make("tpl_live", 3)];
  for (const batch of [live, ended]) {
    await Promise.all(batch.codes.slice(0, 2).map(lock));
    await endLock(batch.couponIds[0]!);
  }
  await end(ended);
  await expire();
  await expire();
  t.strictSame(await look(live), { "ISSUED 0": 2, "LOCKED 0": 1 });
  t.strictSame(await look(ended), { "EXPIRED 1": 2, "LOCKED 0": 1 }, "a live lock outlasts valid_to");
  const rows = await service.owner.rows<{ status: string }>(
    `select r.status
     from core.redemption r
     where r.coupon_id in (rules.parse_id('cpn', $1), rules.parse_id('cpn', $2))`,
    [live.couponIds[0], ended.couponIds[0]],
  );
  t.strictSame(
    rows.map(({ status }) => status),
    ["LAPSED", "LAPSED"],
  );
});

t.test(
  "what was locked or redeemed when its batch ended expires when it is given back, and is told once",
  async (t) => {
    const batch = await make("tpl_again", 5);
    const [cancelled, lapsed, confirmed, reversed] = batch.codes as [string, string, string, string];
    const [cancelledLock, , confirmedLock] = [await lock(cancelled), await lock(lapsed), await lock(confirmed)];
    const { redemption } = await must("/v1/coupons/redeem", { coupon: reversed, merchant });
    await end(batch);
    await expire();
    t.strictSame(await look(batch), { "LOCKED 0": 3, "REDEEMED 0": 1, "EXPIRED 1": 1 });
    await must("/v1/coupons/cancel", { coupon: cancelled, lock_request_id: cancelledLock });
    await must("/v1/coupons/confirm", { coupon: confirmed, lock_request_id: confirmedLock, merchant });
    await must("/v1/redemptions/reverse", { redemption });
    await endLock(batch.couponIds[1]!);
    await expire();
    await expire();
    t.strictSame(await look(batch), { "REDEEMED 0": 1, "EXPIRED 1": 4 });
  },
);

t.test("coupons that were patched to another end expire then, and only then", async (t) => {
  const [batch, unreleased] = [await make("tpl_live", 5), await make("tpl_live", 1, false)];
  const [shorter, longer, locked] = batch.couponIds as [string, string, string];
  const lockId = await lock(batch.codes[2]!);
  await must("/v1/coupons/redeem", { coupon: batch.codes[3], merchant });
  for (const id of [shorter, locked, unreleased.couponIds[0]!]) await extend(id, "2021-01-01T00:00:00Z");
  await extend(longer, "2098-01-01T00:00:00Z");
  await expire();
  t.strictSame(
    await look(batch),
    { "EXPIRED 1": 1, "ISSUED 0": 2, "LOCKED 0": 1, "REDEEMED 0": 1 },
    "the batch lives, one of it has ended",
  );
  await must("/v1/coupons/cancel", { coupon: batch.codes[2], lock_request_id: lockId });
  await end(batch, "case when c.number = 2 then c.valid_to else clock_timestamp() end");
  await psql.rows("update core.batch set valid_to = clock_timestamp() where external_id = $1", [batch.id]);
  await expire();
  t.strictSame(
    await look(batch),
    { "EXPIRED 1": 3, "ISSUED 0": 1, "REDEEMED 0": 1 },
    "the batch has ended, one of it lives",
  );
  t.equal(await statusOf(longer), "ISSUED");
  await extend(longer, "2021-01-01T00:00:00Z");
  await expire();
  t.strictSame(await look(batch), { "EXPIRED 1": 4, "REDEEMED 0": 1 });

  t.strictSame(await look(unreleased), { "ISSUED 0": 1 });
  await must("/v1/batches/allocate", { batch: unreleased.id });
  await expire();
  t.strictSame(await look(unreleased), { "EXPIRED 1": 1 });
});

t.test("a coupon that is given back in the moment in which it ends expires too", async (t) => {
  const batch = await make("tpl_live", 2);
  const lockId = await lock(batch.codes[0]!);
  await end(batch, "clock_timestamp() + interval '1 second'");
  // The clock is read before the end, the commit comes after it.
  const finish = await beginRequest(service, "ak_a", "cancel", {
    request_id: newRequestId(),
    coupon: batch.codes[0]!,
    lock_request_id: lockId,
  });
  await service.owner.rows("select pg_sleep_until(valid_to) from core.batch where external_id = $1", [batch.id]);
  await expire();
  await finish("commit");
  t.equal(await statusOf(batch.couponIds[0]!), "ISSUED", "it was given back in time");
  await expire();
  t.strictSame(await look(batch), { "EXPIRED 1": 2 });
});

t.test("a coupon that somebody holds keeps those behind it in its batch waiting, and nobody else", async (t) => {
  const [batch, other] = [await make("tpl_past", 20), await make("tpl_past", 5)];
  const release = await holdCoupon(service, batch.couponIds[10]!);
  await expire();
  t.strictSame(await look(batch), { "EXPIRED 1": 10, "ISSUED 0": 10 });
  t.strictSame(await look(other), { "EXPIRED 1": 5 });
  await release();
  await expire();
  t.strictSame(await look(batch), { "EXPIRED 1": 20 });
});

t.test("two workers at once tell of each coupon once", async (t: Test) => {
  const batches = [await make("tpl_past", 1_200), await make("tpl_past", 1_200)];
  const { codes, couponIds } = await make("tpl_live", 60);
  await Promise.all(codes.map(lock));
  await Promise.all(couponIds.map(endLock));
  await Promise.all([expire(), expire()]);
  for (const batch of batches) t.strictSame(await look(batch), { "EXPIRED 1": 1_200 });
  const lapsed = await service.owner.rows(
    "select from core.redemption where status = 'LOCKED' and lock_expires_at <= now()",
  );
  t.equal(lapsed.length, 0);
});

t.test(
  "an expiry happened at the end of the validity, or when the coupon was free again, however late it is written",
  async (t) => {
    const batch = await make("tpl_live", 3);
    const [, lapsed, cancelled] = batch.couponIds as [string, string, string];
    await lock(batch.codes[1]!);
    const lockId = await lock(batch.codes[2]!);
    await end(batch, "clock_timestamp() - interval '1 hour'");
    await psql.rows(
      `update core.redemption
       set lock_expires_at = clock_timestamp() - interval '10 minutes'
       where coupon_id = rules.parse_id('cpn', $1)`,
      [lapsed],
    );
    await expire();
    await must("/v1/coupons/cancel", { coupon: batch.codes[2], lock_request_id: lockId });
    const told = await service.owner.rows<{ coupon: string; then: string }>(
      `select e.coupon, case e.occurred_at when c.valid_to then 'valid_to' when r.lock_expires_at then 'lock' when r.ended_at then 'cancel' end as then
     from report.event e
     join report.coupon c using (tenant_id, coupon_key)
     left join report.redemption r using (tenant_id, coupon_key)
     where e.event_type = 'coupon.expired' and c.batch = $1`,
      [batch.id],
    );
    t.strictSame(Object.fromEntries(told.map((row) => [row.coupon, row.then])), {
      [batch.couponIds[0]!]: "valid_to",
      [lapsed]: "lock",
      [cancelled]: "cancel",
    });
  },
);
