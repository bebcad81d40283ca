// What subscribers see of their webhook and have sent again.
import t, { type Test } from "tap";
import { eventTypes } from "../../../src/common/event-types.ts";
import { openSession } from "../../../src/database/connect.ts";
import { sendPatiently } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import { status } from "../../support/receiver.ts";
import { newRequestId } from "../../support/service.ts";
import { readState } from "../../support/state.ts";
import { readWebhook, startOwners, type Owners } from "../../support/webhook-owners.ts";
import { untilBlocked } from "../../support/race.ts";

const testPath = "/v1/webhook/test";
const replayPath = "/v1/webhook/replay";
t.test("a repeated request gets the same answer and sends nothing again", async (t) => {
  const fixture = await startOwners(t);
  const [event] = await fixture.happen("/b/s1", 1);
  await fixture.deliverer.drain();
  const by = fixture.service.as("ak_b_s1");
  for (const [path, body] of [
    [testPath, { request_id: newRequestId(), event_type: "coupon.voided" }],
    [replayPath, { request_id: newRequestId(), event_id: event }],
    [replayPath, { request_id: newRequestId(), from: "2020-01-01T00:00:00Z", to: "2099-01-01T00:00:00Z" }],
  ] as const) {
    const first = await by.post(path, body);
    t.equal(first.status, 200, first.text);
    await fixture.deliverer.drain();
    fixture.receiver.received.length = 0;
    const again = await by.post(path, body);
    t.strictSame([again.status, again.text, again.headers["idempotent-replayed"]], [200, first.text, "true"]);
    await fixture.deliverer.drain();
    t.equal(fixture.receiver.received.length, 0);
  }
  const spelled = { request_id: newRequestId(), from: "2020-01-01T00:00:00Z", to: "2020-01-02T00:00:00Z" };
  const first = await by.post(replayPath, spelled);
  const again = await by.post(replayPath, { ...spelled, from: "2020-01-01T02:00:00.000+02:00" });
  t.strictSame([again.status, again.text], [200, first.text], "two spellings of a moment are equal");
});

t.test("get_webhook: waiting, parked, the reason and the time of the next attempt, newest first", async (t) => {
  const fixture = await startOwners(t);
  await fixture.deliverer.drain();
  const { owner } = fixture.service;
  fixture.receiver.answer = status(500);
  const events = await fixture.happen("/b/s1", 1);
  await fixture.deliverer.drain();
  const failing = await readWebhook(fixture, "ak_b_s1");
  fits(t, failing, { status: "failing", waiting: 3, parked: 0 });
  t.strictSame(
    failing.attempts.map((one: any) => Date.parse(one.attempted_at)),
    failing.attempts.map((one: any) => Date.parse(one.attempted_at)).toSorted((a: number, b: number) => b - a),
  );
  const find = (webhook: any) => webhook.attempts.filter((one: any) => one.event_id === events[0]);
  const dueAt = async () => {
    const [row] = await owner.rows<{ at: string }>(
      `select rules.format_time(next_attempt_at) as at from core.delivery where event_id = rules.parse_id('evt', $1)`,
      [events[0]],
    );
    return row!.at;
  };
  fits(t, find(failing), [{ http_status: 500, reason: "HTTP 500", next_attempt_at: await dueAt() }]);

  // The receiver hangs up on the second attempt of this event, and the other two are parked.
  await owner.rows(
    `update core.delivery set next_attempt_at = clock_timestamp(),
       parked_at = case when event_id <> rules.parse_id('evt', $1) then clock_timestamp() end`,
    [events[0]],
  );
  fixture.receiver.answer = (response) => response.destroy();
  await fixture.deliverer.drain();
  const later = await readWebhook(fixture, "ak_b_s1");
  fits(t, later, { status: "failing", waiting: 1, parked: 2 });
  fits(t, find(later), [
    { http_status: null, reason: "socket hang up", next_attempt_at: await dueAt() },
    { http_status: 500, reason: "HTTP 500", next_attempt_at: null },
  ]);
  t.strictSame(find(later)[0], later.attempts[0]);
  t.strictSame(
    later.attempts.filter((one: any) => one.event_id !== events[0]).map((one: any) => one.next_attempt_at),
    [null, null],
    "a parked event is not sent again",
  );

  await owner.rows("update core.webhook set paused_until = '2020-01-01'");
  const resumed = await readWebhook(fixture, "ak_b_s1");
  t.equal(resumed.status, "failing", "a pause that is over counts no more");
  t.equal(find(resumed)[0].next_attempt_at, await dueAt());
  await owner.rows("update core.webhook set paused_until = '2099-01-01'");
  const paused = await readWebhook(fixture, "ak_b_s1");
  fits(t, paused, { status: "paused" });
  t.equal(find(paused)[0].next_attempt_at, "2099-01-01T00:00:00.000Z");
  const { waiting, parked, attempts } = await readWebhook(fixture, "ak_b_s2");
  t.strictSame({ waiting, parked, attempts }, { waiting: 0, parked: 0, attempts: [] });
  await fixture.service.admin.rows("select admin.disable_webhook('ten_b', 'pty_s1', 'they asked')");
  t.equal((await readWebhook(fixture, "ak_b_s1")).status, "disabled", "whether it is paused or not");
});

