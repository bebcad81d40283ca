// A subscriber whose URL changes, while the old receiver still has requests or after it has answered 410.
import { randomUUID } from "node:crypto";
import t from "tap";
import { startReceiver, status } from "../../support/receiver.ts";
import {
  claimDeliveries,
  findSubscriber,
  listDeliveries,
  recordFailure,
  startDeliverer,
  subscribe,
  tenant,
  type Subscribed,
} from "../../support/subscribers.ts";

function moveTo({ service }: Subscribed, url: string) {
  const parties = [{ id: "pty_s1", name: "Subscriber", webhook: { url } }];
  return service.apply({ tenants: [{ id: tenant, name: "W", variant: "B", parties }] });
}

t.test("what the old receiver answers after a change of the URL is only logged", async (t) => {
  const fixture = await subscribe(t, ["http://127.0.0.1:1"]);
  const { service, worker, session } = fixture;
  const { tenant_id, party_id } = await findSubscriber(fixture, "pty_s1");
  await fixture.happen("pty_s1", 2);
  const holder = randomUUID();
  const claimed = await worker.rows<object>(claimDeliveries, [tenant_id, party_id, session.number, holder]);
  const record = (delivery: object | undefined, more: object) =>
    recordFailure(fixture, { tenant_id, party_id }, holder, { ...delivery, ...more });
  await record(claimed[0], { retry_after_seconds: 3_600 });

  await moveTo(fixture, "http://127.0.0.1:2");
  await record(claimed[1], { is_gone: true, http_status: 410 });
  await record(claimed[1], { retry_after_seconds: 3_600 });

  const [webhook] = await service.owner.rows<object>(
    "select url, disabled_at, paused_until, holder, worker, lease_until from core.webhook where party_id = $1",
    [party_id],
  );
  const free = { disabled_at: null, paused_until: null, holder: null, worker: null, lease_until: null };
  t.strictSame({ ...webhook }, { url: "http://127.0.0.1:2", ...free });
  const attempts = (await listDeliveries(fixture)).map(({ status, attempt_count }) => `${status} ${attempt_count}`);
  t.strictSame(attempts.sort(), ["WAITING 0", "WAITING 1"]);
});

t.test("a new URL enables a webhook that a 410 has disabled, and gets the next events", async (t) => {
  const [gone, next] = [await startReceiver(t, status(410)), await startReceiver(t)];
  const fixture = await subscribe(t, [gone.url]);
  const deliverer = startDeliverer(fixture, fixture.worker);
  const events: string[] = [];
  for (const url of [gone.url, gone.url, next.url]) {
    await moveTo(fixture, url);
    events.push(...(await fixture.happen("pty_s1", 1)));
    await deliverer.drain();
  }
  t.strictSame(
    [gone.received.map(({ id }) => id), next.received.map(({ id }) => id)],
    [events.slice(0, 1), events.slice(2)],
    "the same URL leaves it disabled",
  );
});
