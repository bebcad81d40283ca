// What subscribers see of their webhook, have sent again, and try out with test events.
import t from "tap";
import { eventTypes } from "../../../src/formats/event-types.ts";
import { isReplay, sendPatiently } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import { untilBlocked } from "../../support/race.ts";
import { status, take, verify } from "../../support/receiver.ts";
import { newRequestId } from "../../support/request-id.ts";
import { readState } from "../../support/state.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { readWebhook, sendTest, startOwners } from "../../support/webhook-owners.ts";

const testPath = "/v1/webhook/test";
const replayPath = "/v1/webhook/replay";
const always = { from: "2020-01-01T00:00:00Z", to: "2099-01-01T00:00:00Z" };
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const fixture = await startOwners(t);
const { service, receiver, deliverer, owners, sequence, happen } = fixture;
const psql = await service.openPsql({ triggers: false });

// Events of earlier tests stay in the feeds, but nothing of their deliveries.
t.beforeEach(async () => {
  await sequence();
  await psql.run(
    `delete from core.delivery; delete from core.delivery_attempt; delete from core.test_delivery;
     update core.webhook set disabled_at = null, paused_until = null`,
  );
  receiver.answer = take;
  receiver.received.length = 0;
});

const by = (key: string) => service.as(key);
const post = (key: string, path: string, body: object) => by(key).post(path, { request_id: newRequestId(), ...body });
const patch = (call: string) => service.admin.rows(`select admin.${call}`);

// Everything that a test event must not touch: all tables but those of its delivery.
async function readRest() {
  const { test_delivery: _1, delivery_attempt: _2, webhook: _3, ...rest } = await readState(service.owner);
  return rest;
}

function expectedOf(type: string, eventId: string): object {
  if (type === "reconciliation.ready") return { business_date: "1970-01-01", distributor_party_id: /^pty_\w{26}$/ };
  if (!type.startsWith("coupon.")) return { batch_id: /^bat_\w{26}$/ };
  const redemptions = { "coupon.redeemed": eventId.replace("evt", "red"), "coupon.reversed": /^red_\w{26}$/ };
  const redemption_id = redemptions[type as keyof typeof redemptions] ?? null;
  return { coupon_id: /^cpn_\w{26}$/, redemption_id, recorded_at: time };
}

t.test("A test event of each type is signed and marked, and changes no feed, ledger or statement", async (t) => {
  await happen("/b/s1", 1);
  await deliverer.drain();
  t.notOk("webhook-test" in receiver.received[0]!.headers, "a real event is not marked");
  receiver.received.length = 0;
  const [before, feed] = [await readRest(), (await by("ak_b_s1").get("/v1/events")).text];
  const sent = new Map<string, string>();
  for (const type of eventTypes) sent.set(await sendTest(fixture, "ak_b_s1", type), type);
  await sequence();
  await deliverer.drain();

  t.equal(receiver.received.length, eventTypes.length);
  for (const received of receiver.received) {
    verify(owners.get("/b/s1")!.secret, received);
    t.strictSame([received.path, received.headers["webhook-test"]], ["/b/s1", "true"]);
    const { event_id, event_type, occurred_at, ...rest } = JSON.parse(received.body);
    t.strictSame([received.id, event_type], [event_id, sent.get(event_id)]);
    fits(t, { occurred_at, ...rest }, { occurred_at: time, ...expectedOf(event_type, event_id) }, event_type);
  }
  t.strictSame(await readRest(), before, "all other tables are as before");
  t.equal((await by("ak_b_s1").get("/v1/events")).text, feed);
  const reported = await service.owner.rows<{ event: string; type: string }>(
    "select test_event as event, test_event_type as type from report.delivery_attempt where test_event is not null",
  );
  t.strictSame(new Map(reported.map(({ event, type }) => [event, type])), sent);
});

