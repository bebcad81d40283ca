// Deliveries: what is sent, what is kept, and when it is sent again.
import { randomUUID } from "node:crypto";
import t from "tap";
import { findBrokenInvariants } from "../../support/inspect.ts";
import { hang, startReceiver, status, take, verify } from "../../support/receiver.ts";
import {
  findSubscriber,
  listAttempts,
  listDeliveries,
  passTime,
  startDeliverer,
  subscribe,
  tenant,
} from "../../support/subscribers.ts";

t.test("an event is delivered as the feed shows it, signed, once; a line in the log is left and no row", async (t) => {
  const receiver = await startReceiver(t);
  const world = await subscribe(t, [`${receiver.url}/1`, `${receiver.url}/2`]);
  const events = await world.happen("pty_s1", 5);
  const others = await world.happen("pty_s2", 1);
  await startDeliverer(world, world.worker).drain();
  const mine = receiver.received.filter(({ path }) => path === "/1");
  t.strictSame(mine.map(({ id }) => id).sort(), [...events].sort());
  t.strictSame(
    receiver.received.filter(({ path }) => path === "/2").map(({ id }) => id),
    others,
  );
  const feed = await world.service.as("ak_pty_s1").get("/v1/events");
  const shown = new Map<string, unknown>(
    feed.json.events.map((event: { event_id: string }) => [event.event_id, event]),
  );
  for (const got of mine) t.strictSame(JSON.parse(got.body), shown.get(got.id));
  for (const got of mine) {
    verify(world.secrets.get("pty_s1")!, got);
    t.throws(() => verify(world.secrets.get("pty_s2")!, got), "another subscriber's secret does not do");
  }
  t.strictSame(await listDeliveries(world), []);
  const attempts = await listAttempts(world);
  t.match(
    attempts.filter(({ party }) => party === "pty_s1"),
    [...events].sort().map((event) => ({ event, attempt: 1, http_status: 204, error: null })),
  );
  t.equal(attempts.length, 6);
  t.strictSame(await findBrokenInvariants(world.service.owner), []);
});

t.test("what is due goes out in the order of the events, failed ones when their time has come", async (t) => {
  const receiver = await startReceiver(t);
  const world = await subscribe(t, [receiver.url]);
  const events = [...(await world.happen("pty_s1", 5)), ...(await world.happen("pty_s1", 5))];
  const subscriber = await findSubscriber(world, "pty_s1");
  const claim = "select external_id from jobs.claim_deliveries($1, $2, $3, 7)";
  const claimed = await world.worker.rows<{ external_id: string }>(claim, [
    subscriber.tenant_id,
    subscriber.party_id,
    randomUUID(),
  ]);
  t.strictSame(
    claimed.map(({ external_id }) => external_id),
    events.slice(0, 7),
  );
});

t.test("whatever is no 2xx is tried again after 4 to 6 seconds", async (t) => {
  const receiver = await startReceiver(t);
  const world = await subscribe(t, [receiver.url]);
  const [deliverer, hasty] = [
    startDeliverer(world, world.worker),
    startDeliverer(world, world.worker, { timeoutMs: 200 }),
  ];
  const answers: [string, typeof take][] = [
    ["HTTP 301", status(301, { location: "http://10.0.0.1/" })],
    ["HTTP 404", status(404)],
    ["HTTP 500", status(500)],
    ["no complete response within 0.2 s", hang],
    ["socket hang up", (response) => response.destroy()],
  ];
  for (const [error, answer] of answers) {
    receiver.answer = answer;
    const [event] = await world.happen("pty_s1", 1);
    await (answer === hang ? hasty : deliverer).drain();
    const deliveries = await listDeliveries(world);
    t.match(deliveries, [{ event, status: "WAITING", attempt_count: 1, last_error: error, is_due: false }], error);
    t.ok(
      deliveries[0]!.pause_seconds >= 4 && deliveries[0]!.pause_seconds <= 6,
      `${error}: ${deliveries[0]!.pause_seconds} s`,
    );
    const [attempt] = (await listAttempts(world)).slice(-1);
    t.match(
      attempt,
      error.startsWith("HTTP") ? { http_status: Number(error.slice(5)), error: null } : { http_status: null, error },
    );
    receiver.answer = take;
    await passTime(world);
    await deliverer.drain();
    t.strictSame(await listDeliveries(world), []);
  }
});

