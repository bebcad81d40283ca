// How long a worker serves one subscriber before the next one gets the place.
import t from "tap";
import { fits } from "../../support/fits.ts";
import { startReceiver, take } from "../../support/receiver.ts";
import { stopClock } from "../../support/stop-clock.ts";
import { findSubscriber, listDeliveries, startDeliverer, subscribe } from "../../support/subscribers.ts";
import { waitFor } from "../../support/wait-until.ts";

t.test("within its slice, a subscriber is served until nothing is due", async (t) => {
  stopClock(t);
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url], 70);
  const events = await fixture.happen("pty_s1", 70);
  await startDeliverer(fixture, fixture.worker).deliver(await findSubscriber(fixture, "pty_s1"));
  t.strictSame(receiver.received.map(({ id }) => id).toSorted(), events.toSorted(), "more than two rounds");
});

t.test("after its slice no request starts, what was sent is recorded, and the rest stays due", async (t) => {
  const clock = stopClock(t);
  const receiver = await startReceiver(t, (response, received) => {
    clock.pass(100);
    take(response, received);
  });
  const fixture = await subscribe(t, [receiver.url], 70);
  await fixture.happen("pty_s1", 70);
  const deliverer = startDeliverer(fixture, fixture.worker);
  const subscriber = await findSubscriber(fixture, "pty_s1");
  await waitFor("the end of the slice", deliverer.deliver(subscriber), { withinMs: 60_000 });
  const sent = receiver.received.length;
  // After 20 answers the slice of 2 s is over. Until then 4 requests are under way, some of them answered already.
  t.ok(sent >= 21 && sent <= 24, `${sent} requests`);
  const left = await listDeliveries(fixture);
  t.equal(left.length, 70 - sent);
  for (const delivery of left) fits(t, delivery, { attempt_count: 0, is_due: true });
  t.strictSame([...(await deliverer.listDue())], [subscriber], "its lease has ended");
});

t.test("a claim that takes longer than the slice still leaves time to send", async (t) => {
  const clock = stopClock(t);
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  const deliverer = startDeliverer(fixture, {
    ...fixture.worker,
    async rows<T>(text: string, params?: readonly unknown[]) {
      const rows = await fixture.worker.rows<T>(text, params);
      if (text.includes("claim_deliveries")) clock.pass(10_000);
      return rows;
    },
  });
  await fixture.happen("pty_s1", 2);
  await deliverer.deliver(await findSubscriber(fixture, "pty_s1"));
  t.equal(receiver.received.length, 2);
});