t.test("A test is tried once: a failure is in the log, and nothing waits or is parked", async (t) => {
  receiver.answer = status(500);
  const event = await sendTest(fixture, "ak_b_s1");
  await deliverer.drain();
  t.equal(receiver.received.length, 1);
  const failed = { event_id: event, event_type: "coupon.redeemed", http_status: 500, reason: "HTTP 500" };
  const attempts = [{ ...failed, attempted_at: time, next_attempt_at: null }];
  fits(t, await readWebhook(fixture, "ak_b_s1"), { status: "healthy", waiting: 0, parked: 0, attempts });
  t.equal((await deliverer.listDue()).length, 0);
});

t.test("The newer of two tests of a type is sent; other types and owners keep theirs", async (t) => {
  await sendTest(fixture, "ak_b_s1");
  const kept = [await sendTest(fixture, "ak_b_s1", "coupon.voided"), await sendTest(fixture, "ak_b_s2")];
  kept.push(await sendTest(fixture, "ak_b2_s1"), await sendTest(fixture, "ak_b_s1"));
  await deliverer.drain();
  const sent = receiver.received.map(({ id, body }) => [id, JSON.parse(body).event_id]);
  t.strictSame(sent.sort(), kept.map((id) => [id, id]).sort());
});

t.test("A test that is replaced while it is sent is logged as the test that it was", async (t) => {
  let hangUp = (): void => {};
  receiver.answer = (response) => void (hangUp = () => response.destroy());
  const first = await sendTest(fixture, "ak_b_s1");
  const draining = deliverer.drain();
  await waitUntil("the first test to arrive", () => receiver.received.length === 1, { everyMs: 5 });
  const second = await sendTest(fixture, "ak_b_s1");
  receiver.answer = take;
  hangUp();
  await draining;
  await deliverer.drain();
  const event_type = "coupon.redeemed";
  const attempts = [
    { event_id: second, event_type, http_status: 204 },
    { event_id: first, event_type, http_status: null },
  ];
  fits(t, await readWebhook(fixture, "ak_b_s1"), { attempts });
});

t.test("A webhook that is disabled drops the tests that wait for it, and refuses tests and replays", async (t) => {
  const [event] = await happen("/b/s1", 1);
  await deliverer.drain();
  receiver.received.length = 0;
  for (const key of ["ak_b_s1", "ak_b_s2", "ak_b2_s1"]) await sendTest(fixture, key);
  await patch("disable_webhook('ten_b', 'pty_s1', 'they asked')");
  await patch("enable_webhook('ten_b', 'pty_s1', 'they are back')");
  await deliverer.drain();
  t.strictSame(receiver.received.map(({ path }) => path).sort(), ["/b/s2", "/b2/s1"]);

  receiver.answer = status(410);
  await sendTest(fixture, "ak_b_s1");
  await deliverer.drain();
  t.equal((await readWebhook(fixture, "ak_b_s1")).status, "disabled", "by a 410 to a test");
  const before = await readState(service.owner);
  for (const [path, body] of [
    [testPath, { event_type: "coupon.voided" }],
    [replayPath, { event_id: event }],
    [replayPath, always],
  ] as const)
    fits(t, await post("ak_b_s1", path, body), { status: 409, json: { code: "WEBHOOK_DISABLED", details: null } });
  const unknown = await post("ak_b_s1", replayPath, { event_id: "evt_none" });
  fits(t, unknown, { status: 404, json: { details: { resource: "event" } } });
  t.strictSame(await readState(service.owner), before, "nothing changes");
});

