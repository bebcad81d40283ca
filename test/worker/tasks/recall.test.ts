// Recalls: every unused coupon of the batch is voided once, with concurrent, stopped and killed workers. A locked one
// is voided when its lock ends without a confirm.
import { fork, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { openSession } from "../../../src/database/connect.ts";
import type { Database } from "../../../src/database/types.ts";
import type { DueBatch } from "../../../src/worker/batch-jobs.ts";
import { createRecaller } from "../../../src/worker/tasks/recall.ts";
import type { Coupon } from "../../support/caller.ts";
import { fits } from "../../support/fits.ts";
import { findBatch, submit } from "../../support/minting.ts";
import { scenario, type Scenario } from "../../support/scenario.ts";
import { holdCoupon } from "../../support/sessions.ts";
import { openWorker } from "../../support/subscribers.ts";
import { waitFor, waitUntil } from "../../support/wait-until.ts";
import { openWorkerSession, type TestWorkerSession } from "../../support/worker-session.ts";
import { startWorker } from "../../support/workers.ts";

let world: Scenario;
let session: TestWorkerSession;
t.beforeEach(async (t) => {
  world = await scenario(t as Test);
  session = await openWorkerSession(t as Test, world.address);
});

const startRecaller = ({ database = world.worker, stopping = new AbortController().signal } = {}) =>
  createRecaller({ database, getSession: () => session, stopping });

async function recallBatch(count: number) {
  const { id, coupons } = await world.makeBatch(world.a.maker, world.a.template, count);
  await world.a.maker.ok.recallBatch(id, { reason: "leaked" });
  return { id, coupons, row: await findBatch(world, id) };
}

const showRecall = async (id: string) => (await world.a.maker.get(`/v1/batches/${id}`)).json.batch.recall;

/** How many coupons of the batch have each stored status, and how many voidings and events of voidings they have. */
async function countCoupons(id: string): Promise<object> {
  const [row] = await world.owner.rows<{ found: object }>(
    `select jsonb_object_agg(k.status, k.coupons) || jsonb_build_object(
       'voidings', (select count(*) from core.voiding v where v.batch_id = b.batch_id and v.reason = 'leaked'),
       'events', (select count(*) from core.event e join core.coupon c using (tenant_id, coupon_id)
                  where c.batch_id = b.batch_id and e.event_type = 'coupon.voided')) as found
     from core.batch b
     cross join lateral (select c.status, count(*) as coupons from core.coupon c where c.batch_id = b.batch_id
                         group by 1) k
     where b.external_id = $1 group by b.batch_id`,
    [id],
  );
  return row!.found;
}

const allVoided = (count: number) => ({ VOIDED: count, voidings: count, events: count });

/** A worker's database. `act` carries out each step of a recall. */
function watchSteps(act: (step: () => Promise<unknown>, limit: number) => Promise<unknown>): Database {
  return {
    ...world.worker,
    async rows<T>(text: string, params: readonly unknown[] = []) {
      if (!text.includes("recall_chunk")) return world.worker.rows<T>(text, params);
      let rows: T[] = [];
      await act(async () => void (rows = await world.worker.rows<T>(text, params)), params[3] as number);
      return rows;
    },
  };
}

t.test("two workers on one batch at once void each coupon once", async (t) => {
  const { id, row } = await recallBatch(1_000);
  fits(t, await showRecall(id), { voided_count: 0, finished_at: null });
  const workers = [startRecaller(), startRecaller({ database: openWorker(t, world) })];
  const isFinished = async () => (await showRecall(id)).finished_at !== null;
  await Promise.all(
    workers.map((worker) =>
      waitUntil(
        "a finished recall",
        async () => {
          await worker.recall(row);
          return isFinished();
        },
        { everyMs: 5 },
      ),
    ),
  );
  t.strictSame(await countCoupons(id), allVoided(1_000));
  fits(t, await showRecall(id), { voided_count: 1_000 });
});

type Six = [Coupon, Coupon, Coupon, Coupon, Coupon, Coupon];

t.test("used coupons stay as they are, expired ones expire, and the recall waits for locks", async (t) => {
  const { till } = world.a;
  const { id, coupons } = await world.makeBatch(world.a.maker, world.a.template, 8);
  const [redeemed, confirmed, cancelled, lapsed, expired, early] = coupons as Six;
  await till.ok.redeem(redeemed);
  for (const coupon of [confirmed, cancelled, lapsed, early]) await till.ok.lock(coupon);
  await world.a.expire(expired);
  await world.a.maker.ok.recallBatch(id, { reason: "leaked" });
  await till.ok.cancel(early);
  t.strictSame(await countCoupons(id), { REDEEMED: 1, LOCKED: 3, VOIDED: 1, ISSUED: 3, voidings: 1, events: 1 });
  await world.steps.recall();
  const waiting = { REDEEMED: 1, LOCKED: 3, VOIDED: 3, ISSUED: 1, voidings: 3, events: 3 };
  t.strictSame(await countCoupons(id), waiting);
  fits(t, await showRecall(id), { voided_count: 3, finished_at: null });

  await till.ok.confirm(confirmed);
  await till.ok.cancel(cancelled);
  await world.a.endLock(lapsed);
  await endPause(id);
  await world.steps.recall();
  fits(t, await showRecall(id), { voided_count: 4, finished_at: null }, "one lock is over, but not yet LAPSED");
  await world.steps.expire();
  await endPause(id);
  await world.steps.recall();
  fits(t, await showRecall(id), { voided_count: 5, finished_at: /Z$/ });
  const ended = { REDEEMED: 2, VOIDED: 5, EXPIRED: 1, voidings: 5, events: 5 };
  t.strictSame(await countCoupons(id), ended);
  t.equal((await world.owner.rows("select from core.recalled_lock")).length, 0);
});

const endPause = (id: string) =>
  world.owner.rows("update core.batch set mint_lease_until = clock_timestamp() where external_id = $1", [id]);

t.test("a recall ends the minting of its batch", async (t) => {
  const batch = await submit(world, 3_000);
  const lease = randomUUID();
  const text = "select jobs.mint_chunk($1, $2, $3, $4, array(select gen_random_uuid() from generate_series(1, 5)))";
  await world.owner.rows(
    `update core.batch set mint_holder = $1, mint_worker = $2, mint_lease_until = now() + interval '1 minute'`,
    [lease, session.number],
  );
  const mint = (first: number) => world.worker.rows(text, [batch.tenant_id, batch.batch_id, lease, first]);
  await mint(1);
  await world.a.maker.ok.recallBatch(batch.external_id, { reason: "leaked" });
  await mint(6);
  await world.mint();
  await world.steps.recall();
  fits(t, await findBatch(world, batch.external_id), { status: "PENDING", minted_count: 5 });
  t.strictSame(await countCoupons(batch.external_id), allVoided(5));
  fits(t, await showRecall(batch.external_id), { voided_count: 5, finished_at: /Z$/ });
  await t.resolves(world.admin.rows("select admin.destroy_codes($1, 'leaked')", [batch.external_id]));
});

t.test("a held coupon delays only those behind it, and a step without the lease changes nothing", async (t) => {
  const { id, coupons, row } = await recallBatch(5);
  const { tenant_id, batch_id } = row as DueBatch;
  const [holder, other] = [randomUUID(), randomUUID()];
  const lease = (by: string, worker = session.number) =>
    world.worker.rows("select jobs.lease_recall($1, $2, $3, $4) as is_mine", [tenant_id, batch_id, worker, by]);
  t.strictSame([...(await lease(holder, 999))], [{ is_mine: false }], "a worker without a session");
  t.strictSame([...(await lease(holder))], [{ is_mine: true }]);
  t.strictSame([...(await lease(other))], [{ is_mine: false }]);
  t.equal((await startRecaller().listDue()).length, 0);
  const step = async (by: string, limit = 9) => {
    const text = "select is_over, is_held_up from jobs.recall_chunk($1, $2, $3, $4)";
    return { ...(await world.worker.rows(text, [tenant_id, batch_id, by, limit]))[0] };
  };
  const letGo = await holdCoupon(world, coupons[2]!.id);
  t.strictSame(await step(other), { is_over: true, is_held_up: false });
  t.strictSame(await step(holder, 1), { is_over: false, is_held_up: false });
  t.strictSame(await step(holder), { is_over: false, is_held_up: true });
  fits(t, await showRecall(id), { voided_count: 2 });
  await letGo();
  t.strictSame(await step(holder), { is_over: false, is_held_up: false });
  t.strictSame(await step(holder), { is_over: true, is_held_up: false });
  fits(t, await showRecall(id), { voided_count: 5, finished_at: /Z$/ });
  t.strictSame([...(await lease(other))], [{ is_mine: false }], "it is finished");
});

t.test("only the last commit waits for the disk", async (t) => {
  const { row } = await recallBatch(2);
  const worker = openSession(world.address, { name: "coupon test worker", role: "coupon_worker" });
  t.teardown(() => worker.end());
  await worker.run("set synchronous_commit = on");
  const lease = [row.tenant_id, row.batch_id, session.number, randomUUID()];
  await worker.rows("select jobs.lease_recall($1, $2, $3, $4)", lease);
  const waits: unknown[] = [];
  for (let step = 0; step < 2; step += 1) {
    await worker.run("begin");
    await worker.rows("select jobs.recall_chunk($1, $2, $3, 5)", lease.toSpliced(2, 1));
    waits.push({ ...(await worker.rows("select current_setting('synchronous_commit') as waits"))[0] });
    await worker.run("commit");
  }
  t.strictSame(waits, [{ waits: "off" }, { waits: "on" }]);
});

/** Recalls a batch. Returns the sizes of the steps of each slice: a slice ends early on a busy machine. */
async function recallSlices(count: number, act: (step: () => Promise<unknown>, isFirst: boolean) => Promise<unknown>) {
  const { row } = await recallBatch(count);
  const slices: number[][] = [];
  const database = watchSteps((step, limit) => act(step, slices.at(-1)!.push(limit) === 1));
  const recaller = startRecaller({ database });
  while ((await recaller.listDue()).length > 0) {
    slices.push([]);
    await recaller.recall(row);
  }
  return slices;
}

t.test("steps are small, with pauses between them, while other sessions write events", async (t) => {
  let mayBeginAt = 0;
  const slices = await recallSlices(300, async (step, isFirst) => {
    const begunAt = performance.now();
    t.ok(isFirst || begunAt >= mayBeginAt, "a pause of nine times the last step");
    await world.owner.rows("select nextval('core.event_seq')");
    await step();
    const now = performance.now();
    mayBeginAt = now + 9 * (now - begunAt) - 2;
  });
  // The last one finds that no lock is left.
  t.strictSame(slices.flat(), Array(13).fill(25));
});

t.test("steps are large after the first two of a slice while nobody else writes events", async (t) => {
  for (const sizes of await recallSlices(1_200, (step) => step()))
    t.strictSame(sizes, [25, 25, 500, 500, 500, 500].slice(0, sizes.length));
});

t.test("a stopped worker finishes its step and releases the lease", async (t) => {
  const { id, row } = await recallBatch(300);
  const stopping = new AbortController();
  const database = watchSteps((step) => step().finally(() => stopping.abort()));
  await startRecaller({ database, stopping: stopping.signal }).recall(row);
  fits(t, await findBatch(world, id), { is_leased: false });
  fits(t, await showRecall(id), { voided_count: 25, finished_at: null });
});

t.test("rows that make a step fail are noted as stuck work of the maker, and the lease is the pause", async (t) => {
  const { id, row } = await recallBatch(3);
  const psql = await world.openPsql({ triggers: false });
  await psql.rows("update core.batch set recall_voided_count = recalled_through, recalled_through = 0");
  await psql.run("alter table core.voiding add constraint no_voiding check (batch_id is null) not valid");
  await t.rejects(startRecaller().recall(row), { message: /no_voiding/ });
  const stuck = await world.worker.rows("select work, party, subject, reason from jobs.list_stuck_work()");
  fits(t, [...stuck], [{ work: "recall", party: "pty_a", subject: id, reason: /no_voiding/ }]);
  fits(t, await findBatch(world, id), { is_leased: true });
  await psql.run("alter table core.voiding drop constraint no_voiding");
});

t.test("each tenant has its turn, and earlier recalls come first", async (t) => {
  const first = await recallBatch(1);
  const second = await recallBatch(1);
  const { id } = await world.makeBatch(world.b.maker, world.b.template, 1);
  await world.b.maker.ok.recallBatch(id);
  const other = await findBatch(world, id);
  const list = async () => {
    const rows = await world.worker.rows<DueBatch>("select batch_id from jobs.list_due_recalls(10)");
    return rows.map(({ batch_id }) => batch_id);
  };
  const [one, two] = [first.row.batch_id, second.row.batch_id];
  t.strictSame(await list(), [one, other.batch_id, two]);
  const lease = [first.row.tenant_id, one, session.number, randomUUID()];
  await world.worker.rows("select jobs.lease_recall($1, $2, $3, $4)", lease);
  t.strictSame(await list(), [other.batch_id, two]);
});

/** Another process. It recalls batches from its first message on, until it is killed. */
async function startProcess(t: Test): Promise<ChildProcess> {
  const env = { ...process.env, COUPON_TEST_ADDRESS: JSON.stringify(world.address) };
  const child = fork(new URL("./recaller.ts", import.meta.url), { env });
  t.teardown(() => void child.kill("SIGKILL"));
  await waitFor("a process that recalls", once(child, "message"));
  return child;
}

t.test("a recall ends although its worker is killed five times, and each coupon is voided or redeemed", async (t) => {
  const count = 500;
  const children = await Promise.all(Array.from({ length: 5 }, () => startProcess(t)));
  const { id, coupons } = await world.makeBatch(world.a.maker, world.a.template, count);
  const { till, otherTill } = world.a;
  const used = coupons.filter((_, index) => index % 100 === 0);
  await Promise.all(used.map((coupon) => till.ok.lock(coupon)));
  await world.a.maker.ok.recallBatch(id, { reason: "leaked" });
  const voided = async () => (await showRecall(id)).voided_count as number;
  for (const [kills, child] of children.entries()) {
    const before = await voided();
    t.ok(before < count - used.length, "the recall is under way");
    child.send("go");
    // Steps are small while others write events.
    const isUnderWay = async () => {
      await world.owner.rows("select nextval('core.event_seq')");
      return (await voided()) > before;
    };
    await waitUntil("progress", isUnderWay, { everyMs: 1 });
    // Another moment of a step each time.
    await sleep(kills * 6);
    child.kill("SIGKILL");
    const coupon = used[kills]!;
    await (kills % 2 === 0 ? till.ok.confirm(coupon) : till.ok.cancel(coupon));
    fits(t, await otherTill.redeem(coupons[count - 1 - kills]!), { status: 409, json: { code: "BATCH_SUSPENDED" } });
  }
  await startWorker(t, world);
  await waitUntil("a finished recall", async () => (await showRecall(id)).finished_at !== null);
  const recalled = count - 3;
  t.strictSame(await countCoupons(id), { REDEEMED: 3, VOIDED: recalled, voidings: recalled, events: recalled });
  t.equal(await voided(), recalled);
});
