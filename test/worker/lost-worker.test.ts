// When a worker is killed, freezes, or loses its connections in the middle of its work, another one goes on within
// seconds: a claim counts as long as the session of its worker lasts. The leases, of 30 and 60 s, are only the last
// resort, for a worker that lives but does not go on.
import { randomUUID } from "node:crypto";
import t, { type Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import { keepWorkerSession } from "../../src/worker/worker-session.ts";
import { fits } from "../support/fits.ts";
import {
  checkComplete,
  claimBatch,
  drawHashes,
  isComplete,
  listDueBatches,
  mintChunk,
  reread,
  submit,
} from "../support/minting.ts";
import { exitCodeOf } from "../support/program.ts";
import { startProxy } from "../support/proxy.ts";
import { hang, startReceiver, take } from "../support/receiver.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { stopClock } from "../support/stop-clock.ts";
import { createStubLog } from "../support/stub.ts";
import {
  claim,
  findSubscriber,
  listDeliveries,
  readWebhook,
  recordFailure,
  startDeliverer,
  subscribe,
  tenant,
} from "../support/subscribers.ts";
import { waitAtMost, waitFor, waitUntil } from "../support/wait-until.ts";
import { openWorkerSession } from "../support/worker-session.ts";
import { checkResumes, startWorker, type Worker } from "../support/workers.ts";

// Much shorter than a lease.
const noticedWithinMs = 10_000;
const nowhere = "http://127.0.0.1:9";

async function holderOf({ owner }: Scenario, table: "batch" | "webhook"): Promise<number | null> {
  const column = table === "batch" ? "mint_worker" : "worker";
  const rows = await owner.rows<{ worker: number }>(
    `select ${column} as worker from core.${table} where ${column} is not null`,
  );
  return rows[0]?.worker ?? null;
}

/** Waits until one of the workers holds a claim, and stops that one with the signal. Returns both. */
async function stopHolder(world: Scenario, workers: Worker[], table: "batch" | "webhook", signal: NodeJS.Signals) {
  const number = await waitUntil("a claim", () => holderOf(world, table), { everyMs: 5 });
  const stopped = workers.find((worker) => worker.number === number)!;
  stopped.program.kill(signal);
  return { stopped, other: workers.find((worker) => worker !== stopped)! };
}

for (const [what, signal] of [
  ["is killed", "SIGKILL"],
  ["freezes, and what it does later has no effect", "SIGSTOP"],
] as const) {
  t.test(`minting goes on to the exact count when its worker ${what}`, async (t) => {
    const world = await scenario(t);
    const workers = [await startWorker(t, world), await startWorker(t, world)];
    // No coupon can be written before the commit, so the claim of the batch lasts until then.
    const blocker = await world.openPsql();
    await blocker.run("begin; lock table core.coupon in share mode");
    const batch = await submit(world, 20_000);
    const { stopped, other } = await stopHolder(world, workers, "batch", signal);
    await blocker.run("commit");
    // A claim may come and go between two looks.
    const hasGoneOn = async () => (await holderOf(world, "batch")) === other.number || isComplete(world, batch);
    await checkResumes(t, "minting", hasGoneOn);
    stopped.program.kill("SIGCONT");
    await waitUntil("the batch", () => isComplete(world, batch));
    await checkComplete(t, world, batch, 20_000);
  });
}

t.test("delivery goes on when its worker is killed in the middle of a request", async (t) => {
  const receiver = await startReceiver(t, hang);
  const fixture = await subscribe(t, [receiver.url]);
  const workers = [await startWorker(t, fixture.service), await startWorker(t, fixture.service)];
  const [event] = await fixture.happen("pty_s1", 1);
  await waitUntil("the request", () => receiver.received.length === 1);
  receiver.answer = take;
  await stopHolder(fixture.service, workers, "webhook", "SIGKILL");
  await checkResumes(t, "delivery", () => receiver.received.length > 1);
  t.strictSame(
    receiver.received.map(({ id }) => id),
    [event, event],
  );
  await waitUntil("the record", async () => (await listDeliveries(fixture)).length === 0);
});

t.test("the feed goes on when a worker is killed in the middle of a step", async (t) => {
  const world = await scenario(t);
  const { id } = await world.makeBatch(world.a.maker, world.a.template, 3_000);
  const blocker = await world.openPsql();
  const victim = await startWorker(t, world);
  const isDrained = async () => {
    const left = "select from rules.event where event_seq > (select high_seq from core.sequencer)";
    return (await world.owner.rows(left)).length === 0;
  };
  await waitUntil("an empty queue", isDrained);
  await blocker.run("begin; lock table core.feed_page in exclusive mode");
  await world.admin.rows("select admin.void_batch('ten_a', $1, 'to have events')", [id]);
  const isInStep = async () => {
    const text = "select from pg_stat_activity where application_name = 'coupon sequence' and wait_event_type = 'Lock'";
    return (await blocker.rows(`${text} and datname = current_database()`)).length === 1;
  };
  await waitUntil("a step", isInStep);
  await startWorker(t, world);
  victim.program.kill("SIGKILL");
  await blocker.run("commit");
  await checkResumes(t, "the feed", isDrained);
  const [feed] = await world.owner.rows(
    `select count(*)::int, count(distinct f.event_id)::int as different
     from rules.feed_event f join rules.event e using (tenant_id, event_id) where e.event_type = 'coupon.voided'`,
  );
  t.strictSame({ ...feed }, { count: 3_000, different: 3_000 });
});

t.test("minting, delivery and the feed go on when all connections of the worker go silent", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  const { service: world } = fixture;
  const proxy = await startProxy(world.address);
  t.teardown(() => proxy.stop());
  await startWorker(t, world, { ...world.address, host: "127.0.0.1", port: proxy.port });
  const { coupons } = await world.makeBatch(fixture.as("pty_maker"), "tpl_s1", 1);
  await waitUntil("the first deliveries", () => receiver.received.length > 0);
  // No packet and no reset arrives.
  proxy.loseAll();
  await world.admin.rows("select admin.void_coupon($1, $2, 'to have an event')", [tenant, coupons[0]!.id]);
  const { batch } = await fixture.as("pty_maker").ok.createBatch("tpl_s1", 10);
  const isMinted = async () => {
    const minted = "select from core.batch where external_id = $1 and status = 'COMPLETED'";
    return (await world.owner.rows(minted, [batch.external_id])).length === 1;
  };
  const hasVoiding = () => receiver.received.some(({ body }) => body.includes("coupon.voided"));
  await checkResumes(t, "the worker", async () => hasVoiding() && (await isMinted()));
});

