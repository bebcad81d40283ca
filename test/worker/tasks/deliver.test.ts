// Deliveries to webhooks: order, retries, pauses, and the secrets that sign after a rotation.
// Parked deliveries and replays are in deliver-parked.test.ts.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { Webhook } from "standardwebhooks";
import t from "tap";
import { newWebhookSecret } from "../../../src/crypto/webhook-signature.ts";
import { root } from "../../support/copy.ts";
import { findUndescribedEvent } from "../../support/described-answers.ts";
import { fits } from "../../support/fits.ts";
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

t.test(
  "an event is delivered once, signed, as the feed shows it; the delivery log keeps it and no delivery is left",
  async (t) => {
    const receiver = await startReceiver(t);
    const fixture = await subscribe(t, [`${receiver.url}/1`, `${receiver.url}/2`]);
    const events = await fixture.happen("pty_s1", 5);
    const others = await fixture.happen("pty_s2", 1);
    await startDeliverer(fixture, fixture.worker).drain();
    const mine = receiver.received.filter(({ path }) => path === "/1");
    t.strictSame(mine.map(({ id }) => id).sort(), [...events].sort());
    t.strictSame(
      receiver.received.filter(({ path }) => path === "/2").map(({ id }) => id),
      others,
    );
    const feed = await fixture.service.as("ak_pty_s1").get("/v1/events");
    const shown = new Map<string, unknown>(
      feed.json.events.map((event: { event_id: string }) => [event.event_id, event]),
    );
    for (const got of mine) t.strictSame(JSON.parse(got.body), shown.get(got.id));
    for (const got of mine) {
      verify(fixture.secrets.get("pty_s1")!, got);
      t.equal(findUndescribedEvent(got.headers, got.body), null, "docs/openapi describes it");
      t.throws(() => verify(fixture.secrets.get("pty_s2")!, got), "another subscriber's secret fails");
    }
    t.strictSame(await listDeliveries(fixture), []);
    const attempts = await listAttempts(fixture);
    fits(
      t,
      attempts.filter(({ party }) => party === "pty_s1"),
      [...events].sort().map((event) => ({ event, attempt: 1, http_status: 204, error: null })),
    );
    t.equal(attempts.length, 6);
    t.strictSame(await findBrokenInvariants(fixture.service.owner), []);
  },
);

t.test("due deliveries are claimed in the order of their events", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  const events = [...(await fixture.happen("pty_s1", 5)), ...(await fixture.happen("pty_s1", 5))];
  const subscriber = await findSubscriber(fixture, "pty_s1");
  const claim = "select external_id from jobs.claim_deliveries($1, $2, $3, $4, 7)";
  const claimed = await fixture.worker.rows<{ external_id: string }>(claim, [
    subscriber.tenant_id,
    subscriber.party_id,
    fixture.session.number,
    randomUUID(),
  ]);
  t.strictSame(
    claimed.map(({ external_id }) => external_id),
    events.slice(0, 7),
  );
});

t.test("anything but a 2xx is tried again after 4 to 6 seconds, even if Retry-After asks for less", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  const [deliverer, impatient] = [
    startDeliverer(fixture, fixture.worker),
    startDeliverer(fixture, fixture.worker, { timeoutMs: 200 }),
  ];
  const answers: [string, typeof take][] = [
    ["HTTP 300", status(300)],
    ["HTTP 301", status(301, { location: "http://10.0.0.1/" })],
    ["HTTP 404", status(404)],
    ["HTTP 500", status(500)],
    ["HTTP 503", status(503, { "retry-after": "1" })],
    ["no complete response within 0.2 s", hang],
    ["socket hang up", (response) => response.destroy()],
  ];
  for (const [error, answer] of answers) {
    receiver.answer = answer;
    const [event] = await fixture.happen("pty_s1", 1);
    await (answer === hang ? impatient : deliverer).drain();
    const deliveries = await listDeliveries(fixture);
    fits(t, deliveries, [{ event, status: "WAITING", attempt_count: 1, last_error: error }], error);
    t.ok(
      deliveries[0]!.pause_seconds >= 4 && deliveries[0]!.pause_seconds <= 6,
      `${error}: ${deliveries[0]!.pause_seconds} s`,
    );
    const [attempt] = (await listAttempts(fixture)).slice(-1);
    fits(
      t,
      attempt,
      error.startsWith("HTTP") ? { http_status: Number(error.slice(5)), error: null } : { http_status: null, error },
    );
    receiver.answer = take;
    await passTime(fixture);
    await deliverer.drain();
    t.strictSame(await listDeliveries(fixture), []);
  }
});

