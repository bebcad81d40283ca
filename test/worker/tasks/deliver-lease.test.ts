// Leases of subscribers, the limit of concurrent requests, the order of subscribers, and the stop of a worker.
import { randomUUID } from "node:crypto";
import t from "tap";
import { maxSubscribersAtOnce, type Subscriber } from "../../../src/worker/tasks/deliver.ts";
import { fits } from "../../support/fits.ts";
import { passWhileWaiting } from "../../support/race.ts";
import { hang, startReceiver, status, take } from "../../support/receiver.ts";
import { stopClock } from "../../support/stop-clock.ts";
import {
  claimDeliveries,
  findSubscriber,
  listDeliveries,
  openWorker,
  recordFailure,
  startDeliverer,
  subscribe,
  tenant,
} from "../../support/subscribers.ts";
import { waitFor, waitUntil } from "../../support/wait-until.ts";

t.test("two workers drain 2,000 events after an outage, each event once, never more than 4 at a time", async (t) => {
  const receiver = await startReceiver(t);
  // Slow enough that requests of both workers would overlap.
  receiver.answer = (response) => void setTimeout(() => response.writeHead(200).end("ok"), 4);
  const fixture = await subscribe(t, [`${receiver.url}/1`], 2_000);
  const events = await fixture.happen("pty_s1", 2_000);
  const workers = [fixture.worker, openWorker(t, fixture.service)].map((database) => startDeliverer(fixture, database));
  const subscriber = await findSubscriber(fixture, "pty_s1");
  const startedAt = performance.now();
  // Each worker tries all the time, whether the subscriber is due or not.
  await Promise.all(
    workers.map(async (worker) => {
      const isDrained = async () => {
        await worker.deliver(subscriber);
        return receiver.received.length >= 2_000 && (await worker.listDue()).length === 0;
      };
      await waitUntil("2,000 deliveries", isDrained, { everyMs: 1 });
    }),
  );
  t.comment(`drained in ${Math.round(performance.now() - startedAt)} ms`);
  t.equal(receiver.most.get("/1"), 4);
  t.equal(receiver.received.length, 2_000);
  t.strictSame(receiver.received.map(({ id }) => id).sort(), [...events].sort());
  t.strictSame(await listDeliveries(fixture), []);
  // The order is best effort: an event overtakes older ones by at most one round.
  const places = new Map(events.map((event, index) => [event, index]));
  const strayed = receiver.received.map(({ id }, index) => Math.abs(places.get(id)! - index));
  t.ok(Math.max(...strayed) < 32, `at most ${Math.max(...strayed)} places out of order`);
});

t.test("a record that waits while another worker takes the lease changes nothing", async (t) => {
  const fixture = await subscribe(t, ["http://127.0.0.1:1"]);
  const subscriber = await findSubscriber(fixture, "pty_s1");
  const { tenant_id, party_id } = subscriber;
  const [event] = await fixture.happen("pty_s1", 1);
  const holder = randomUUID();
  const [claimed] = await fixture.worker.rows<object>(claimDeliveries, [
    tenant_id,
    party_id,
    fixture.session.number,
    holder,
  ]);
  const taken = {
    hold: "select from core.webhook where party_id = $1 for update",
    change: "update core.webhook set holder = gen_random_uuid() where party_id = $1",
  };
  await passWhileWaiting(fixture.service, taken, party_id, () => recordFailure(fixture, subscriber, holder, claimed!));
  fits(t, await listDeliveries(fixture), [{ event, attempt_count: 0 }]);
});

t.test("the longest Retry-After of a round is the pause, and a later result without one does not end it", async (t) => {
  const fixture = await subscribe(t, ["http://127.0.0.1:1"]);
  const subscriber = await findSubscriber(fixture, "pty_s1");
  await fixture.happen("pty_s1", 5);
  const holder = randomUUID();
  const claimed = await fixture.worker.rows<object>(claimDeliveries, [
    subscriber.tenant_id,
    subscriber.party_id,
    fixture.session.number,
    holder,
  ]);
  const record = (...seconds: (number | null)[]) => {
    const results = seconds.map((retry_after_seconds) => ({ ...claimed.shift(), retry_after_seconds }));
    return recordFailure(fixture, subscriber, holder, ...results);
  };
  const readPause = async () => {
    const [row] = await fixture.service.owner.rows<{ until: string; seconds: number }>(
      `select w.paused_until::text as until,
              extract(epoch from w.paused_until - max(a.attempted_at))::int as seconds
       from core.webhook w join core.delivery_attempt a using (tenant_id, party_id) group by w.paused_until`,
    );
    return { ...row! };
  };
  await record(7, 60, null);
  const pause = await readPause();
  t.equal(pause.seconds, 60);
  for (const seconds of [null, 0]) {
    await record(seconds);
    t.equal((await readPause()).until, pause.until, `${seconds}`);
  }
});