// test/owners compares the counts, reasons and times of get_webhook.
t.test("get_webhook has the last 100 attempts and no secret; a pause that is over does not count", async (t) => {
  await happen("/b/s2", 1);
  await deliverer.drain();
  receiver.answer = status(500);
  const events = await happen("/b/s2", 98);
  await deliverer.drain();
  t.equal(receiver.received.length, 3 + 2 + 98);
  const { text, json } = await by("ak_b_s2").get("/v1/webhook");
  const { attempts } = json.webhook;
  t.equal(attempts.length, 100);
  const shown = new Set(attempts.map((one: any) => one.event_id));
  t.ok(events.every((event) => shown.has(event)));
  t.notMatch(text, /whsec|secret/);
  t.notMatch(text, owners.get("/b/s2")!.secret.slice(6));
  const readStatus = async () => (await readWebhook(fixture, "ak_b_s2")).status;
  for (const [end, expected] of Object.entries({ "2020-01-01": "failing", "2099-01-01": "paused" })) {
    await service.owner.rows("update core.webhook set paused_until = $1", [end]);
    t.equal(await readStatus(), expected);
  }
  await patch("disable_webhook('ten_b', 'pty_s2', 'they asked')");
  t.equal(await readStatus(), "disabled", "whether it is paused or not");
});

t.test("What replay and test refuse", async (t) => {
  const before = await readState(service.owner);
  const [from, to] = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"];
  const zone = "must be an ISO 8601 timestamp with a zone, such as 2026-01-31T00:00:00Z";
  const rows: [object, string, string][] = [
    [{}, "event_id", "is required, unless from and to are sent"],
    [{ event_id: "evt_1", from }, "from", "must not be sent with event_id"],
    [{ from }, "to", "is required: from and to belong together"],
    [{ to }, "from", "is required: from and to belong together"],
    [{ from, to: from }, "to", "must be later than from"],
    [{ from: "2026-01-01T00:00:00", to }, "from", zone],
    [{ from: "0000-01-01T00:00:00Z", to }, "from", "must be after 1970"],
    [{ from, to: "9999-12-31T23:59:59-12:00" }, "to", "must be after 1970"],
  ];
  for (const [body, path, message] of rows) {
    const { status, json } = await post("ak_b_s1", replayPath, body);
    t.strictSame([status, json.details?.issues], [400, [{ path, message }]], JSON.stringify(body));
  }
  const { json } = await post("ak_b_s1", testPath, { event_type: "coupon.minted" });
  t.strictSame(json.details.issues, [{ path: "event_type", message: `must be one of ${eventTypes.join(", ")}` }]);
  t.strictSame(await readState(service.owner), before);
});

t.test("An event is replayed, alone or in a range, as soon as the sequencer has processed it", async (t) => {
  await service.makeBatch(by("ak_b2_s2"), "tpl_s2", 1);
  const events = await service.owner.rows<{ event: string }>(
    "select event from report.event where tenant = 'ten_b2' and party = 'pty_s2'",
  );
  t.equal(events.length, 2);
  const replays = async () => {
    const outcomes = [];
    for (const body of [...events.map(({ event }) => ({ event_id: event })), always]) {
      const { status, json } = await post("ak_b2_s2", replayPath, body);
      outcomes.push(`${status} ${json.replayed ?? json.details.resource}`);
    }
    return outcomes;
  };
  t.strictSame(await replays(), ["404 event", "404 event", "200 0"]);
  await sequence();
  t.strictSame(await replays(), ["200 1", "200 1", "200 2"]);
});

t.test("A replay or a test that meets a worker waits for it, and then runs", async (t) => {
  const [event] = await happen("/b/s1", 1);
  const worker = await service.openPsql();
  for (const [path, body] of [
    [testPath, { event_type: "coupon.voided" }],
    [replayPath, { event_id: event }],
  ] as const) {
    await worker.run("begin");
    await worker.rows("select from core.webhook w for no key update");
    const answer = sendPatiently(() => post("ak_b_s1", path, body));
    await untilBlocked(service, 1).finally(() => worker.run("commit"));
    t.equal((await answer).status, 200, path);
  }
});

