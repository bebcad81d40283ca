// Coupons that expire, and locks that lapse, when a test says so.
import type { Test } from "tap";
import { connect, openSession } from "../../src/database/connect.ts";
import type { Session } from "../../src/database/types.ts";
import { createExpirer } from "../../src/worker/tasks/expire.ts";
import { newRequestId, startService, type Batch, type Running } from "./service.ts";

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
  template("tpl_past", {}),
  template("tpl_live", {}),
  template("tpl_again", { after_reversal: "reissued" }),
];
const merchant = "mch_a";

export type ExpiryFixture = Awaited<ReturnType<typeof startExpiryFixture>>;

export async function startExpiryFixture(t: Test) {
  const service = await startService(t);
  await service.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", templates }] });
  const till = service.as("ak_a");
  const worker = connect(service.address, {
    name: "coupon test worker",
    role: "coupon_worker",
    max: 2,
    lockTimeoutMs: 5_000,
  });
  const psql = openSession(service.address, { name: "psql" });
  await psql.run("set session_replication_role = replica");
  t.teardown(() => Promise.all([worker.end(), psql.end()]));
  const expire = createExpirer({ database: worker, stopping: new AbortController().signal });

  // The validity of batches of tpl_past ended years ago.
  const make = (kind: string, count: number, isReleased = true) =>
    service.makeBatch(till, kind, count, { isReleased, isOver: kind === "tpl_past" });

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

  return {
    service,
    worker,
    psql,
    expire,
    make,
    must,
    lock,
    end: (batch: Batch, when?: string) => end(psql, batch, when),
    endLock,
    extend,
    countCoupons: (batch: Batch) => countCoupons(service, batch),
    statusOf: (couponId: string) => statusOf(service, couponId),
  };
}

// Ends the validity of a batch and its coupons as if time had passed, without a patch of the administrator.
async function end(psql: Session, batch: Batch, when = "clock_timestamp()"): Promise<void> {
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

// Counts the coupons of a batch by status and number of coupon.expired events: { "EXPIRED 1": 3 }.
async function countCoupons(service: Running, batch: Batch): Promise<Record<string, number>> {
  const rows = await service.owner.rows<{ what: string; count: number }>(
    `select s.what, count(*)::int from (
       select c.status || ' ' || (select count(*) from rules.event e
         where (e.tenant_id, e.coupon_id, e.event_type) = (c.tenant_id, c.coupon_id, 'coupon.expired')) as what
       from core.coupon c join core.batch b using (tenant_id, batch_id) where b.external_id = $1) s
     group by s.what`,
    [batch.id],
  );
  return Object.fromEntries(rows.map(({ what, count }) => [what, count]));
}

async function statusOf(service: Running, couponId: string): Promise<string> {
  const [row] = await service.owner.rows<{ status: string }>(
    "select status from core.coupon where coupon_id = rules.parse_id('cpn', $1)",
    [couponId],
  );
  return row!.status;
}
