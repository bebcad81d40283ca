// Test events: a subscriber tries its receiver out, and nothing else changes.
import t from "tap";
import { eventTypes } from "../../../src/common/event-types.ts";
import { fits } from "../../support/fits.ts";
import { status, take, verify } from "../../support/receiver.ts";
import { newRequestId } from "../../support/service.ts";
import { readState } from "../../support/state.ts";
import { readWebhook, sendTest, startOwners, type Owners } from "../../support/webhook-owners.ts";
import { waitUntil } from "../../support/wait-until.ts";

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

// Everything that a test event must not touch: all tables but those of its delivery.
const readRest = async ({ service }: Owners) => {
  const { test_delivery: _1, delivery_attempt: _2, webhook: _3, ...rest } = await readState(service.owner);
  return rest;
};

t.test("a test event of each type is signed and marked, and changes no feed, ledger or statement", async (t) => {
  const fixture = await startOwners(t);
  await fixture.happen("/b/s1", 2);
  await fixture.deliverer.drain();
  fixture.receiver.received.length = 0;
  const by = fixture.service.as("ak_b_s1");
  const [before, feed] = [await readRest(fixture), (await by.get("/v1/events")).text];
  const sent = new Map<string, string>();
  for (const type of eventTypes) sent.set(await sendTest(fixture, "ak_b_s1", type), type);
  await fixture.sequence();
  await fixture.deliverer.drain();

  t.equal(fixture.receiver.received.length, eventTypes.length);
  for (const received of fixture.receiver.received) {
    verify(fixture.owners.get("/b/s1")!.secret, received);
    t.strictSame([received.path, received.headers["webhook-test"]], ["/b/s1", "true"]);
    const body = JSON.parse(received.body);
    t.strictSame([received.id, body.event_type], [body.event_id, sent.get(body.event_id)]);
    fits(t, body.occurred_at, time);
    const { event_id, event_type, occurred_at: _, ...rest } = body;
    fits(t, rest, expectedOf(event_type, event_id), event_type);
    const ids = received.body.match(/\b(?!evt)[a-z]{3}_[0-9a-z]{26}/g) ?? [];
    for (const id of ids) t.equal(await countRows(fixture, id), 0, `${id} exists nowhere`);
  }
  t.strictSame(await readRest(fixture), before, "all other tables are as before");
  t.equal((await by.get("/v1/events")).text, feed);

  const { attempts, ...rest } = await readWebhook(fixture, "ak_b_s1");
  fits(t, rest, { status: "healthy", waiting: 0, parked: 0 });
  t.strictSame(
    attempts
      .slice(0, eventTypes.length)
      .map((one: any) => `${one.event_id} ${one.event_type} ${one.http_status}`)
      .sort(),
    [...sent].map(([event, type]) => `${event} ${type} 204`).sort(),
  );
  const reported = await fixture.service.owner.rows<{ line: string }>(
    `select concat_ws(' ', event, test_event, test_event_type) as line from report.delivery_attempt
     where test_event_type is not null or test_event is not null`,
  );
  t.strictSame(
    reported.map(({ line }) => line).sort(),
    [...sent].map(([event, type]) => `${event} ${type}`).sort(),
    "only report.delivery_attempt shows them",
  );
});

function expectedOf(type: string, eventId: string): object {
  if (type === "reconciliation.ready") return { business_date: "1970-01-01", distributor_party_id: /^pty_\w{26}$/ };
  if (!type.startsWith("coupon.")) return { batch_id: /^bat_\w{26}$/ };
  const redemption_id = {
    "coupon.redeemed": eventId.replace("evt", "red"),
    "coupon.reversed": /^red_\w{26}$/,
  }[type];
  return { coupon_id: /^cpn_\w{26}$/, redemption_id: redemption_id ?? null, recorded_at: time };
}

async function countRows({ service }: Owners, id: string): Promise<number> {
  const prefix = id.slice(0, 3);
  const [row] = await service.owner.rows<{ count: number }>(
    `select (select count(*) from core.coupon where coupon_id = rules.parse_id($2, $1))
          + (select count(*) from core.redemption where redemption_id = rules.parse_id($2, $1))
          + (select count(*) from core.batch where external_id = $1)
          + (select count(*) from core.party where external_id = $1) as count`,
    [id, prefix],
  );
  return Number(row!.count);
}

t.test("a real event is not marked as a test", async (t) => {
  const fixture = await startOwners(t);
  await fixture.happen("/b/s1", 1);
  await fixture.deliverer.drain();
  t.ok(fixture.receiver.received.length > 0);
  for (const { headers } of fixture.receiver.received) t.notOk("webhook-test" in headers);
});

