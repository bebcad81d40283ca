// A disabled webhook concerns one subscriber, and an enabled one delivers at once.
import t from "tap";
import { fits } from "../../support/fits.ts";
import { startReceiver, status, take } from "../../support/receiver.ts";
import { stopClock } from "../../support/stop-clock.ts";
import {
  findSubscriber,
  listDeliveries,
  passTime,
  startDeliverer,
  subscribe,
  tenant,
} from "../../support/subscribers.ts";

const bothParties = ["pty_s1", "pty_s2"];

for (const [title, isByAdministrator] of [
  ["a 410 parks the deliveries of its subscriber only", false],
  ["disable_webhook parks the deliveries of its subscriber only", true],
] as const)
  t.test(title, async (t) => {
    stopClock(t);
    const [gone, other] = [await startReceiver(t, status(410)), await startReceiver(t)];
    const fixture = await subscribe(t, [gone.url, other.url]);
    const { owner, admin } = fixture.service;
    const deliverer = startDeliverer(fixture, fixture.worker);
    const events = await fixture.happen(bothParties, 3);
    if (isByAdministrator) await admin.rows("select admin.disable_webhook($1, 'pty_s1', 'they asked')", [tenant]);
    else await deliverer.deliver(await findSubscriber(fixture, "pty_s1"));

    t.strictSame(
      (await listDeliveries(fixture)).map(({ event, party, status }) => [party, status, event]).sort(),
      [
        ...events.slice(0, 3).map((event) => ["pty_s1", "PARKED", event]),
        ...events.slice(3).map((event) => ["pty_s2", "WAITING", event]),
      ].sort(),
    );
    const disabled = await owner.rows<{ party: string }>(
      `select p.external_id as party
       from core.webhook w join core.party p using (tenant_id, party_id)
       where w.disabled_at is not null`,
    );
    t.strictSame(
      disabled.map(({ party }) => party),
      ["pty_s1"],
    );
    await deliverer.drain();
    t.strictSame(other.received.map(({ id }) => id).sort(), events.slice(3).sort(), "the other one gets its events");
  });

t.test("a delivery that was parked before its webhook is disabled keeps its time and its reason", async (t) => {
  const receiver = await startReceiver(t, status(500));
  const fixture = await subscribe(t, [receiver.url]);
  const { owner, admin } = fixture.service;
  const deliverer = startDeliverer(fixture, fixture.worker);
  const [given] = await fixture.happen("pty_s1", 1);
  for (let attempt = 1; attempt <= 10; attempt += 1) {
    await passTime(fixture);
    await deliverer.drain();
  }
  const [waiting] = await fixture.happen("pty_s1", 1);
  const list = async () => {
    const rows = await owner.rows<{ event: string; parked: string | null; last_error: string | null }>(
      `select rules.format_id('evt', event_id) as event, parked_at::text as parked, last_error
       from core.delivery order by event_seq`,
    );
    return rows.map((row) => ({ ...row }));
  };
  const [parked, other] = await list();
  fits(
    t,
    [parked, other],
    [
      { event: given, parked: /^20/, last_error: "HTTP 500" },
      { event: waiting, parked: null },
    ],
  );
  const disable = async () => {
    await admin.rows("select admin.disable_webhook($1, 'pty_s1', 'they move')", [tenant]);
    const [webhook] = await owner.rows<{ since: string }>("select disabled_at::text as since from core.webhook");
    return webhook!.since;
  };
  const since = await disable();
  fits(t, await list(), [parked, { event: waiting, parked: /^20/, last_error: "disabled: they move" }]);
  t.equal(await disable(), since, "it has been disabled since the first time");
});

t.test("enable_webhook ends the pause that the subscriber asked for", async (t) => {
  const receiver = await startReceiver(t, (response) => response.writeHead(503, { "retry-after": "3600" }).end());
  const fixture = await subscribe(t, [receiver.url]);
  const { admin } = fixture.service;
  const deliverer = startDeliverer(fixture, fixture.worker);
  const [refused] = await fixture.happen("pty_s1", 1);
  await deliverer.drain();
  receiver.answer = take;
  receiver.received.length = 0;
  const [next] = await fixture.happen("pty_s1", 1);
  await deliverer.drain();
  t.equal(receiver.received.length, 0, "new events wait until the pause is over");

  await admin.rows("select admin.disable_webhook($1, 'pty_s1', 'they move')", [tenant]);
  await admin.rows("select admin.enable_webhook($1, 'pty_s1', 'they have moved')", [tenant]);
  await admin.rows("select admin.replay_parked($1, 'pty_s1', 'they missed these')", [tenant]);
  await deliverer.drain();
  t.strictSame(receiver.received.map(({ id }) => id).sort(), [refused, next].sort());
  t.strictSame(await listDeliveries(fixture), []);
});
