// Deliveries to webhooks: what is sent, when it is sent again, what parks it, and which secrets sign. Below: who serves
// a subscriber and for how long, which are leases, slices, the limit of concurrent requests, and the stop of a worker.
import { newRequestId } from "../../support/request-id.ts";
import { randomBytes, randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import { Webhook } from "standardwebhooks";
import t, { type Test } from "tap";
import { createLog } from "../../../src/common/log.ts";
import { readConfig } from "../../../src/config/config.ts";
import { parseMasterKeys } from "../../../src/crypto/keys.ts";
import { newWebhookSecret } from "../../../src/crypto/webhook-signature.ts";
import type { Database } from "../../../src/database/types.ts";
import { maxSubscribersAtOnce } from "../../../src/worker/tasks/deliver.ts";
import { work } from "../../../src/work.ts";
import { postOk } from "../../support/client.ts";
import { findUndescribedEvent } from "../../support/described-answers.ts";
import { fits } from "../../support/fits.ts";
import { passWhileWaiting } from "../../support/race.ts";
import { hang, startReceiver, status, take, verify, type Received, type Receiver } from "../../support/receiver.ts";
import { recordDelays } from "../../support/record-delays.ts";
import { scenario, type Scenario } from "../../support/scenario.ts";
import { stopClock } from "../../support/stop-clock.ts";
import {
  claim,
  findSubscriber,
  listAttempts,
  listDeliveries,
  openWorker,
  passTime,
  readWebhook,
  recordFailure,
  subscribe,
  type Subscribed,
} from "../../support/subscribers.ts";
import { waitFor, waitUntil } from "../../support/wait-until.ts";
import { createWorkerSteps, loopbackOnly, type StepOptions } from "../../support/worker-steps.ts";

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
  const late = "no complete response within 0.2 s";
  const rows: [error: string, reason: string, answer: typeof take, options?: StepOptions][] = [
    ["HTTP 300", "HTTP 300", status(300)],
    ["HTTP 301", "HTTP 301", status(301, { location: "http://10.0.0.1/" })],
    ["HTTP 404", "HTTP 404", status(404)],
    ["HTTP 500", "HTTP 500", status(500)],
    ["HTTP 503", "HTTP 503", status(503, { "retry-after": "1" })],
    [late, late, hang, { timeoutMs: 200 }],
    ["socket hang up", "the connection was closed", (response) => response.destroy()],
    [
      "refused: 127.0.0.1 is not a public address",
      "refused: the address of the receiver is not public",
      take,
      { allow: [] },
    ],
  ];
  for (const [error, reason, answer, options] of rows) {
    receiver.answer = answer;
    const [event] = await fixture.happen("pty_s1", 1);
    await createWorkerSteps(t, world, { session: fixture.session, ...options }).deliverDue();
    const deliveries = await listDeliveries(fixture);
    fits(t, deliveries, [{ event, status: "WAITING", attempt_count: 1, last_error: error }], error);
    const { pause_seconds } = deliveries[0]!;
    t.ok(pause_seconds >= 4 && pause_seconds <= 6, `${error}: ${pause_seconds} s`);
    const httpStatus = error.startsWith("HTTP") ? Number(error.slice(5)) : null;
    const attempt = { event, http_status: httpStatus, error: httpStatus === null ? error : null };
    fits(t, (await listAttempts(fixture)).at(-1), attempt, "the operator sees the error");
    const { attempts } = (await fixture.as("pty_s1").get("/v1/webhook")).json.webhook;
    fits(t, attempts[0], { event_id: event, reason }, "the subscriber sees its kind");
    receiver.answer = take;
    await passTime(fixture);
    await steps.deliverDue();
    t.strictSame(await listDeliveries(fixture), []);
  }
  t.equal(receiver.connections, 2 * rows.length - 1, "a refused address gets no connection");
});