t.test("a lease keeps other workers away until it ends; a late record then changes nothing", async (t) => {
  const receiver = await startReceiver(t, hang);
  const fixture = await subscribe(t, [receiver.url]);
  const subscriber = await findSubscriber(fixture, "pty_s1");
  const [event] = await fixture.happen("pty_s1", 1);
  const dead = randomUUID();
  const readMoment = async () => {
    const [row] = await fixture.service.owner.rows<{ at: number }>(
      "select extract(epoch from clock_timestamp())::float as at",
    );
    return row!.at;
  };
  const from = await readMoment();
  const [claimed] = await fixture.worker.rows<{ event_id: string; attempt: number }>(claimDeliveries, [
    subscriber.tenant_id,
    subscriber.party_id,
    fixture.session.number,
    dead,
  ]);
  const to = await readMoment();
  const deliverer = startDeliverer(fixture, fixture.worker);
  t.equal((await deliverer.listDue()).length, 0);
  await deliverer.deliver(subscriber);
  t.equal(receiver.received.length, 0, "even if named directly");
  const [lease] = await fixture.service.owner.rows<{ until: number }>(
    "select extract(epoch from lease_until)::float as until from core.webhook where holder is not null",
  );
  t.ok(lease!.until >= from + 60 && lease!.until <= to + 60, "a minute: four times the longest exchange");

  await fixture.service.owner.rows("update core.webhook set lease_until = clock_timestamp()");
  receiver.answer = status(500);
  await deliverer.drain();
  const [before] = await listDeliveries(fixture);
  fits(t, before, { event, attempt_count: 1, last_error: "HTTP 500" });
  await recordFailure(fixture, subscriber, dead, claimed!);
  fits(t, await listDeliveries(fixture), [{ event, attempt_count: 1, last_error: "HTTP 500" }]);

  await fixture.service.admin.rows("select admin.disable_webhook($1, 'pty_s1', 'test')", [tenant]);
  await recordFailure(fixture, subscriber, dead, { ...claimed!, attempt: 2 });
  fits(
    t,
    await listDeliveries(fixture),
    [{ status: "PARKED", last_error: "disabled: test" }],
    "a delivery parked meanwhile stays parked",
  );
});

t.test("subscribers served longest ago come first", async (t) => {
  stopClock(t);
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [`${receiver.url}/1`, `${receiver.url}/2`, `${receiver.url}/3`]);
  const deliverer = startDeliverer(fixture, fixture.worker);
  const ids = await Promise.all(["pty_s1", "pty_s2", "pty_s3"].map((party) => findSubscriber(fixture, party)));
  for (const order of [
    [1, 0, 2],
    [2, 0, 1],
    [0, 2, 1],
  ]) {
    for (const index of order) {
      await fixture.happen(`pty_s${index + 1}`, 1);
      await deliverer.drain();
    }
    await fixture.happen(["pty_s1", "pty_s2", "pty_s3"], 1);
    t.strictSame(
      (await deliverer.listDue()).map((row) => ({ ...row })),
      order.map((index) => ({ ...ids[index]! })),
    );
    const two = await fixture.worker.rows<Subscriber>("select tenant_id, party_id from jobs.list_due_webhooks(2)");
    t.strictSame(
      two.map((row) => ({ ...row })),
      order.slice(0, 2).map((index) => ({ ...ids[index]! })),
    );
    await deliverer.deliver(ids[0]!);
    await deliverer.deliver(ids[1]!);
    await deliverer.deliver(ids[2]!);
  }
});

t.test("a worker asks for as many subscribers as it has free places", async (t) => {
  stopClock(t);
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  const asked: unknown[] = [];
  const deliverer = startDeliverer(fixture, {
    ...fixture.worker,
    async rows<T>(text: string, params?: readonly unknown[]) {
      if (text.includes("list_due_webhooks")) asked.push(params![0]);
      return fixture.worker.rows<T>(text, params);
    },
  });
  receiver.answer = (response, received) => void deliverer.listDue().then(() => take(response, received));
  await fixture.happen("pty_s1", 1);
  await deliverer.drain();
  t.strictSame(asked, [maxSubscribersAtOnce, maxSubscribersAtOnce - 1, maxSubscribersAtOnce]);
});

t.test("a lease that has ended holds nobody up, even if its time lies in the future", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  await fixture.happen("pty_s1", 1);
  await fixture.service.owner.rows("update core.webhook set lease_until = clock_timestamp() + interval '1 day'");
  const deliverer = startDeliverer(fixture, fixture.worker);
  const due = await deliverer.listDue();
  t.equal(due.length, 1, "as after the clock was set back");
  await deliverer.deliver(due[0]!);
  t.equal(receiver.received.length, 1);
});

t.test("a stopping worker starts no request, cuts off hanging ones, and releases the lease", async (t) => {
  stopClock(t);
  const stopping = new AbortController();
  // The first response makes room for a fifth request.
  const receiver = await startReceiver(t, (response) => {
    if (receiver.received.length === 1) response.writeHead(200).end();
    if (receiver.received.length === 5) stopping.abort();
  });
  const fixture = await subscribe(t, [receiver.url]);
  await fixture.happen("pty_s1", 10);
  const stopped = startDeliverer(fixture, fixture.worker, { stopping: stopping.signal }).deliver(
    await findSubscriber(fixture, "pty_s1"),
  );
  // Less than the 15 s that the subscriber has.
  await waitFor("the worker to stop", stopped, { withinMs: 12_000 });
  t.equal(receiver.received.length, 5);
  const left = await listDeliveries(fixture);
  t.equal(left.length, 9, "only the completed delivery is recorded");
  for (const delivery of left) fits(t, delivery, { attempt_count: 0, last_error: null, is_due: true });
  t.equal((await fixture.service.owner.rows("select from core.webhook where holder is not null")).length, 0);
});

t.test("a refused address is recorded as a failure and tried again, without a connection", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  await fixture.happen("pty_s1", 1);
  await startDeliverer(fixture, fixture.worker, { allow: [] }).drain();
  fits(t, await listDeliveries(fixture), [
    { status: "WAITING", attempt_count: 1, last_error: "refused: 127.0.0.1 is not a public address" },
  ]);
  t.equal(receiver.connections, 0);
});
