// Who serves a subscriber and for how long: leases, slices, the limit of concurrent requests, and the stop of a worker.
import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { readConfig } from "../../../src/config/config.ts";
import { createLog } from "../../../src/common/log.ts";
import type { Database } from "../../../src/database/types.ts";
import { maxSubscribersAtOnce, type Subscriber } from "../../../src/worker/tasks/deliver.ts";
import { work } from "../../../src/work.ts";
import { fits } from "../../support/fits.ts";
import { passWhileWaiting } from "../../support/race.ts";
import { recordDelays } from "../../support/record-delays.ts";
import { hang, startReceiver, take, type Receiver } from "../../support/receiver.ts";
import { scenario, type Scenario } from "../../support/scenario.ts";
import { stopClock } from "../../support/stop-clock.ts";
import {
  claim,
  endLeases,
  findSubscriber,
  listAttempts,
  listDeliveries,
  loopbackOnly,
  openWorker,
  readWebhook,
  recordFailure,
  subscribe,
} from "../../support/subscribers.ts";
import { waitFor, waitUntil } from "../../support/wait-until.ts";
import { createWorkerSteps, type StepOptions } from "../../support/worker-steps.ts";

let world: Scenario;
t.before(async () => {
  world = await scenario(t, { file: null });
});

/** Subscribers at these URLs, of which the first one is `subscriber`, and the steps of a worker that serves them. */
async function start(t: Test, urls: string[], options: StepOptions & { supply?: number } = {}) {
  const fixture = await subscribe(t, urls, { on: world, ...options });
  const steps = createWorkerSteps(t, world, { session: fixture.session, ...options });
  return { fixture, steps, subscriber: await findSubscriber(fixture, "pty_s1") };
}

/** The database of a worker. `act` happens before or after each statement that calls the function. */
function watch(name: string, act: { before?: (params: readonly unknown[]) => void; after?: () => void }) {
  return {
    ...world.worker,
    async rows<T>(text: string, params: readonly unknown[] = []) {
      const isCall = text.includes(name);
      if (isCall) act.before?.(params);
      const rows = await world.worker.rows<T>(text, params);
      if (isCall) act.after?.();
      return rows;
    },
  } satisfies Database;
}

t.test("two workers drain 300 events after an outage, each event once, never more than 4 at a time", async (t) => {
  const count = 300;
  // Slow enough that requests of both workers would overlap.
  const receiver = await startReceiver(t, (response) => void setTimeout(() => response.writeHead(200).end("ok"), 4));
  const { fixture, steps, subscriber } = await start(t, [`${receiver.url}/1`], { supply: count });
  const events = await fixture.happen("pty_s1", count);
  const other = createWorkerSteps(t, world, { database: openWorker(t, world) });
  // Each worker tries all the time, whether the subscriber is due or not.
  await Promise.all(
    [steps, other].map(async (worker) => {
      const isDrained = async () => {
        await worker.deliver(subscriber);
        return receiver.received.length >= count && (await worker.listDue()).length === 0;
      };
      await waitUntil("the deliveries", isDrained, { everyMs: 1 });
    }),
  );
  t.equal(receiver.most.get("/1"), 4);
  t.strictSame(receiver.received.map(({ id }) => id).sort(), events.toSorted());
  t.strictSame(await listDeliveries(fixture), []);
  // The order is best effort: an event overtakes older ones by at most one round.
  const places = new Map(events.map((event, index) => [event, index]));
  const strayed = receiver.received.map(({ id }, index) => Math.abs(places.get(id)! - index));
  t.ok(Math.max(...strayed) < 32, `at most ${Math.max(...strayed)} places out of order`);
});

t.test("a record that waits while another worker takes the lease changes nothing", async (t) => {
  const { fixture, subscriber } = await start(t, ["http://127.0.0.1:9"]);
  const [event] = await fixture.happen("pty_s1", 1);
  const holder = randomUUID();
  const [claimed] = await claim(fixture, subscriber, holder);
  const { party_id } = subscriber;
  const taken = {
    hold: "select from core.webhook where party_id = $1 for update",
    change: "update core.webhook set holder = gen_random_uuid() where party_id = $1",
  };
  await passWhileWaiting(world, taken, party_id, () => recordFailure(fixture, subscriber, holder, claimed!));
  fits(t, await listDeliveries(fixture), [{ event, attempt_count: 0 }]);
});