t.test("retries follow the documented schedule, each pause up to a fifth shorter or longer", async (t) => {
  const rows = await world.owner.rows<{ shortest: number | null; longest: number | null }>(
    `select min(d.seconds) as shortest, max(d.seconds) as longest
     from (
       select n, extract(epoch from rules.compute_retry_delay(n))::float as seconds
       from generate_series(1, 10) n, generate_series(1, 2000)) d
     group by d.n
     order by d.n`,
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

t.test("Retry-After pauses all deliveries, until the time is over or the webhook is enabled", async (t) => {
  const refuse = status(429, { "retry-after": "120" });
  const receiver = await startReceiver(t, refuse);
  const { fixture, steps } = await start(t, [receiver.url]);
  await fixture.happen("pty_s1", 12);
  await steps.deliverDue();
  const tried = receiver.received.length;
  t.ok(tried >= 1 && tried <= 4, `${tried} requests were under way when the first response came`);
  for (const { attempt_count, pause_seconds } of await listDeliveries(fixture)) {
    if (attempt_count === 1) t.ok(pause_seconds >= 119.9 && pause_seconds <= 120.1, "later than the schedule");
  }
  await fixture.happen("pty_s1", 1);
  t.strictSame(await steps.listDue(), []);
  await passTime(fixture);
  await steps.deliverDue();
  t.ok(receiver.received.length > tried, "the pause is over");

  receiver.received.length = 0;
  receiver.answer = take;
  for (const name of ["disable_webhook", "enable_webhook", "replay_parked"]) await patch(name, fixture);
  await steps.deliverDue();
  t.equal(receiver.received.length, 13);
  t.strictSame(await listDeliveries(fixture), []);
});

t.test("the oldest events are claimed first, and the longest Retry-After of a round is the pause", async (t) => {
  const { fixture, subscriber } = await start(t, ["http://127.0.0.1:9"]);
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
  await patch("disable_webhook", fixture);
  t.equal((await readWebhook(fixture)).disabled_at, disabled_at, "it has been disabled since the first time");
  const other = { event: waiting, parked_at: /^20/, last_error: "disabled: they asked" };
  fits(t, await listDeliveries(fixture), [parked, other], "what was parked before keeps its time and its reason");

  receiver.answer = take;
  for (const name of ["enable_webhook", "replay_parked"]) await patch(name, fixture);
  const again = { status: "WAITING", attempt_count: 0, last_error: null, is_due: true };
  fits(t, await listDeliveries(fixture), [again, again]);
  await steps.deliverDue();
  t.strictSame(await listDeliveries(fixture), []);
  t.strictSame(idsOf(receiver.received.slice(10)), [event, waiting].sort());
  t.strictSame(steps.outcomes, [...Array<string>(9).fill("failed"), "parked", "taken", "taken"]);
});

t.test(
  "a 410 disables one webhook: nothing is sent to it until an operator enables it, and nothing is lost",
  async (t) => {
    stopClock(t);
    const [gone, other] = [await startReceiver(t, status(410)), await startReceiver(t)];
    const { fixture, steps, subscriber } = await start(t, [gone.url, other.url]);
    const events = await fixture.happen(["pty_s1", "pty_s2"], 10);
    const [mine, others] = [events.slice(0, 10), events.slice(10)];
    await steps.deliver(subscriber);
    t.ok(gone.received.length <= 4, "at most the requests under way");
    t.strictSame(new Set(steps.outcomes), new Set(["gone"]));
    t.strictSame(
      (await listDeliveries(fixture)).map(({ party, event, status, last_error }) => [party, event, status, last_error]),
      [
        ...mine.map((event) => ["pty_s1", event, "PARKED", "HTTP 410"]),
        ...others.map((event) => ["pty_s2", event, "WAITING", null]),
      ],
    );

    await fixture.happen("pty_s1", 1);
    await patch("replay_parked", fixture);
    await steps.deliverDue();
    t.strictSame(idsOf(other.received), others.toSorted());
    gone.received.length = 0;
    gone.answer = take;
    await patch("enable_webhook", fixture);
    await steps.deliverDue();
    t.strictSame(idsOf(gone.received), mine.toSorted(), "an event of the time between has no delivery");
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
  const { fixture, subscriber } = await start(t, ["http://127.0.0.1:1"]);
  await fixture.happen("pty_s1", 2);
  const holder = randomUUID();
  const [first, second] = await claim(fixture, subscriber, holder);
  await recordFailure(fixture, subscriber, holder, { ...first, retry_after_seconds: 3_600 });

  await reapply(fixture, { url: "http://127.0.0.1:2" });
  await recordFailure(fixture, subscriber, holder, { ...second, is_gone: true, http_status: 410 });
  await recordFailure(fixture, subscriber, holder, { ...second, retry_after_seconds: 3_600 });

  const free = { disabled_at: null, paused_until: null, holder: null, worker: null, lease_until: null };
  t.strictSame(await readWebhook(fixture), { url: "http://127.0.0.1:2/", ...free });
  const attempts = (await listDeliveries(fixture)).map(({ status, attempt_count }) => `${status} ${attempt_count}`);
  t.strictSame(attempts.sort(), ["WAITING 0", "WAITING 1"]);
});

t.test("a replaced secret signs for 24 h beside its successors, however often that happens", async (t) => {
  const receiver = await startReceiver(t);
  const { fixture, steps, subscriber } = await start(t, [receiver.url]);
  const { tenant_id } = subscriber;
  const before = fixture.secrets.get("pty_s1")!;
  const [second, third] = [newWebhookSecret(), newWebhookSecret()];
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
  await age("23:30");
  const all = await next();
  for (const secret of [before, second, third]) verify(secret, all);
  await age("24 hours");
  const later = await next();
  for (const secret of [second, third]) verify(secret, later);
  t.throws(() => verify(before, later));
  await rotate(before);
  const kept = await world.owner.rows("select from core.replaced_secret where tenant_id = $1", [tenant_id]);
  t.equal(kept.length, 2, "a secret that has ended is deleted with the next rotation");

  const latest = Array.from({ length: 12 }, newWebhookSecret);
  for (const secret of latest) await rotate(secret);
  const { headers, body } = await next();
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

t.test("a worker whose keys do not open a secret sends nothing, and that is no attempt", async (t) => {
  const receiver = await startReceiver(t);
  const { fixture, steps, subscriber } = await start(t, [receiver.url]);
  const [event] = await fixture.happen("pty_s1", 1);
  // As during a rotation of the master key, and with the wrong one.
  const random = randomBytes(32).toString("base64");
  for (const [text, message] of [
    [`2:${random}`, /key/],
    [random, /does not open/],
  ] as const) {
    const stranger = { ...world, keys: parseMasterKeys(text) };
    const wrong = createWorkerSteps(t, stranger, { session: fixture.session });
    const error = await wrong.deliver(subscriber).catch((reason: unknown) => reason);
    fits(t, error, { message });
    t.notMatch(inspect(error), "whsec_");
    t.strictSame(await wrong.listDue(), [], "its lease is the pause before the next attempt");
    await world.owner.rows("update core.webhook set lease_until = clock_timestamp() where holder is not null");
  }
  t.strictSame([receiver.received, await listAttempts(fixture)], [[], []]);
  fits(t, await listDeliveries(fixture), [{ event, status: "WAITING", attempt_count: 0, is_due: true }]);
  await steps.deliverDue();
  t.strictSame(idsOf(receiver.received), [event]);
});

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
  let [open, most] = [0, 0];
  const receiver = await startReceiver(t, async (response) => {
    most = Math.max(most, (open += 1));
    // Slow enough that requests of both workers would overlap.
    await sleep(4);
    open -= 1;
    response.writeHead(200).end("ok");
  });
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
  t.equal(most, 4);
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

t.test("a delivery that was parked during its attempt stays parked", async (t) => {
  const { fixture, subscriber } = await start(t, ["http://127.0.0.1:9"]);
  await fixture.happen("pty_s1", 1);
  const holder = randomUUID();
  const [claimed] = await claim(fixture, subscriber, holder);
  await world.admin.rows("select admin.disable_webhook($1, 'pty_s1', 'test')", [fixture.tenant]);
  await recordFailure(fixture, subscriber, holder, claimed!);
  fits(t, await listDeliveries(fixture), [{ status: "PARKED", attempt_count: 0, last_error: "disabled: test" }]);
});

t.test("a replay that is asked for during an attempt is sent, whatever that attempt brings", async (t) => {
  const { admin } = world;
  const end = "2099-01-01T00:00:00Z";
  const timeOf = async (event: string): Promise<string> => {
    const read = "select rules.format_time(recorded_at) as at from report.event where event = $1";
    return (await world.owner.rows<{ at: string }>(read, [event]))[0]!.at;
  };
  const replay = ({ as }: Subscribed, body: object) =>
    postOk(as("pty_s1"), "/v1/webhook/replay", { request_id: newRequestId(), ...body });
  const replays: Record<string, (fixture: Subscribed, event: string) => Promise<unknown>> = {
    "of an event": (fixture, event) => replay(fixture, { event_id: event }),
    "of a range": async (fixture, event) => replay(fixture, { from: await timeOf(event), to: end }),
    "of an event, by the operator": ({ tenant }, event) =>
      admin.rows("select admin.replay_event($1, $2, 'they asked')", [tenant, event]),
    "of a range, by the operator": async ({ tenant }, event) =>
      admin.rows("select admin.replay_range($1, 'pty_s1', $2, $3, 'they asked')", [tenant, await timeOf(event), end]),
    "of what is parked": async (fixture) => {
      for (const name of ["disable_webhook", "enable_webhook", "replay_parked"]) await patch(name, fixture);
    },
  };
  const taken = { http_status: 204, is_taken: true };
  const failed = { http_status: 500 };
  for (const [name, ask] of Object.entries(replays)) {
    for (const outcome of [taken, failed]) {
      const { fixture, subscriber } = await start(t, ["http://127.0.0.1:9"], { supply: 1 });
      const [event] = await fixture.happen("pty_s1", 1);
      const holder = randomUUID();
      const [claimed] = await claim(fixture, subscriber, holder);
      await ask(fixture, event!);
      await recordFailure(fixture, subscriber, holder, { ...claimed, ...outcome });
      const again = { event, status: "WAITING", attempt_count: 0, last_error: null, is_due: true };
      fits(t, await listDeliveries(fixture), [again], name);

      const next = name === "of what is parked" ? randomUUID() : holder;
      const [replayed] = await claim(fixture, subscriber, next);
      await recordFailure(fixture, subscriber, randomUUID(), { ...claimed, ...taken });
      fits(t, await listDeliveries(fixture), [again], `${name}: another worker sent it before, and records it late`);
      await recordFailure(fixture, subscriber, next, { ...replayed, ...taken });
      t.strictSame(await listDeliveries(fixture), [], name);
    }
  }
});

t.test("what an attempt from before enable_webhook brings does not disable or pause it again", async (t) => {
  const { fixture, subscriber } = await start(t, ["http://127.0.0.1:9"]);
  await fixture.happen("pty_s1", 1);
  const holder = randomUUID();
  const [claimed] = await claim(fixture, subscriber, holder);
  for (const name of ["disable_webhook", "enable_webhook"]) await patch(name, fixture);
  for (const answer of [{ is_gone: true, http_status: 410 }, { retry_after_seconds: 3_600 }])
    await recordFailure(fixture, subscriber, holder, { ...claimed, ...answer });
  fits(t, await readWebhook(fixture), { disabled_at: null, paused_until: null });
});

t.test("subscribers served longest ago come first", async (t) => {
  stopClock(t);
  const receiver = await startReceiver(t);
  const { fixture, steps } = await start(
    t,
    ["/1", "/2", "/3"].map((path) => receiver.url + path),
  );
  for (const order of [
    ["pty_s2", "pty_s1", "pty_s3"],
    ["pty_s3", "pty_s1", "pty_s2"],
  ]) {
    for (const party of order) {
      await fixture.happen(party, 1);
      await steps.deliverDue();
    }
    await fixture.happen(order, 1);
    const expected = await Promise.all(order.map((party) => findSubscriber(fixture, party)));
    // The table has them in another order.
    for (const { party_id } of expected.toReversed())
      await world.owner.rows("update core.webhook set url = url where party_id = $1", [party_id]);
    t.strictSame(await steps.listDue(), expected);
    const two = await world.worker.rows("select tenant_id, party_id from jobs.list_due_webhooks(2)");
    fits(t, [...two], expected.slice(0, 2));
    for (const subscriber of expected) await steps.deliver(subscriber);
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