t.test("SIGTERM ends the program with exit code 0 and leaves no lease", async (t) => {
  const world = await scenario(t);
  const batch = await submit(world, 200_000);
  const { program } = await startWorker(t, world);
  await waitUntil("the first coupons", async () => (await reread(world, batch)).minted_count > 0);
  program.kill("SIGTERM");
  t.equal(await exitCodeOf(program), 0);
  t.equal(await holderOf(world, "batch"), null);
  fits(t, await reread(world, batch), { is_leased: false, status: "PENDING" });
});

t.test("those who claimed under a session learn that it is lost, and the next one has another number", async (t) => {
  const { address } = await scenario(t);
  const proxy = await startProxy(address);
  const { logger, log } = createStubLog();
  const session = keepWorkerSession({
    open: (options) =>
      openSession({ ...address, host: "127.0.0.1", port: proxy.port }, { role: "coupon_worker", ...options }),
    onSilent() {},
    log: logger,
  });
  t.teardown(async () => {
    await session.stop();
    await proxy.stop();
  });
  const first = await waitUntil("the first session", session.get);
  t.equal(first.lost.aborted, false);
  proxy.cutAll();
  const second = await waitUntil("the next session", () => (session.get() === first ? null : session.get()));
  t.equal(first.lost.aborted, true);
  t.equal(second.lost.aborted, false);
  t.not(second.number, first.number);
  fits(t, log, [
    { level: 40, msg: "the session of the worker is lost; its work goes on in another one" },
    { level: 30, msg: "the worker has a session again" },
  ]);
});

t.test("a batch is due again as soon as the session of its worker ends, and not before", async (t) => {
  const world = await scenario(t);
  const batch = await submit(world, 10);
  const [first, second] = [await openWorkerSession(t, world.address), await openWorkerSession(t, world.address)];
  const before = (await claimBatch(world, first, batch))!;
  t.strictSame(await listDueBatches(world), []);
  t.equal(await claimBatch(world, second, batch), null);

  await first.end();
  t.ok(await waitAtMost(noticedWithinMs, async () => (await listDueBatches(world)).length === 1), "it is due");
  t.equal((await reread(world, batch)).is_leased, true, "its lease still runs");
  t.equal(await claimBatch(world, first, batch), null, "a worker whose session is gone claims nothing");
  const after = (await claimBatch(world, second, batch))!;
  const none = { minted_count: 0, is_complete: false };
  const late = await mintChunk(world.worker, batch, before.holder, 1, drawHashes(5));
  t.strictSame(late, none, "a late chunk of the first worker is refused");
  await mintChunk(world.worker, batch, after.holder, 1, drawHashes(10));
  await checkComplete(t, world, batch, 10);
});

