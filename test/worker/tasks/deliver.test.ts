// Deliveries to webhooks: what is sent, when it is sent again, what parks it, and which secrets sign. Who may serve a
// subscriber, and for how long, is in webhook-lease.test.ts.
import { randomBytes, randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { inspect } from "node:util";
import { Webhook } from "standardwebhooks";
import t, { type Test } from "tap";
import { parseMasterKeys } from "../../../src/crypto/keys.ts";
import { newWebhookSecret } from "../../../src/crypto/webhook-signature.ts";
import { findUndescribedEvent } from "../../support/described-answers.ts";
import { fits } from "../../support/fits.ts";
import { hang, startReceiver, status, take, verify, type Received } from "../../support/receiver.ts";
import { scenario, type Scenario } from "../../support/scenario.ts";
import { stopClock } from "../../support/stop-clock.ts";
import {
  claim,
  endLeases,
  findSubscriber,
  listAttempts,
  listDeliveries,
  passTime,
  readWebhook,
  recordFailure,
  subscribe,
  type Subscribed,
} from "../../support/subscribers.ts";
import { createWorkerSteps, type StepOptions } from "../../support/worker-steps.ts";

let world: Scenario;
t.before(async () => {
  world = await scenario(t, { file: null });
});

/** Subscribers at these URLs, and the steps of a worker that serves them. */
async function start(t: Test, urls: string[], options: StepOptions = {}) {
  const fixture = await subscribe(t, urls, { on: world });
  return { fixture, steps: createWorkerSteps(t, world, { session: fixture.session, ...options }) };
}

const idsOf = (received: Received[]) => received.map(({ id }) => id).sort();

/** A patch of the administrator for pty_s1. */
const patch = (name: string, { tenant }: Subscribed) =>
  world.admin.rows(`select admin.${name}($1, 'pty_s1', 'they asked')`, [tenant]);

/** `apply` of another URL or secret of pty_s1. */
const reapply = ({ tenant }: Subscribed, webhook: { url: string; secret?: string }) =>
  world.apply({
    tenants: [{ id: tenant, name: "W", variant: "B", parties: [{ id: "pty_s1", name: "pty_s1", webhook }] }],
  });

t.test("an event is delivered once, signed, as the feed shows it, and each attempt is logged", async (t) => {
  const receiver = await startReceiver(t);
  const { fixture, steps } = await start(t, [`${receiver.url}/1`, `${receiver.url}/2`]);
  const [events, others] = [await fixture.happen("pty_s1", 5), await fixture.happen("pty_s2", 1)];
  await steps.deliverDue();
  const mine = receiver.received.filter(({ path }) => path === "/1");
  t.strictSame(idsOf(mine), events.toSorted());
  t.strictSame(idsOf(receiver.received.filter(({ path }) => path === "/2")), others);
  const feed = await fixture.as("pty_s1").get("/v1/events");
  const shown = new Map<string, unknown>(
    feed.json.events.map((event: { event_id: string }) => [event.event_id, event]),
  );
  for (const got of mine) {
    t.strictSame(JSON.parse(got.body), shown.get(got.id));
    verify(fixture.secrets.get("pty_s1")!, got);
    t.equal(findUndescribedEvent(got.headers, got.body), null, "docs/openapi describes it");
    t.throws(() => verify(fixture.secrets.get("pty_s2")!, got), "another subscriber's secret fails");
  }
  t.strictSame(await listDeliveries(fixture), []);
  const attempts = await listAttempts(fixture);
  fits(
    t,
    attempts.toSorted((one, other) => one.event.localeCompare(other.event)),
    [...events, ...others].sort().map((event) => ({ event, attempt: 1, http_status: 204, error: null })),
  );
});

t.test("anything but a 2xx is tried again after 4 to 6 seconds, even if Retry-After asks for less", async (t) => {
  const receiver = await startReceiver(t);
  const { fixture, steps } = await start(t, [receiver.url]);
  const rows: [error: string, answer: typeof take, options?: StepOptions][] = [
    ["HTTP 300", status(300)],
    ["HTTP 301", status(301, { location: "http://10.0.0.1/" })],
    ["HTTP 404", status(404)],
    ["HTTP 500", status(500)],
    ["HTTP 503", status(503, { "retry-after": "1" })],
    ["no complete response within 0.2 s", hang, { timeoutMs: 200 }],
    ["socket hang up", (response) => response.destroy()],
    ["refused: 127.0.0.1 is not a public address", take, { allow: [] }],
  ];
  for (const [error, answer, options] of rows) {
    receiver.answer = answer;
    const [event] = await fixture.happen("pty_s1", 1);
    await createWorkerSteps(t, world, { session: fixture.session, ...options }).deliverDue();
    const deliveries = await listDeliveries(fixture);
    fits(t, deliveries, [{ event, status: "WAITING", attempt_count: 1, last_error: error }], error);
    const { pause_seconds } = deliveries[0]!;
    t.ok(pause_seconds >= 4 && pause_seconds <= 6, `${error}: ${pause_seconds} s`);
    const httpStatus = error.startsWith("HTTP") ? Number(error.slice(5)) : null;
    const attempt = { event, http_status: httpStatus, error: httpStatus === null ? error : null };
    fits(t, (await listAttempts(fixture)).at(-1), attempt);
    receiver.answer = take;
    await passTime(fixture);
    await steps.deliverDue();
    t.strictSame(await listDeliveries(fixture), []);
  }
  t.equal(receiver.connections, 2 * rows.length - 1, "a refused address gets no connection");
});

t.test("retries follow the documented schedule, each pause up to a fifth shorter or longer", async (t) => {
  const rows = await world.owner.rows<{ n: number; shortest: number | null; longest: number | null }>(
    `select n, min(s)::float as shortest, max(s)::float as longest
     from generate_series(1, 10) n,
       lateral (
         select extract(epoch from rules.compute_retry_delay(n)) as s
         from generate_series(1, 2000) i
         where n > 0) d
     group by n
     order by n`,
  );
  const hours = (count: number) => count * 3_600;
  const schedule = [5, 300, 1_800, hours(2), hours(5), hours(10), hours(14), hours(20), hours(24)];
  for (const [index, pause] of schedule.entries()) {
    const { shortest, longest } = rows[index]!;
    t.ok(shortest! >= 0.8 * pause && shortest! < 0.82 * pause, `${index + 1}: from ${shortest} s`);
    t.ok(longest! <= 1.2 * pause && longest! > 1.18 * pause, `${index + 1}: to ${longest} s`);
  }
  t.equal(rows[9]!.shortest, null, "the tenth attempt is the last one");
});

t.test(
  "Retry-After pauses all deliveries to a subscriber, until the time is over or its webhook is enabled",
  async (t) => {
    const refuse = status(429, { "retry-after": "120" });
    const receiver = await startReceiver(t, refuse);
    const { fixture, steps } = await start(t, [receiver.url]);
    const readHealth = async () => {
      const [row] = await world.owner.rows<{ health: string; seconds: number }>(
        `select health, extract(epoch from h.paused_until - h.last_attempt_at)::float as seconds
       from report.webhook_health h where h.tenant = $1`,
        [fixture.tenant],
      );
      return { ...row! };
    };
    const events = await fixture.happen("pty_s1", 12);
    await steps.deliverDue();
    const tried = receiver.received.length;
    t.ok(tried >= 1 && tried <= 4, `${tried} requests were under way when the first response came`);
    for (const { id } of receiver.received) t.ok(events.slice(0, 4).includes(id), "one of the oldest events");
    t.strictSame(await readHealth(), { health: "paused", seconds: 120 });
    for (const { attempt_count, pause_seconds } of await listDeliveries(fixture)) {
      if (attempt_count === 1) t.ok(pause_seconds >= 119.9 && pause_seconds <= 120.1, "later than the schedule");
    }
    await fixture.happen("pty_s1", 1);
    t.strictSame(await steps.listDue(), []);

    await world.owner.rows("update core.webhook set paused_until = clock_timestamp()");
    fits(t, await readHealth(), { health: "failing" }, "the pause is over, and deliveries wait for their next attempt");
    receiver.answer = take;
    await passTime(fixture);
    await steps.deliverDue();
    t.equal(receiver.received.length, tried + 13);
    t.strictSame(await listDeliveries(fixture), []);

    receiver.answer = refuse;
    const [last] = await fixture.happen("pty_s1", 1);
    await steps.deliverDue();
    receiver.answer = take;
    for (const name of ["disable_webhook", "enable_webhook", "replay_parked"]) await patch(name, fixture);
    await steps.deliverDue();
    t.strictSame(
      receiver.received.slice(-2).map(({ id }) => id),
      [last, last],
    );
    t.strictSame(await listDeliveries(fixture), []);
  },
);

t.test("the oldest events are claimed first, and the longest Retry-After of a round is the pause", async (t) => {
  const { fixture } = await start(t, ["http://127.0.0.1:9"]);
  const subscriber = await findSubscriber(fixture, "pty_s1");
  const events = [...(await fixture.happen("pty_s1", 4)), ...(await fixture.happen("pty_s1", 4))];
  const holder = randomUUID();
  const claimed = await claim(fixture, subscriber, holder, 5);
  t.strictSame(
    claimed.map(({ external_id }) => external_id),
    events.slice(0, 5),
  );
  const record = (...seconds: (number | null)[]) => {
    const results = seconds.map((retry_after_seconds) => ({ ...claimed.shift(), retry_after_seconds }));
    return recordFailure(fixture, subscriber, holder, ...results);
  };
  await record(7, 60, null);
  const { paused_until } = await readWebhook(fixture);
  const [pause] = await world.owner.rows<{ seconds: number }>(
    `select extract(epoch from $1::text::timestamptz - max(attempted_at))::int as seconds
     from core.delivery_attempt where tenant_id = $2`,
    [paused_until, subscriber.tenant_id],
  );
  t.equal(pause!.seconds, 60);
  for (const seconds of [null, 0]) {
    await record(seconds);
    t.equal((await readWebhook(fixture)).paused_until, paused_until, `a later ${seconds} does not end it`);
  }
});

t.test("a delivery is parked after the tenth attempt; a replay starts over with the same webhook-id", async (t) => {
  const receiver = await startReceiver(t, status(500));
  const { fixture, steps } = await start(t, [receiver.url]);
  const [event] = await fixture.happen("pty_s1", 1);
  for (let attempt = 1; attempt <= 12; attempt += 1) {
    const left = { event, status: attempt <= 10 ? "WAITING" : "PARKED", attempt_count: Math.min(attempt - 1, 10) };
    fits(t, await listDeliveries(fixture), [left]);
    await passTime(fixture);
    await steps.deliverDue();
  }
  t.strictSame(
    (await listAttempts(fixture)).map(({ attempt }) => attempt),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
  );
  t.strictSame(idsOf(receiver.received), Array<string>(10).fill(event!));

  const [waiting] = await fixture.happen("pty_s1", 1);
  const [parked] = await listDeliveries(fixture);
  fits(t, parked, { event, parked_at: /^20/, last_error: "HTTP 500" });
  await patch("disable_webhook", fixture);
  const { disabled_at } = await readWebhook(fixture);
  const other = { event: waiting, parked_at: /^20/, last_error: "disabled: they asked" };
  fits(t, await listDeliveries(fixture), [parked, other], "what was parked before keeps its time and its reason");
  await patch("disable_webhook", fixture);
  t.equal((await readWebhook(fixture)).disabled_at, disabled_at, "it has been disabled since the first time");

  await patch("enable_webhook", fixture);
  receiver.answer = take;
  fits(t, await patch("replay_parked", fixture), [{ replay_parked: 2 }]);
  const again = { status: "WAITING", attempt_count: 0, last_error: null, is_due: true };
  fits(t, await listDeliveries(fixture), [
    { event, ...again },
    { event: waiting, ...again },
  ]);
  await steps.deliverDue();
  t.strictSame(await listDeliveries(fixture), []);
  t.strictSame(idsOf(receiver.received.slice(10)), [event, waiting].sort());
  fits(t, (await listAttempts(fixture)).at(-1), { attempt: 1, http_status: 204 });
  t.strictSame(steps.outcomes, [...Array<string>(9).fill("failed"), "parked", "taken", "taken"]);
});

t.test(
  "a 410 disables one webhook: nothing is sent to it until an operator enables it, and nothing is lost",
  async (t) => {
    stopClock(t);
    const [gone, other] = [await startReceiver(t, status(410)), await startReceiver(t)];
    const { fixture, steps } = await start(t, [gone.url, other.url]);
    const events = await fixture.happen(["pty_s1", "pty_s2"], 10);
    const [mine, others] = [events.slice(0, 10), events.slice(10)];
    await steps.deliver(await findSubscriber(fixture, "pty_s1"));
    t.ok(gone.received.length <= 4, "at most the requests under way");
    t.strictSame(new Set(steps.outcomes), new Set(["gone"]));
    t.strictSame(
      (await listDeliveries(fixture)).map(({ party, event, status, last_error }) => [party, event, status, last_error]),
      [
        ...mine.map((event) => ["pty_s1", event, "PARKED", "HTTP 410"]),
        ...others.map((event) => ["pty_s2", event, "WAITING", null]),
      ],
    );
    const webhooks = [await readWebhook(fixture, "pty_s1"), await readWebhook(fixture, "pty_s2")];
    fits(t, webhooks, [{ disabled_at: /^20/ }, { disabled_at: null }]);

    await fixture.happen("pty_s1", 1);
    await patch("replay_parked", fixture);
    await steps.deliverDue();
    t.strictSame(idsOf(other.received), others.toSorted());
    gone.received.length = 0;
    gone.answer = take;
    await patch("enable_webhook", fixture);
    await steps.deliverDue();
    t.strictSame(idsOf(gone.received), mine.toSorted(), "an event of the time between has no delivery");
    const [later] = await fixture.happen("pty_s1", 1);
    await steps.deliverDue();
    t.equal(gone.received.at(-1)!.id, later);
  },
);

t.test("a new URL enables a webhook that a 410 has disabled, and gets the next events", async (t) => {
  const [gone, next] = [await startReceiver(t, status(410)), await startReceiver(t)];
  const { fixture, steps } = await start(t, [gone.url]);
  const events: string[] = [];
  for (const url of [gone.url, gone.url, next.url]) {
    await reapply(fixture, { url });
    events.push(...(await fixture.happen("pty_s1", 1)));
    await steps.deliverDue();
  }
  t.strictSame(
    [idsOf(gone.received), idsOf(next.received)],
    [[events[0]], [events[2]]],
    "the same URL leaves it disabled",
  );
});

t.test("what the old receiver answers after a change of the URL is only logged", async (t) => {
  const { fixture } = await start(t, ["http://127.0.0.1:1"]);
  const subscriber = await findSubscriber(fixture, "pty_s1");
  await fixture.happen("pty_s1", 2);
  const holder = randomUUID();
  const [first, second] = await claim(fixture, subscriber, holder);
  await recordFailure(fixture, subscriber, holder, { ...first, retry_after_seconds: 3_600 });

  await reapply(fixture, { url: "http://127.0.0.1:2" });
  await recordFailure(fixture, subscriber, holder, { ...second, is_gone: true, http_status: 410 });
  await recordFailure(fixture, subscriber, holder, { ...second, retry_after_seconds: 3_600 });

  const free = { disabled_at: null, paused_until: null, holder: null, worker: null, lease_until: null };
  t.strictSame(await readWebhook(fixture), { url: "http://127.0.0.1:2", ...free });
  const attempts = (await listDeliveries(fixture)).map(({ status, attempt_count }) => `${status} ${attempt_count}`);
  t.strictSame(attempts.sort(), ["WAITING 0", "WAITING 1"]);
});

t.test("a replay sends one event or a time range again, with what was accepted", async (t) => {
  const receiver = await startReceiver(t);
  const { fixture, steps } = await start(t, [receiver.url]);
  const { tenant } = fixture;
  const rounds: string[][] = [];
  for (const count of [2, 3, 2]) rounds.push(await fixture.happen("pty_s1", count));
  const [first, middle, last] = rounds as [string[], string[], string[]];
  await steps.deliverDue();
  const replayed = async (text: string, params: unknown[]) => {
    receiver.received.length = 0;
    await world.admin.rows(text, params);
    await steps.deliverDue();
    return idsOf(receiver.received);
  };
  const replayEvent = "select admin.replay_event($1, $2, 'lost')";
  t.strictSame(await replayed(replayEvent, [tenant, first[1]]), [first[1]]);
  const range = `select admin.replay_range($1, 'pty_s1',
    (select recorded_at from report.event where event = $2),
    (select recorded_at from report.event where event = $3), 'lost')`;
  const found = await replayed(range, [tenant, middle[0], last[0]]);
  t.strictSame(found, middle.toSorted(), "includes the start and excludes the end");

  await world.admin.rows(
    `select admin.void_coupon($1, (select coupon from report.coupon where tenant = $1 and status = 'ISSUED' limit 1),
       'not sequenced yet')`,
    [tenant],
  );
  const [waiting] = await world.owner.rows<{ event: string }>(
    "select rules.format_id('evt', event_id) as event from rules.event order by event_seq desc limit 1",
  );
  await t.rejects(world.admin.rows(replayEvent, [tenant, waiting!.event]), { message: /has no event/ });
});

t.test("a replaced secret signs for 24 h beside its successors, however often that happens", async (t) => {
  const receiver = await startReceiver(t);
  const { fixture, steps } = await start(t, [receiver.url]);
  const { tenant_id } = await findSubscriber(fixture, "pty_s1");
  const before = fixture.secrets.get("pty_s1")!;
  const [second, third, fourth] = [newWebhookSecret(), newWebhookSecret(), newWebhookSecret()];
  const rotate = (secret: string) => reapply(fixture, { url: receiver.url, secret });
  // As if the first rotation had been that long ago.
  const age = (interval: string) =>
    world.owner.rows(
      `update core.replaced_secret s
       set replaced_at = clock_timestamp() - $1::text::interval
       where s.tenant_id = $2
         and s.replaced_at = (select min(r.replaced_at) from core.replaced_secret r where r.tenant_id = $2)`,
      [interval, tenant_id],
    );
  const next = async () => {
    await fixture.happen("pty_s1", 1);
    await steps.deliverDue();
    return receiver.received.at(-1)!;
  };
  await rotate(second);
  await rotate(third);
  const all = await next();
  for (const secret of [before, second, third]) verify(secret, all);
  await age("23:30");
  await rotate(fourth);
  verify(before, await next());
  await age("24 hours");
  const later = await next();
  for (const secret of [second, third, fourth]) verify(secret, later);
  t.throws(() => verify(before, later));
  await rotate(before);
  const kept = await world.owner.rows("select from core.replaced_secret where tenant_id = $1", [tenant_id]);
  t.equal(kept.length, 3, "a secret that has ended is deleted with the next rotation");

  const latest = Array.from({ length: 12 }, newWebhookSecret);
  for (const secret of latest) await rotate(secret);
  const { headers, body } = await next();
  t.equal(findUndescribedEvent(headers, body), null, "docs/openapi describes it");
  const sentAt = new Date(Number(headers["webhook-timestamp"]) * 1_000);
  t.strictSame(
    String(headers["webhook-signature"]).split(" "),
    latest
      .slice(-10)
      .map((secret) => new Webhook(secret).sign(String(headers["webhook-id"]), sentAt, body))
      .reverse(),
    "ten secrets sign at most: the current one and those replaced last, the latest first",
  );
});

// As during a rotation of the master key, or with the wrong one.
const otherKeys: [problem: RegExp, keys: string][] = [
  [/key/, `2:${randomBytes(32).toString("base64")}`],
  [/does not open/, randomBytes(32).toString("base64")],
];
for (const [message, text] of otherKeys)
  t.test(`a worker whose keys do not open a secret (${message}) sends nothing, and that is no attempt`, async (t) => {
    const receiver = await startReceiver(t);
    const { fixture, steps } = await start(t, [receiver.url]);
    const [event] = await fixture.happen("pty_s1", 1);
    const stranger = { ...world, keys: parseMasterKeys(text) };
    const wrong = createWorkerSteps(t, stranger, { session: fixture.session });
    await t.rejects(wrong.deliver(await findSubscriber(fixture, "pty_s1")), { message });
    t.strictSame(await wrong.listDue(), [], "its lease is the pause before the next attempt");
    t.strictSame([receiver.received.length, (await listAttempts(fixture)).length], [0, 0]);
    fits(t, await listDeliveries(fixture), [{ event, status: "WAITING", attempt_count: 0, is_due: true }]);
    await endLeases(fixture);
    await steps.deliverDue();
    t.strictSame(idsOf(receiver.received), [event]);
  });

t.test("no log line and no row of a delivery shows a secret or a signature", async (t) => {
  const answers = [take, status(500), status(410), (response: ServerResponse) => response.destroy()];
  const receivers = await Promise.all(answers.map((answer) => startReceiver(t, answer)));
  const { fixture, steps } = await start(
    t,
    receivers.map(({ url }) => url),
  );
  // A secret that is sealed for another party does not open.
  const { tenant_id, party_id } = await findSubscriber(fixture, "pty_s4");
  await world.owner.rows(
    `update core.webhook w set sealed_secret = o.sealed_secret from core.webhook o
     where (w.tenant_id, w.party_id) = ($1, $2) and (o.tenant_id, o.party_id) = ($1, $2 - 1)`,
    [tenant_id, party_id],
  );
  const parties = [...fixture.secrets.keys()];
  await fixture.happen(parties, 1);
  const errors: unknown[] = [];
  for (const party of parties)
    await steps.deliver(await findSubscriber(fixture, party)).catch((error: unknown) => errors.push(error));
  t.match(inspect(errors), "does not open");
  t.equal(receivers.flatMap(({ received }) => received).length, 3);
  const rows = await world.owner.rows(
    `select a::text as row from core.delivery_attempt a
     union all select d::text from core.delivery d
     union all select s::text from core.stuck_work s`,
  );
  const written = inspect([steps.log, errors, rows], { depth: null, maxArrayLength: null, maxStringLength: null });
  t.notMatch(written, "whsec_");
  for (const secret of fixture.secrets.values()) t.notOk(written.includes(secret.slice("whsec_".length)));
  for (const { headers } of receivers.flatMap(({ received }) => received))
    t.notOk(written.includes(String(headers["webhook-signature"]).slice("v1,".length)));
});