t.test("the schedule is that of README, each pause up to a fifth shorter or longer", async (t) => {
  const world = await subscribe(t, []);
  const rows = await world.service.owner.rows<{ n: number; shortest: number; longest: number }>(
    `select n, min(s)::float as shortest, max(s)::float as longest
     from generate_series(1, 9) n,
     lateral (select extract(epoch from rules.compute_retry_delay(n)) as s from generate_series(1, 2000) i where n > 0) d group by n order by n`,
  );
  const hours = (count: number) => count * 3_600;
  const schedule = [5, 300, 1_800, hours(2), hours(5), hours(10), hours(14), hours(20), hours(24)];
  t.equal(rows.length, schedule.length);
  for (const { n, shortest, longest } of rows) {
    const pause = schedule[n - 1]!;
    t.ok(shortest >= 0.8 * pause && shortest < 0.82 * pause, `${n}: from ${shortest} s`);
    t.ok(longest <= 1.2 * pause && longest > 1.18 * pause, `${n}: to ${longest} s`);
  }
  t.strictSame(
    { ...(await world.service.owner.rows("select rules.compute_retry_delay(10) as pause"))[0] },
    { pause: null },
  );
});

t.test(
  "after the tenth attempt a delivery is parked; replayed it begins anew, under the same webhook-id",
  async (t) => {
    const receiver = await startReceiver(t, status(500));
    const world = await subscribe(t, [receiver.url]);
    const deliverer = startDeliverer(world, world.worker);
    const [event] = await world.happen("pty_s1", 1);
    for (let attempt = 1; attempt <= 12; attempt += 1) {
      t.match(await listDeliveries(world), [
        { event, status: attempt <= 10 ? "WAITING" : "PARKED", attempt_count: Math.min(attempt - 1, 10) },
      ]);
      await passTime(world);
      await deliverer.drain();
    }
    t.equal(receiver.received.length, 10);
    t.strictSame(
      (await listAttempts(world)).map(({ attempt }) => attempt),
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    );
    receiver.answer = take;
    t.match(
      await world.service.admin.rows("select admin.replay_parked($1, 'pty_s1', 'receiver is mended') as count", [
        tenant,
      ]),
      [{ count: 1 }],
    );
    await deliverer.drain();
    t.strictSame(await listDeliveries(world), []);
    t.strictSame([...new Set(receiver.received.map(({ id }) => id))], [event]);
    t.match((await listAttempts(world)).at(-1), { attempt: 1, http_status: 204 });
    t.strictSame(deliverer.outcomes, [...Array<string>(9).fill("failed"), "parked", "taken"]);
  },
);

t.test("410 disables: nothing is sent until somebody enables it, and nothing is lost", async (t) => {
  const receiver = await startReceiver(t, status(410));
  const world = await subscribe(t, [receiver.url]);
  const deliverer = startDeliverer(world, world.worker);
  const events = await world.happen("pty_s1", 10);
  await deliverer.drain();
  t.ok(receiver.received.length <= 4, "no more after the word");
  t.strictSame(new Set(deliverer.outcomes), new Set(["gone"]));
  const deliveries = await listDeliveries(world);
  t.equal(deliveries.length, 10);
  for (const delivery of deliveries) t.match(delivery, { status: "PARKED", last_error: "HTTP 410" });
  t.match(await world.service.owner.rows("select health, parked from report.webhook_health"), [
    { health: "disabled", parked: "10" },
  ]);

  await world.happen("pty_s1", 1);
  await world.service.admin.rows("select admin.replay_parked($1, 'pty_s1', 'too early')", [tenant]);
  t.equal((await deliverer.listDue()).length, 0);
  receiver.answer = take;
  receiver.received.length = 0;
  await world.service.admin.rows("select admin.enable_webhook($1, 'pty_s1', 'they are back')", [tenant]);
  await deliverer.drain();
  t.strictSame(receiver.received.map(({ id }) => id).sort(), [...events].sort());
  const [later] = await world.happen("pty_s1", 1);
  await deliverer.drain();
  t.equal(receiver.received.at(-1)!.id, later, "new events go out again");
});

