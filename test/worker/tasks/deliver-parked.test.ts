// Parked deliveries: what parks them, and how replays send events again.
import t from "tap";
import { fits } from "../../support/fits.ts";
import { startReceiver, status, take } from "../../support/receiver.ts";
import {
  listAttempts,
  listDeliveries,
  passTime,
  startDeliverer,
  subscribe,
  tenant,
} from "../../support/subscribers.ts";

t.test("a delivery is parked after the tenth attempt; a replay starts over with the same webhook-id", async (t) => {
  const receiver = await startReceiver(t, status(500));
  const fixture = await subscribe(t, [receiver.url]);
  const deliverer = startDeliverer(fixture, fixture.worker);
  const [event] = await fixture.happen("pty_s1", 1);
  for (let attempt = 1; attempt <= 12; attempt += 1) {
    fits(t, await listDeliveries(fixture), [
      { event, status: attempt <= 10 ? "WAITING" : "PARKED", attempt_count: Math.min(attempt - 1, 10) },
    ]);
    await passTime(fixture);
    await deliverer.drain();
  }
  t.equal(receiver.received.length, 10);
  t.strictSame(
    (await listAttempts(fixture)).map(({ attempt }) => attempt),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
  );
  receiver.answer = take;
  fits(
    t,
    await fixture.service.admin.rows("select admin.replay_parked($1, 'pty_s1', 'the receiver works again') as count", [
      tenant,
    ]),
    [{ count: 1 }],
  );
  fits(t, await listDeliveries(fixture), [
    { event, status: "WAITING", attempt_count: 0, last_error: null, is_due: true },
  ]);
  await deliverer.drain();
  t.strictSame(await listDeliveries(fixture), []);
  t.strictSame([...new Set(receiver.received.map(({ id }) => id))], [event]);
  fits(t, (await listAttempts(fixture)).at(-1), { attempt: 1, http_status: 204 });
  t.strictSame(deliverer.outcomes, [...Array<string>(9).fill("failed"), "parked", "taken"]);
});

t.test("a 410 disables the webhook: nothing is sent until an operator enables it, and nothing is lost", async (t) => {
  const receiver = await startReceiver(t, status(410));
  const fixture = await subscribe(t, [receiver.url]);
  const deliverer = startDeliverer(fixture, fixture.worker);
  const events = await fixture.happen("pty_s1", 10);
  await deliverer.drain();
  t.ok(receiver.received.length <= 4, "at most the requests under way");
  t.strictSame(new Set(deliverer.outcomes), new Set(["gone"]));
  const deliveries = await listDeliveries(fixture);
  t.equal(deliveries.length, 10);
  for (const delivery of deliveries) fits(t, delivery, { status: "PARKED", last_error: "HTTP 410" });
  fits(t, await fixture.service.owner.rows("select health, parked from report.webhook_health"), [
    { health: "disabled", parked: "10" },
  ]);

  await fixture.happen("pty_s1", 1);
  await fixture.service.admin.rows("select admin.replay_parked($1, 'pty_s1', 'too early')", [tenant]);
  t.equal((await deliverer.listDue()).length, 0);
  receiver.answer = take;
  receiver.received.length = 0;
  await fixture.service.admin.rows("select admin.enable_webhook($1, 'pty_s1', 'they are back')", [tenant]);
  await deliverer.drain();
  t.strictSame(receiver.received.map(({ id }) => id).sort(), [...events].sort());
  const [later] = await fixture.happen("pty_s1", 1);
  await deliverer.drain();
  t.equal(receiver.received.at(-1)!.id, later, "new events are delivered again");
});

t.test("a replay sends one event, a time range or all parked events again, whatever their outcome was", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  const deliverer = startDeliverer(fixture, fixture.worker);
  const { admin, owner } = fixture.service;
  const [first, middle, last] = [
    await fixture.happen("pty_s1", 2),
    await fixture.happen("pty_s1", 3),
    await fixture.happen("pty_s1", 2),
  ];
  await deliverer.drain();
  const replayed = async (act: () => Promise<unknown>) => {
    receiver.received.length = 0;
    await act();
    await deliverer.drain();
    t.strictSame(await listDeliveries(fixture), []);
    return receiver.received.map(({ id }) => id).sort();
  };
  t.strictSame(await replayed(() => admin.rows("select admin.replay_event($1, $2, 'lost')", [tenant, first[1]])), [
    first[1],
  ]);
  const [unused] = await owner.rows<{ coupon: string }>("select coupon from report.coupon where status = 'ISSUED'");
  await admin.rows("select admin.void_coupon($1, $2, 'not sequenced yet')", [tenant, unused!.coupon]);
  const [newest] = await owner.rows<{ event: string }>(
    "select event from report.event order by event_seq desc limit 1",
  );
  await t.rejects(admin.rows("select admin.replay_event($1, $2, 'lost')", [tenant, newest!.event]), {
    message: /has no event/,
  });
  await fixture.sequence();
  await deliverer.drain();
  const [span] = await owner.rows<{ from: string; to: string }>(
    `select (select recorded_at::text from report.event where event = $1) as from,
            (select recorded_at::text from report.event where event = $2) as to`,
    [middle[0], last[0]],
  );
  const replayRange = () =>
    admin.rows("select admin.replay_range($1, 'pty_s1', $2::text::timestamptz, $3::text::timestamptz, 'lost')", [
      tenant,
      span!.from,
      span!.to,
    ]);
  t.strictSame(await replayed(replayRange), [...middle].sort(), "includes the start and excludes the end");
  await owner.rows(
    `select rules.replay_deliveries(e.tenant_id, e.party_id, array[e.event_id])
     from rules.event e
     where rules.format_id('evt', e.event_id) = any ($1::text[])`,
    [last],
  );
  await owner.rows(
    "update core.delivery set attempt_count = 10, parked_at = clock_timestamp(), last_error = 'HTTP 500'",
  );
  t.strictSame(
    await replayed(() => admin.rows("select admin.replay_parked($1, 'pty_s1', 'repaired')", [tenant])),
    [...last].sort(),
  );
  fits(t, await owner.rows("select action, reason from report.audit where action like 'replay%' order by audit_id"), [
    { action: "replay_event" },
    { action: "replay_range" },
    { action: "replay_parked", reason: "repaired" },
  ]);
});
