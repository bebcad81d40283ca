// When a worker is killed, freezes, or loses its connections in the middle of its work, another one goes on within
// seconds: a claim counts as long as the session of its worker lasts. The leases, of 30 and 60 s, are only the last
// resort, for a worker that lives but does not go on.
import { randomUUID } from "node:crypto";
import t, { type Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import { keepWorkerSession } from "../../src/worker/worker-session.ts";
import { fits } from "../support/fits.ts";
import { checkComplete, isComplete, submit } from "../support/minting.ts";
import { startProxy } from "../support/proxy.ts";
import { hang, startReceiver, take } from "../support/receiver.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { stopClock } from "../support/stop-clock.ts";
import { createStubLog } from "../support/stub.ts";
import { claim, findSubscriber, listDeliveries, recordFailure, subscribe, tenant } from "../support/subscribers.ts";
import { waitAtMost, waitFor, waitUntil } from "../support/wait-until.ts";
import { openWorkerSession } from "../support/worker-session.ts";
import { createWorkerSteps } from "../support/worker-steps.ts";
import { startWorker, type Worker } from "../support/workers.ts";

// Much shorter than a lease.
const noticedWithinMs = 10_000;
// The promise is 15 s. A busy machine gets more, but less than a lease lasts.
const resumesWithinMs = 28_000;

async function checkResumes(t: Test, what: string, hasResumed: () => Promise<boolean> | boolean): Promise<void> {
  const isInTime = await waitAtMost(resumesWithinMs, hasResumed, { everyMs: 50 });
  t.ok(isInTime, `${what} resumes within ${resumesWithinMs} ms`);
}

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
    { level: 40, msg: "the worker lost its session; it continues in a new one" },
    { level: 30, msg: "the worker has a session again" },
  ]);
});

t.test("a subscriber is due again as soon as the session of its worker ends, and not before", async (t) => {
  stopClock(t);
  const receiver = await startReceiver(t, hang);
  const fixture = await subscribe(t, [receiver.url]);
  const [event] = await fixture.happen("pty_s1", 1);
  const subscriber = await findSubscriber(fixture, "pty_s1");
  const dying = await openWorkerSession(t, fixture.service.address);
  const first = createWorkerSteps(t, fixture.service, { session: dying });
  const second = createWorkerSteps(t, fixture.service, { session: fixture.session });
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

t.test("after the lease is lost, successes and attempts of test events count, but no other failure", async (t) => {
  const fixture = await subscribe(t, ["http://127.0.0.1:9"]);
  const [event] = await fixture.happen("pty_s1", 1);
  const subscriber = await findSubscriber(fixture, "pty_s1");
  const dying = await openWorkerSession(t, fixture.service.address);
  const [before, after] = [randomUUID(), randomUUID()];
  const gone = { ...fixture, session: { ...dying, number: 999 } };
  t.strictSame([...(await claim(gone, subscriber, before))], [], "a worker without a session claims nothing");
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
