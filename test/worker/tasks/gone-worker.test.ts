// A claim counts as long as the session of its worker lasts. The lease is only the last resort, for a worker that lives
// but does not go on.
import { randomUUID } from "node:crypto";
import t from "tap";
import { fingerprintKeys } from "../../../src/crypto/key-fingerprint.ts";
import type { Database } from "../../../src/database/types.ts";
import type { Subscriber } from "../../../src/worker/tasks/deliver.ts";
import { fits } from "../../support/fits.ts";
import { claimBatch, checkComplete, drawHashes, find, mintChunk, openWorker, submit } from "../../support/minting.ts";
import { hang, startReceiver, take } from "../../support/receiver.ts";
import { startService } from "../../support/service.ts";
import { stopClock } from "../../support/stop-clock.ts";
import { findSubscriber, listDeliveries, startDeliverer, subscribe } from "../../support/subscribers.ts";
import { waitAtMost, waitFor, waitUntil } from "../../support/wait-until.ts";
import { openWorkerSession } from "../../support/worker-session.ts";

// Much shorter than a lease.
const noticedWithinMs = 10_000;

function claimDeliveries(
  worker: Database,
  number: number,
  holder: string,
  { tenant_id, party_id }: Subscriber,
): Promise<{ event_id: string }[]> {
  return worker.rows<{ event_id: string }>("select event_id from jobs.lease_deliveries($1, $2, $3, $4, 10)", [
    tenant_id,
    party_id,
    number,
    holder,
  ]);
}

t.test("a worker session gets a new number each time", async (t) => {
  const service = await startService(t);
  const numbers: number[] = [];
  for (let times = 0; times < 3; times += 1) {
    const session = await openWorkerSession(t, service.address);
    numbers.push(session.number);
    await session.end();
  }
  t.strictSame(numbers, [1, 2, 3]);
});

t.test("a batch is due again as soon as the session of its worker ends, and not before", async (t) => {
  const service = await startService(t);
  const batch = await find(service, await submit(service, 10));
  const worker = openWorker(t, service);
  const [first, second] = [await openWorkerSession(t, service.address), await openWorkerSession(t, service.address)];
  const due = async () =>
    (await worker.rows("select from jobs.list_due_batches(10, $1::text::jsonb)", [fingerprintKeys(service.keys)]))
      .length;
  const before = (await claimBatch(service, worker, first, batch))!;
  t.equal(await due(), 0);
  t.equal(await claimBatch(service, worker, second, batch), null);

  await first.end();
  t.ok(await waitAtMost(noticedWithinMs, async () => (await due()) === 1), "it is due");
  t.equal((await find(service, batch.external_id)).is_leased, true, "its lease still runs");
  const after = (await claimBatch(service, worker, second, batch))!;
  t.strictSame(
    await mintChunk(worker, batch, before.holder, 1, drawHashes(5)),
    { minted_count: 0, is_complete: false },
    "a late chunk of the first worker is refused",
  );
  t.strictSame(await mintChunk(worker, batch, after.holder, 1, drawHashes(10)), {
    minted_count: 10,
    is_complete: true,
  });
  await checkComplete(t, service, batch.external_id, 10);
});

t.test("a worker whose session is gone claims nothing", async (t) => {
  const fixture = await subscribe(t, ["http://127.0.0.1:9"]);
  const { service, worker, session } = fixture;
  await fixture.happen("pty_s1", 1);
  const subscriber = await findSubscriber(fixture, "pty_s1");
  t.equal((await claimDeliveries(worker, 999, randomUUID(), subscriber)).length, 0);
  t.equal((await claimDeliveries(worker, session.number, randomUUID(), subscriber)).length, 1);

  const other = await startService(t);
  const batch = await find(other, await submit(other, 1));
  t.equal(await claimBatch(other, openWorker(t, other), { number: 999 }, batch), null);
  t.equal((await service.owner.rows("select from core.webhook where worker = 999")).length, 0);
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

t.test("after the lease is lost, successes and attempts of test events count, but no other failure", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  const [event] = await fixture.happen("pty_s1", 1);
  const subscriber = await findSubscriber(fixture, "pty_s1");
  const failed = { attempt: 1, http_status: 500, duration_ms: 1, is_taken: false, is_gone: false };
  const record = (holder: string, event_id: string, result = {}) =>
    fixture.worker.rows("select jobs.record_deliveries($1, $2, $3, $4::text::jsonb)", [
      subscriber.tenant_id,
      subscriber.party_id,
      holder,
      JSON.stringify([{ event_id, ...failed, ...result }]),
    ]);
  const dying = await openWorkerSession(t, fixture.service.address);
  const [before, after] = [randomUUID(), randomUUID()];
  const [claimed] = await claimDeliveries(fixture.worker, dying.number, before, subscriber);
  await dying.end();
  const claimAgain = () => claimDeliveries(fixture.worker, fixture.session.number, after, subscriber);
  t.ok(await waitAtMost(noticedWithinMs, async () => (await claimAgain()).length === 1));
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
  t.equal((await owner.rows("select from core.test_delivery")).length, 0);
});