t.test("retries follow the documented schedule, each pause up to a fifth shorter or longer", async (t) => {
  const fixture = await subscribe(t, []);
  const rows = await fixture.service.owner.rows<{ n: number; shortest: number; longest: number }>(
    `select n, min(s)::float as shortest, max(s)::float as longest
     from generate_series(1, 9) n,
       lateral (
         select extract(epoch from rules.compute_retry_delay(n)) as s
         from generate_series(1, 2000) i
         where n > 0) d
     group by n
     order by n`,
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
    { ...(await fixture.service.owner.rows("select rules.compute_retry_delay(10) as pause"))[0] },
    { pause: null },
  );
});

t.test("Retry-After pauses all deliveries to the subscriber, until the pause is over", async (t) => {
  const receiver = await startReceiver(t, status(429, { "retry-after": "120" }));
  const fixture = await subscribe(t, [receiver.url]);
  const deliverer = startDeliverer(fixture, fixture.worker);
  const events = await fixture.happen("pty_s1", 12);
  await deliverer.drain();
  const tried = receiver.received.length;
  t.ok(tried >= 1 && tried <= 4, `${tried} requests were under way when the first response came`);
  for (const { id } of receiver.received) t.ok(events.slice(0, 4).includes(id), "one of the oldest events");
  const [{ seconds } = { seconds: 0 }] = await fixture.service.owner.rows<{ seconds: number }>(
    `select extract(epoch from h.paused_until - max(a.attempted_at))::float as seconds
     from report.webhook_health h, core.delivery_attempt a
     where h.health = 'paused'
     group by h.paused_until`,
  );
  t.equal(seconds, 120);
  for (const { attempt_count, pause_seconds } of await listDeliveries(fixture)) {
    if (attempt_count === 1) t.ok(pause_seconds >= 119.9 && pause_seconds <= 120.1, "later than the schedule");
  }
  await fixture.happen("pty_s1", 1);
  t.equal((await deliverer.listDue()).length, 0);
  await fixture.service.owner.rows("update core.webhook set paused_until = clock_timestamp()");
  const [webhook] = await fixture.service.owner.rows("select health from report.webhook_health");
  t.strictSame({ ...webhook }, { health: "failing" }, "the pause is over, and deliveries wait for their next attempt");
  receiver.answer = take;
  await passTime(fixture);
  await deliverer.drain();
  t.equal(receiver.received.length, tried + 13);
  t.strictSame(await listDeliveries(fixture), []);
});

t.test("a replaced secret signs for 24 h beside its successors, however often that happens", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  const deliverer = startDeliverer(fixture, fixture.worker);
  const before = fixture.secrets.get("pty_s1")!;
  const [second, third, fourth] = [newWebhookSecret(), newWebhookSecret(), newWebhookSecret()];
  const rotate = (secret: string) => {
    const webhook = { url: receiver.url, secret };
    const parties = [{ id: "pty_s1", name: "pty_s1", webhook }];
    return fixture.service.apply({ tenants: [{ id: tenant, name: "W", variant: "B", parties }] });
  };
  const { owner } = fixture.service;
  // As if the first rotation had been that long ago.
  const age = (interval: string) =>
    owner.rows(
      `update core.replaced_secret s
       set replaced_at = clock_timestamp() - $1::text::interval
       where s.replaced_at = (select min(r.replaced_at) from core.replaced_secret r)`,
      [interval],
    );
  const next = async () => {
    await fixture.happen("pty_s1", 1);
    await deliverer.drain();
    return receiver.received.at(-1)!;
  };
  await rotate(second);
  const both = await next();
  for (const secret of [before, second]) verify(secret, both);
  await rotate(third);
  const all = await next();
  for (const secret of [before, second, third]) verify(secret, all);
  await age("23:30");
  verify(before, await next());
  await rotate(fourth);
  verify(before, await next());
  await age("24 hours");
  const later = await next();
  for (const secret of [second, third, fourth]) verify(secret, later);
  t.throws(() => verify(before, later));
  await rotate(before);
  const [kept] = await owner.rows<{ count: number }>("select count(*)::int as count from core.replaced_secret");
  t.equal(kept!.count, 3, "a secret that has ended is deleted with the next rotation");
  const latest = Array.from({ length: 12 }, newWebhookSecret);
  for (const secret of latest) await rotate(secret);
  const { headers, body } = await next();
  const signatures = String(headers["webhook-signature"]);
  const [hook] = Object.values<any>(JSON.parse(readFileSync(path.join(root, "docs/openapi/b.json"), "utf8")).webhooks);
  const described = hook.post.parameters.find(({ name }: { name: string }) => name === "webhook-signature");
  t.match(signatures, new RegExp(described.schema.pattern), "as the API description says");
  const sentAt = new Date(Number(headers["webhook-timestamp"]) * 1_000);
  t.strictSame(
    signatures.split(" "),
    latest
      .slice(-10)
      .map((secret) => new Webhook(secret).sign(String(headers["webhook-id"]), sentAt, body))
      .reverse(),
    "ten secrets sign at most: the current one and those replaced last, the latest first",
  );
});