t.test("a test is tried once: a failure is in the log, and nothing waits or is parked", async (t) => {
  const fixture = await startOwners(t);
  fixture.receiver.answer = status(500);
  const event = await sendTest(fixture, "ak_b_s1");
  await fixture.deliverer.drain();
  t.strictSame(fixture.receiver.received.length, 1);
  const { attempts, ...rest } = await readWebhook(fixture, "ak_b_s1");
  fits(t, rest, { status: "healthy", waiting: 0, parked: 0 });
  fits(t, attempts, [{ attempted_at: time }]);
  const { attempted_at: _, ...attempt } = attempts[0];
  t.strictSame(attempt, {
    event_id: event,
    event_type: "coupon.redeemed",
    http_status: 500,
    reason: "HTTP 500",
    next_attempt_at: null,
  });
  t.equal((await fixture.deliverer.listDue()).length, 0);
});

t.test(
  "the newer of two tests of a type is sent, so tests never pile up; other types and owners keep theirs",
  async (t) => {
    const fixture = await startOwners(t);
    await sendTest(fixture, "ak_b_s1");
    const kept = [await sendTest(fixture, "ak_b_s1", "coupon.voided"), await sendTest(fixture, "ak_b_s2")];
    kept.push(await sendTest(fixture, "ak_b2_s1"), await sendTest(fixture, "ak_b_s1"));
    await fixture.deliverer.drain();
    const sent = fixture.receiver.received.map(({ id, body }) => `${id} ${JSON.parse(body).event_id}`);
    t.strictSame(sent.sort(), kept.map((id) => `${id} ${id}`).sort());
  },
);

t.test("a 410 to a test disables its webhook; a disabled webhook returns 409, and nothing changes", async (t) => {
  const fixture = await startOwners(t);
  const [event] = await fixture.happen("/b/s1", 1);
  await fixture.deliverer.drain();
  const kept = await sendTest(fixture, "ak_b_s2");
  fixture.receiver.answer = (response, { path }) => response.writeHead(path === "/b/s1" ? 410 : 204).end();
  await sendTest(fixture, "ak_b_s1");
  await sendTest(fixture, "ak_b_s1", "coupon.voided");
  fixture.receiver.received.length = 0;
  await fixture.deliverer.drain();
  t.strictSame(
    fixture.receiver.received.filter(({ path }) => path === "/b/s2").map(({ id }) => id),
    [kept],
  );
  t.equal((await readWebhook(fixture, "ak_b_s1")).status, "disabled");
  const before = await readState(fixture.service.owner);
  const by = fixture.service.as("ak_b_s1");
  for (const [path, body] of [
    ["/v1/webhook/test", { event_type: "coupon.voided" }],
    ["/v1/webhook/replay", { event_id: event }],
    ["/v1/webhook/replay", { from: "2020-01-01T00:00:00Z", to: "2099-01-01T00:00:00Z" }],
  ] as const)
    fits(t, await by.post(path, { request_id: newRequestId(), ...body }), {
      status: 409,
      json: { code: "WEBHOOK_DISABLED", details: null },
    });
  const replay = { request_id: newRequestId(), event_id: "evt_none" };
  fits(t, await by.post("/v1/webhook/replay", replay), { status: 404, json: { details: { resource: "event" } } });
  t.strictSame(await readState(fixture.service.owner), before);
});

t.test("a test that is replaced while it is sent is logged as the test that it was", async (t) => {
  const fixture = await startOwners(t);
  let hangUp = (): void => {};
  fixture.receiver.answer = (response) => void (hangUp = () => response.destroy());
  const first = await sendTest(fixture, "ak_b_s1");
  const draining = fixture.deliverer.drain();
  await waitUntil("the first test to arrive", () => fixture.receiver.received.length === 1, { everyMs: 5 });
  const second = await sendTest(fixture, "ak_b_s1");
  fixture.receiver.answer = take;
  hangUp();
  await draining;
  await fixture.deliverer.drain();
  t.strictSame(
    (await readWebhook(fixture, "ak_b_s1")).attempts.map((one: any) => [one.event_id, one.event_type, one.http_status]),
    [
      [second, "coupon.redeemed", 204],
      [first, "coupon.redeemed", null],
    ],
  );
});

t.test("a webhook that is disabled drops the tests that wait for it, and no others", async (t) => {
  const fixture = await startOwners(t);
  for (const key of ["ak_b_s1", "ak_b_s2", "ak_b2_s1"]) await sendTest(fixture, key);
  await fixture.service.admin.rows("select admin.disable_webhook('ten_b', 'pty_s1', 'they asked')");
  await fixture.service.admin.rows("select admin.enable_webhook('ten_b', 'pty_s1', 'they are back')");
  await fixture.deliverer.drain();
  t.strictSame(fixture.receiver.received.map(({ path }) => path).sort(), ["/b/s2", "/b2/s1"]);
});