t.test("a subscriber is due again as soon as the session of its worker ends, and not before", async (t) => {
  stopClock(t);
  const receiver = await startReceiver(t, hang);
  const fixture = await subscribe(t, [receiver.url]);
  const [event] = await fixture.happen("pty_s1", 1);
  const subscriber = await findSubscriber(fixture, "pty_s1");
  const dying = await openWorkerSession(t, fixture.service.address);
  const first = startDeliverer(fixture, fixture.worker, { session: dying });
  const second = startDeliverer(fixture, fixture.worker);
  const delivering = first.deliver(subscriber);
  await waitUntil("the request", () => receiver.received.length === 1);
  t.equal((await second.listDue()).length, 0);
  await second.deliver(subscriber);
  t.equal(receiver.received.length, 1, "even if named directly");

  receiver.answer = take;
  await dying.end();
  // The receiver has 15 s.
  await waitFor("the end of the delivery", delivering, { withinMs: noticedWithinMs });
  fits(t, await listDeliveries(fixture), [{ event, attempt_count: 0 }], "the hanging request is cut, not counted");
  t.ok(await waitAtMost(noticedWithinMs, async () => (await second.listDue()).length === 1), "it is due");
  await second.deliver(subscriber);
  t.strictSame(
    receiver.received.map(({ id }) => id),
    [event, event],
  );
  t.strictSame(await listDeliveries(fixture), []);
});

/** A subscriber with one event. */
async function startOne(t: Test) {
  const fixture = await subscribe(t, [nowhere]);
  const [event] = await fixture.happen("pty_s1", 1);
  return { fixture, event, subscriber: await findSubscriber(fixture, "pty_s1") };
}

t.test("the lease of a subscriber lasts 60 s, and a worker whose session is gone gets none", async (t) => {
  const { fixture, subscriber } = await startOne(t);
  const gone = { ...fixture, session: { ...fixture.session, number: 999 } };
  t.strictSame([...(await claim(gone, subscriber, randomUUID()))], []);
  fits(t, await readWebhook(fixture), { worker: null });
  const { owner } = fixture.service;
  const remaining = "select extract(epoch from lease_until - clock_timestamp())::float as seconds from core.webhook";
  t.equal((await claim(fixture, subscriber, randomUUID())).length, 1);
  const [{ seconds }] = (await owner.rows<{ seconds: number }>(remaining)) as [{ seconds: number }];
  t.ok(seconds > 30 && seconds <= 60, `${seconds} s`);
});

t.test("after the lease is lost, successes and attempts of test events count, but no other failure", async (t) => {
  const { fixture, event, subscriber } = await startOne(t);
  const dying = await openWorkerSession(t, fixture.service.address);
  const [before, after] = [randomUUID(), randomUUID()];
  const [claimed] = await claim({ ...fixture, session: dying }, subscriber, before);
  const record = (holder: string, event_id: string, result = {}) =>
    recordFailure(fixture, subscriber, holder, { event_id, attempt: 1, http_status: 500, ...result });
  await dying.end();
  t.ok(await waitAtMost(noticedWithinMs, async () => (await claim(fixture, subscriber, after)).length === 1));
  await record(before, claimed!.event_id);
  fits(t, await listDeliveries(fixture), [{ event, attempt_count: 0 }]);
  await record(after, claimed!.event_id);
  fits(t, await listDeliveries(fixture), [{ event, attempt_count: 1, last_error: "HTTP 500" }]);
  await record(before, claimed!.event_id, { attempt: 2, http_status: 204, is_taken: true });
  t.strictSame(await listDeliveries(fixture), []);

  const { owner } = fixture.service;
  const [test] = await owner.rows<{ event_id: string }>(
    "select rules.create_test_delivery($1, $2, 'coupon.redeemed') as event_id",
    [subscriber.tenant_id, subscriber.party_id],
  );
  await record(before, test!.event_id, { test_event_type: "coupon.redeemed" });
  t.strictSame([...(await owner.rows("select from core.test_delivery"))], []);
});