// The feed of a tenant of Variant A that no other test uses. `record` adds events of an expired coupon: so many seconds
// after the moment with which ranges begin. `find` counts those of a party until so many seconds later.
async function openFeed(path: string) {
  const { key, tenant } = owners.get(path)!;
  const { coupons } = await service.makeBatch(by(key), "tpl_s1", 1);
  const { id } = coupons[0]!;
  await psql.rows("update core.coupon set status = 'EXPIRED' where coupon_id = rules.parse_id('cpn', $1)", [id]);
  const ofParty = "from core.party p join core.tenant t using (tenant_id)";
  async function record(...seconds: number[]): Promise<void> {
    await psql.rows(
      `insert into core.event (tenant_id, event_id, event_type, party_id, coupon_id, occurred_at, recorded_at)
       select p.tenant_id, rules.make_id(), 'coupon.expired', p.party_id, rules.parse_id('cpn', $1), e.at, e.at
       ${ofParty}, unnest($2::text[]::float[]) with ordinality s (seconds, place),
            lateral (select timestamptz '2026-01-01Z' + make_interval(secs => s.seconds) as at) e
       where t.external_id = $3 and p.external_id = 'pty_s1'
       order by s.place`,
      [id, seconds.map(String), tenant],
    );
    await sequence();
  }
  async function find(party: string, seconds: number, limit: number): Promise<number | null> {
    const [row] = await service.owner.rows<{ count: number | null }>(
      `select cardinality(rules.find_recorded_events(
         jsonb_populate_record(null::core.call, jsonb_build_object('tenant_id', p.tenant_id, 'caller_id', 0)),
         p.party_id, '2026-01-01Z', timestamptz '2026-01-01Z' + make_interval(secs => $1), $2)) as count
       ${ofParty} where t.external_id = $3 and p.external_id = $4`,
      [seconds, limit, tenant, party],
    );
    return row!.count;
  }
  await sequence();
  return { record, find };
}

t.test("A range has an event that committed up to 5 s after its end", async (t) => {
  const { record, find } = await openFeed("/a1/s1");
  await record(0, 2.5, 3);
  await record(3, 6.999_999, 8);
  await record(1.9, 8, 8);
  t.equal(await find("pty_s1", 2, 3), 2);
  await record(7, 7, 8);
  await record(1.9, 8, 8);
  t.equal(await find("pty_s1", 2, 3), 2, "nothing is read after events that were all recorded 5 s after it");
  t.equal(await find("pty_s1", 2.000_001, 3), 3, "unless the range ends later");
});

t.test("A range reads at most ten times as many events of the feed as it may have", async (t) => {
  const { record, find } = await openFeed("/a/s1");
  await record(...Array<number>(19).fill(0));
  t.equal(await find("pty_s1", 1, 19), 19);
  t.equal(await find("pty_s1", 1, 18), null);
  t.equal(await find("pty_s2", 1, 2), 0, "of the other party");
  await record(0);
  t.equal(await find("pty_s2", 1, 2), null, "ten times two, and none of them shows that the feed ends here");
  t.equal(await find("pty_s2", -6, 2), 0, "a time before the feed");
});

t.test("A range begins with the first page of the feed at its first moment or later", async (t) => {
  for (const round of [1, 2, 3]) {
    await happen("/b/s1", round);
    await happen("/b2/s1", 1);
  }
  const positions = await service.owner.rows<{ found: bigint; wanted: bigint }>(
    `select rules.find_feed_position(f.tenant_id, f.party_id, moment.at) as found,
            coalesce(
              (select min(p.first_position) from core.feed_page p
               where (p.tenant_id, p.party_id) = (f.tenant_id, f.party_id) and p.sequenced_at >= moment.at),
              f.last_position + 1) as wanted
     from core.feed f, core.feed_page every_page, generate_series(-1, 1) microseconds,
          lateral (select every_page.sequenced_at + microseconds * interval '1 microsecond') moment (at)`,
  );
  t.ok(new Set(positions.map(({ found }) => found)).size > 10);
  t.strictSame(
    positions.map(({ found }) => found),
    positions.map(({ wanted }) => wanted),
  );
});