t.test("a worker that dies between an answer and its record leaves its lease; the next one sends again", async (t) => {
  const receiver = await startReceiver(t);
  const { fixture, steps, subscriber } = await start(t, [receiver.url]);
  const [event] = await fixture.happen("pty_s1", 1);
  const die = () => {
    throw new Error("killed");
  };
  const database = watch("record_deliveries", { before: die });
  const dying = createWorkerSteps(t, world, { database, session: fixture.session });
  await t.rejects(dying.deliver(subscriber), { message: "killed" });
  fits(t, await listDeliveries(fixture), [{ event, status: "WAITING", attempt_count: 0, is_due: true }]);
  t.strictSame(await steps.listDue(), []);
  await steps.deliver(subscriber);
  t.equal(receiver.received.length, 1, "nobody else may send, even if the subscriber is named directly");
  await endLeases(fixture);
  await steps.deliverDue();
  const { received } = receiver;
  t.strictSame([received[1]!.id, received[1]!.body], [event, received[0]!.body]);
  t.strictSame(await listDeliveries(fixture), []);
});

t.test("a delivery that was parked during its attempt stays parked", async (t) => {
  const { fixture, subscriber } = await start(t, ["http://127.0.0.1:9"]);
  await fixture.happen("pty_s1", 1);
  const holder = randomUUID();
  const [claimed] = await claim(fixture, subscriber, holder);
  await world.admin.rows("select admin.disable_webhook($1, 'pty_s1', 'test')", [fixture.tenant]);
  await recordFailure(fixture, subscriber, holder, claimed!);
  fits(t, await listDeliveries(fixture), [{ status: "PARKED", attempt_count: 0, last_error: "disabled: test" }]);
});

t.test("a lease that has ended keeps no worker away, even if its time lies in the future", async (t) => {
  const receiver = await startReceiver(t);
  const { fixture, steps, subscriber } = await start(t, [receiver.url]);
  await fixture.happen("pty_s1", 1);
  await world.owner.rows("update core.webhook set lease_until = clock_timestamp() + interval '1 day'");
  t.strictSame(await steps.listDue(), [subscriber], "as after the clock was set back");
  await steps.deliver(subscriber);
  t.equal(receiver.received.length, 1);
});

t.test("subscribers served longest ago come first", async (t) => {
  stopClock(t);
  const receiver = await startReceiver(t);
  const { fixture, steps } = await start(
    t,
    ["/1", "/2", "/3"].map((path) => receiver.url + path),
  );
  const parties = ["pty_s1", "pty_s2", "pty_s3"];
  const ids = await Promise.all(parties.map((party) => findSubscriber(fixture, party)));
  for (const order of [
    [1, 0, 2],
    [2, 0, 1],
  ]) {
    for (const index of order) {
      await fixture.happen(parties[index]!, 1);
      await steps.deliverDue();
    }
    await fixture.happen(parties, 1);
    const expected = order.map((index) => ids[index]!);
    t.strictSame(await steps.listDue(), expected);
    const two = await world.worker.rows<Subscriber>("select tenant_id, party_id from jobs.list_due_webhooks(2)");
    t.strictSame(
      two.map((row) => ({ ...row })),
      expected.slice(0, 2),
    );
    for (const id of ids) await steps.deliver(id);
  }
});

t.test("a worker asks for as many subscribers as it has free places", async (t) => {
  stopClock(t);
  const receiver = await startReceiver(t);
  const asked: unknown[] = [];
  const database = watch("list_due_webhooks", { before: ([limit]) => asked.push(limit) });
  const { fixture, steps } = await start(t, [receiver.url], { database });
  receiver.answer = (response, received) => void steps.listDue().then(() => take(response, received));
  await fixture.happen("pty_s1", 1);
  await steps.deliverDue();
  t.strictSame(asked, [maxSubscribersAtOnce, maxSubscribersAtOnce - 1, maxSubscribersAtOnce]);
});