t.test("get_webhook gives a reason only for attempts that were not answered 2xx", async (t) => {
  const fixture = await startOwners(t);
  for (const code of [200, 204, 299, 300]) {
    fixture.receiver.answer = status(code);
    await fixture.happen("/b/s1", 1);
    await fixture.deliverer.drain();
  }
  const { attempts } = await readWebhook(fixture, "ak_b_s1");
  const reasons = attempts.map((one: any) => [one.http_status, one.reason]);
  t.strictSame(Object.fromEntries(reasons), { 200: null, 204: null, 299: null, 300: "HTTP 300" });
});

t.test("get_webhook has the last 100 attempts and no secret", async (t) => {
  const fixture = await startOwners(t);
  const events = await fixture.happen("/b/s1", 99);
  await fixture.deliverer.drain();
  const { text, json } = await fixture.service.as("ak_b_s1").get("/v1/webhook");
  t.equal(fixture.receiver.received.length, 101);
  t.equal(json.webhook.attempts.length, 100);
  const shown = new Set(json.webhook.attempts.map((one: any) => one.event_id));
  t.strictSame(
    events.filter((event) => !shown.has(event)),
    [],
    "the oldest, of the batch, is left out",
  );
  t.notMatch(text, /whsec|secret/);
  t.notMatch(text, fixture.owners.get("/b/s1")!.secret.slice(6));
});

t.test("what replay and test refuse", async (t) => {
  const fixture = await startOwners(t);
  const by = fixture.service.as("ak_b_s1");
  const before = await readState(fixture.service.owner);
  const [from, to] = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"];
  const rows: [object, string, string][] = [
    [{}, "event_id", "is required, unless from and to are sent"],
    [{ event_id: "evt_1", from }, "from", "must not be sent with event_id"],
    [{ event_id: "evt_1", to }, "to", "must not be sent with event_id"],
    [{ from }, "to", "is required: from and to belong together"],
    [{ to }, "from", "is required: from and to belong together"],
    [{ from: to, to: from }, "to", "must be later than from"],
    [{ from, to: from }, "to", "must be later than from"],
    [
      { from: "2026-01-01T00:00:00", to },
      "from",
      "must be an ISO 8601 timestamp with a zone, such as 2026-01-31T00:00:00Z",
    ],
    [{ from: "0000-01-01T00:00:00Z", to }, "from", "must be after 1970"],
    [{ from, to: "9999-12-31T23:59:59-12:00" }, "to", "must be after 1970"],
  ];
  for (const [body, path, message] of rows) {
    const { status, json } = await by.post(replayPath, { request_id: newRequestId(), ...body });
    t.strictSame([status, json.details?.issues], [400, [{ path, message }]], JSON.stringify(body));
  }
  const { json } = await by.post(testPath, { request_id: newRequestId(), event_type: "coupon.minted" });
  t.strictSame(json.details.issues, [{ path: "event_type", message: `must be one of ${eventTypes.join(", ")}` }]);
  t.strictSame(await readState(fixture.service.owner), before);
});

t.test("an event is replayed, alone or in a range, as soon as the sequencer has processed it", async (t) => {
  const fixture = await startOwners(t);
  const by = fixture.service.as("ak_b_s1");
  await fixture.service.makeBatch(by, "tpl_s1", 1);
  const events = await fixture.service.owner.rows<{ event: string }>("select event from report.event");
  t.equal(events.length, 2);
  const replays = async () => {
    const range = { from: "2020-01-01T00:00:00Z", to: "2099-01-01T00:00:00Z" };
    const outcomes = [];
    for (const body of [{ event_id: events[0]!.event }, { event_id: events[1]!.event }, range]) {
      const { status, json } = await by.post(replayPath, { request_id: newRequestId(), ...body });
      outcomes.push(`${status} ${json.replayed ?? json.details.resource}`);
    }
    return outcomes;
  };
  t.strictSame(await replays(), ["404 event", "404 event", "200 0"]);
  await fixture.sequence();
  t.strictSame(await replays(), ["200 1", "200 1", "200 2"]);
});

t.test("a replay or a test that meets a worker waits for it, and then runs", async (t) => {
  const fixture = await startOwners(t);
  const [event] = await fixture.happen("/b/s1", 1);
  await fixture.deliverer.drain();
  for (const [path, body] of [
    [testPath, { event_type: "coupon.voided" }],
    [replayPath, { event_id: event }],
  ] as const) {
    const release = await holdWebhook(t, fixture);
    const by = fixture.service.as("ak_b_s1");
    const answer = sendPatiently(() => by.post(path, { request_id: newRequestId(), ...body }));
    await untilBlocked(fixture.service, 1);
    await release();
    t.equal((await answer).status, 200, path);
  }
});

async function holdWebhook(t: Test, { service }: Owners): Promise<() => Promise<void>> {
  const session = openSession(service.address, { name: "coupon test", role: "coupon_owner" });
  t.teardown(() => session.end());
  await session.run("begin");
  await session.rows("select from core.webhook w for no key update");
  return () => session.run("commit");
}