t.test("Retry-After leaves the subscriber alone until then, with everything", async (t) => {
  const receiver = await startReceiver(t, status(429, { "retry-after": "120" }));
  const world = await subscribe(t, [receiver.url]);
  const deliverer = startDeliverer(world, world.worker);
  await world.happen("pty_s1", 12);
  await deliverer.drain();
  const tried = receiver.received.length;
  t.ok(tried >= 1 && tried <= 4, `${tried} were under way when the first answer came`);
  const [{ seconds } = { seconds: 0 }] = await world.service.owner.rows<{ seconds: number }>(
    `select extract(epoch from paused_until - clock_timestamp())::float as seconds
     from report.webhook_health
     where health = 'paused'`,
  );
  t.ok(seconds > 115 && seconds <= 120, `paused for ${seconds} s`);
  for (const { attempt_count, pause_seconds } of await listDeliveries(world)) {
    if (attempt_count === 1)
      t.ok(pause_seconds >= 119.9 && pause_seconds <= 120.1, "later than the schedule would have it");
  }
  await world.happen("pty_s1", 1);
  t.equal((await deliverer.listDue()).length, 0);
  receiver.answer = take;
  await passTime(world);
  await deliverer.drain();
  t.equal(receiver.received.length, tried + 13);
  t.strictSame(await listDeliveries(world), []);
});

t.test("one event, a span of time or what is parked is sent again, whatever became of it before", async (t) => {
  const receiver = await startReceiver(t);
  const world = await subscribe(t, [receiver.url]);
  const deliverer = startDeliverer(world, world.worker);
  const { admin, owner } = world.service;
  const [first, middle, last] = [
    await world.happen("pty_s1", 2),
    await world.happen("pty_s1", 3),
    await world.happen("pty_s1", 2),
  ];
  await deliverer.drain();
  const replayed = async (act: () => Promise<unknown>) => {
    receiver.received.length = 0;
    await act();
    await deliverer.drain();
    t.strictSame(await listDeliveries(world), []);
    return receiver.received.map(({ id }) => id).sort();
  };
  t.strictSame(await replayed(() => admin.rows("select admin.replay_event($1, $2, 'lost')", [tenant, first[1]])), [
    first[1],
  ]);
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
  t.strictSame(await replayed(replayRange), [...middle].sort(), "with the first moment, without the last");
  await owner.rows(
    `select rules.replay_deliveries(e.tenant_id, e.party_id, array[e.event_id])
     from core.event e
     where rules.format_id('evt', e.event_id) = any ($1::text[])`,
    [last],
  );
  await owner.rows(
    "update core.delivery set attempt_count = 10, parked_at = clock_timestamp(), last_error = 'HTTP 500'",
  );
  t.strictSame(
    await replayed(() => admin.rows("select admin.replay_parked($1, 'pty_s1', 'mended')", [tenant])),
    [...last].sort(),
  );
  t.match(await owner.rows("select action, reason from report.audit where action like 'replay%' order by audit_id"), [
    { action: "replay_event" },
    { action: "replay_range" },
    { action: "replay_parked", reason: "mended" },
  ]);
});

t.test("for 24 h after a rotation both secrets sign, then the new one alone", async (t) => {
  const receiver = await startReceiver(t);
  const world = await subscribe(t, [receiver.url]);
  const deliverer = startDeliverer(world, world.worker);
  const before = world.secrets.get("pty_s1")!;
  const after = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;
  const file = {
    tenants: [
      {
        id: tenant,
        name: "W",
        variant: "B",
        parties: [{ id: "pty_s1", name: "pty_s1", webhook: { url: receiver.url, secret: after } }],
      },
    ],
  };
  await world.service.apply(file);
  const next = async () => {
    await world.happen("pty_s1", 1);
    await deliverer.drain();
    return receiver.received.at(-1)!;
  };
  const both = await next();
  verify(before, both);
  verify(after, both);
  await world.service.owner.rows("update core.webhook set rotated_at = clock_timestamp() - interval '24 hours'");
  const alone = await next();
  verify(after, alone);
  t.throws(() => verify(before, alone));
});