t.test("A range goes from its first moment until just before its last, whatever is in the feed", async (t) => {
  for (let round = 0; round < 2; round += 1) for (const path of ["/b/s1", "/a/s1", "/a/s2"]) await happen(path, 3);
  for (const path of ["/b/s1", "/a/s1", "/a/s2"]) {
    const { key, tenant, party } = owners.get(path)!;
    const rows = await service.owner.rows<{ event: string; at: string }>(
      `select event, rules.format_time(recorded_at) as at from report.event
       where tenant = $1 and party = $2 order by event_seq desc limit 10`,
      [tenant, party],
    );
    const moments = [...new Set(rows.map(({ at }) => at))].sort();
    for (const [from, to] of [
      [moments[0]!, moments.at(-1)!],
      [moments[1]!, moments[2]!],
    ] as const) {
      await deliverer.drain();
      receiver.received.length = 0;
      const expected = rows.filter(({ at }) => at >= from && at < to).map(({ event }) => event);
      const named = tenant === "ten_a" ? { party } : {};
      const body = { request_id: newRequestId(), from, to, ...named };
      const reply = await by(key).post(replayPath, body);
      t.strictSame(reply.json, { ok: true, replayed: expected.length });
      const spelled = { ...body, to: to.replace("Z", "+00:00") };
      t.ok(isReplay(await by(key).post(replayPath, spelled)), "two spellings of a moment are equal");
      await deliverer.drain();
      t.strictSame(receiver.received.map(({ id }) => id).sort(), expected.sort(), `${path} ${from} ${to}`);
    }
  }
});

t.test("A range has at most 10,000 events, and get_webhook counts to 10,000", async (t) => {
  const range = { from: "2020-01-01T00:00:00Z", to: "2020-01-03T00:00:00Z" };
  // Events of business days: they need no coupons.
  const addEvents = async (count: number) => {
    await psql.rows(
      `insert into core.event (tenant_id, event_id, event_type, party_id, business_date, occurred_at, recorded_at)
       select p.tenant_id, rules.make_id(), 'reconciliation.ready', p.party_id, '2020-01-01', '2020-01-02', '2020-01-02'
       from core.party p join core.tenant t using (tenant_id), generate_series(1, $1)
       where t.external_id = 'ten_b' and p.external_id = 'pty_s1'`,
      [count],
    );
    await sequence();
  };
  await addEvents(10_000);
  const whole = await sendPatiently(() => post("ak_b_s1", replayPath, range));
  t.strictSame([whole.status, whole.json], [200, { ok: true, replayed: 10_000 }], whole.text);
  await addEvents(1);
  const message = "must be earlier: at most 10000 events are replayed at once";
  const refused = await post("ak_b_s1", replayPath, range);
  fits(t, refused, { status: 400, json: { details: { issues: [{ path: "to", message }] } } });

  fits(t, await readWebhook(fixture, "ak_b_s1"), { waiting: 10_000, parked: 0 });
  await psql.run("update core.delivery set parked_at = clock_timestamp()");
  fits(t, await readWebhook(fixture, "ak_b_s1"), { waiting: 0, parked: 10_000 });
});

t.test("Variant A: a tenant with several webhooks names the party; Variant B has no such field", async (t) => {
  const before = await readState(service.owner);
  const named = { party: "pty_s1" };
  const calls = (key: string, { party }: { party?: string }) => [
    by(key).get(party === undefined ? "/v1/webhook" : `/v1/webhook?party=${party}`),
    post(key, replayPath, { ...always, ...(party !== undefined && { party }) }),
    post(key, testPath, { event_type: "coupon.expired", ...(party !== undefined && { party }) }),
  ];
  const refused = (message: string) => ({ status: 400, json: { details: { issues: [{ path: "party", message }] } } });
  for (const reply of await Promise.all(calls("ak_a", {})))
    fits(t, reply, refused("is required: the tenant has several webhooks"));
  for (const reply of await Promise.all(calls("ak_b_s1", named))) fits(t, reply, refused("unknown field"));
  t.strictSame(await readState(service.owner), before);
});