t.test("after its slice no request starts; within it, a subscriber is served until nothing is due", async (t) => {
  const clock = stopClock(t);
  const receiver = await startReceiver(t, (response, received) => {
    clock.pass(100);
    take(response, received);
  });
  const { fixture, steps, subscriber } = await start(t, [receiver.url], { supply: 70 });
  const events = await fixture.happen("pty_s1", 70);
  await waitFor("the end of the slice", steps.deliver(subscriber), { withinMs: 60_000 });
  const sent = receiver.received.length;
  // After 20 answers the slice of 2 s is over. Until then 4 requests are under way, some of them answered already.
  t.ok(sent >= 21 && sent <= 24, `${sent} requests`);
  const left = await listDeliveries(fixture);
  t.equal(left.length, 70 - sent, "what was sent is recorded");
  for (const delivery of left) fits(t, delivery, { attempt_count: 0, is_due: true });
  t.strictSame(await steps.listDue(), [subscriber], "its lease has ended");

  receiver.answer = take;
  await steps.deliver(subscriber);
  t.strictSame(receiver.received.map(({ id }) => id).sort(), events.toSorted(), "more than one round");
});

t.test("a claim that takes longer than the slice still leaves time to send", async (t) => {
  const clock = stopClock(t);
  const receiver = await startReceiver(t);
  const database = watch("lease_deliveries", { after: () => clock.pass(10_000) });
  const { fixture, steps, subscriber } = await start(t, [receiver.url], { database });
  await fixture.happen("pty_s1", 2);
  await steps.deliver(subscriber);
  t.equal(receiver.received.length, 2);
});

t.test("a stopping worker starts no request, cuts off hanging ones, and ends the lease", async (t) => {
  stopClock(t);
  const stopping = new AbortController();
  // The first response makes room for a fifth request.
  const receiver = await startReceiver(t, (response) => {
    if (receiver.received.length === 1) response.writeHead(200).end();
    if (receiver.received.length === 5) stopping.abort();
  });
  const { fixture, steps, subscriber } = await start(t, [receiver.url], { stopping: stopping.signal });
  await fixture.happen("pty_s1", 10);
  // Less than the 15 s that the subscriber has.
  await waitFor("the worker to stop", steps.deliver(subscriber), { withinMs: 12_000 });
  t.equal(receiver.received.length, 5);
  const left = await listDeliveries(fixture);
  t.equal(left.length, 9, "only the completed delivery is recorded");
  for (const delivery of left) fits(t, delivery, { attempt_count: 0, last_error: null, is_due: true });
  fits(t, await readWebhook(fixture), { holder: null });
});

// The running worker, with its jobs and timers.
async function startWork(t: Test, log = createLog("silent")) {
  const config = readConfig({ WEBHOOK_ALLOW: loopbackOnly.join() });
  const worker = await work({ address: world.address, keys: world.keys, config, log });
  t.teardown(() => worker.stop());
  return worker;
}

t.test("a hanging subscriber delays no other", async (t) => {
  const receivers = await Promise.all([hang, take, take].map((answer) => startReceiver(t, answer)));
  const [hanging, ...others] = receivers as [Receiver, Receiver, Receiver];
  const { fixture } = await start(
    t,
    receivers.map(({ url }) => url),
  );
  await startWork(t);
  await fixture.happen("pty_s1", 1);
  await waitUntil("the hanging request", () => hanging.received.length === 1);
  for (let round = 1; round <= 3; round += 1) {
    await fixture.happen(["pty_s1", "pty_s2", "pty_s3"], 1);
    await waitUntil("an event at each of the others", () => others.every(({ received }) => received.length === round));
  }
  // It has 15 s.
  t.strictSame(await listAttempts(fixture, "pty_s1"), [], "all that while the first request was hanging");
  t.equal(hanging.received.length, 1, "its own events wait");
});

t.test("while a stop waits for its last requests, others still see that the worker lives", async (t) => {
  let open = null as ServerResponse | null;
  const receiver = await startReceiver(t, (response) => (open = response));
  const { fixture } = await start(t, [receiver.url]);
  const worker = await startWork(t);
  await fixture.happen("pty_s1", 1);
  const response = await waitUntil("the request", () => open);
  const psql = await world.openPsql();
  const countSessions = async () => {
    const text = `select from pg_stat_activity
      where datname = current_database() and application_name = 'coupon worker session'`;
    return (await psql.rows(text)).length;
  };
  t.equal(await countSessions(), 1);
  // Requests may continue for a minute instead of 2 s, however slow the machine is.
  recordDelays(t, (ms) => (ms === 2_000 ? 60_000 : ms));
  const stopped = worker.stop();
  // Long enough for a session that ends too early.
  await sleep(1_000);
  t.equal(await countSessions(), 1);
  response.writeHead(204).end();
  await waitFor("the stop", stopped);
  await waitUntil("the end of the session", async () => (await countSessions()) === 0);
  t.strictSame(await listDeliveries(fixture), [], "the answer is recorded");
});
