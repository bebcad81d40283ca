// Events of a time, sent again: which ones, and how many at most.
import t from "tap";
import { sendPatiently } from "../../support/client.ts";
import { openScratchDatabase } from "../../support/database.ts";
import { fits } from "../../support/fits.ts";
import { newRequestId } from "../../support/service.ts";
import { readWebhook, startOwners, type Owners } from "../../support/webhook-owners.ts";
import { dropDeliveries } from "../../support/subscribers.ts";

const replayPath = "/v1/webhook/replay";

t.test("a range goes from its first moment until just before its last, whatever is in the feed", async (t) => {
  const fixture = await startOwners(t);
  for (let round = 0; round < 3; round += 1)
    for (const path of ["/b/s1", "/a/s1", "/a/s2"]) await fixture.happen(path, 3);
  await fixture.deliverer.drain();
  for (const [path, party] of [
    ["/b/s1", undefined],
    ["/a/s1", "pty_s1"],
    ["/a/s2", "pty_s2"],
  ] as const) {
    const { key, tenant, party: owner } = fixture.owners.get(path)!;
    const rows = await fixture.service.owner.rows<{ event: string; at: string }>(
      `select event, rules.format_time(recorded_at) as at from report.event
       where tenant = $1 and party = $2 order by event_seq`,
      [tenant, owner],
    );
    t.equal(rows.length, 15);
    const moments = rows.map(({ at }) => at);
    for (const [from, to] of [
      [0, 14],
      [2, 5],
      [5, 6],
      [4, 13],
      [7, 11],
    ] as const) {
      if (moments[from] === moments[to]) continue;
      const expected = rows.filter(({ at }) => at >= moments[from]! && at < moments[to]!).map(({ event }) => event);
      fixture.receiver.received.length = 0;
      const reply = await fixture.service.as(key).post(replayPath, {
        request_id: newRequestId(),
        from: moments[from],
        to: moments[to],
        ...(party !== undefined && { party }),
      });
      t.strictSame([reply.status, reply.json], [200, { ok: true, replayed: expected.length }], reply.text);
      await fixture.deliverer.drain();
      t.strictSame(fixture.receiver.received.map(({ id }) => id).sort(), expected.sort(), `${path} ${from} ${to}`);
    }
  }
});

// Events of business days: they need no coupons.
async function addDays({ service, sequence }: Owners, count: number): Promise<void> {
  await service.owner.rows(
    `insert into core.event (tenant_id, event_id, event_type, party_id, business_date, occurred_at, recorded_at)
     select p.tenant_id, rules.make_id(), 'reconciliation.ready', p.party_id, '2020-01-01', '2020-01-02', '2020-01-02'
     from core.party p join core.tenant t using (tenant_id), generate_series(1, $1)
     where t.external_id = 'ten_b' and p.external_id = 'pty_s1'`,
    [count],
  );
  await sequence();
}

t.test("a range has at most 10,000 events", async (t) => {
  const fixture = await startOwners(t);
  const replay = () =>
    fixture.service.as("ak_b_s1").post(replayPath, {
      request_id: newRequestId(),
      from: "2020-01-01T00:00:00Z",
      to: "2020-01-03T00:00:00Z",
    });
  await addDays(fixture, 10_000);
  const whole = await sendPatiently(replay);
  t.strictSame([whole.status, whole.json], [200, { ok: true, replayed: 10_000 }], whole.text);
  await addDays(fixture, 1);
  const message = "must be earlier: at most 10000 events are replayed at once";
  fits(t, await replay(), { status: 400, json: { details: { issues: [{ path: "to", message }] } } });
});

t.test("get_webhook counts to 10,000, and no further", async (t) => {
  const fixture = await startOwners(t);
  const { owner } = fixture.service;
  const counts = async () => {
    const { waiting, parked } = await readWebhook(fixture, "ak_b_s1");
    return [waiting, parked];
  };
  await addDays(fixture, 9_999);
  t.strictSame(await counts(), [9_999, 0]);
  await addDays(fixture, 2);
  t.strictSame(await counts(), [10_000, 0]);
  await owner.rows("update core.delivery set parked_at = clock_timestamp()");
  t.strictSame(await counts(), [0, 10_000]);
  await dropDeliveries(fixture.service.address, "ctid in (select ctid from core.delivery limit 2)");
  t.strictSame(await counts(), [0, 9_999]);
});

// Events of one expired coupon, recorded so many seconds after the moment that ranges begin with, and a search for
// those that were recorded up to a second, with a limit.
async function makeFeed({ service, sequence }: Owners, party: string) {
  const from = "2026-01-01T00:00:00Z";
  const { couponIds } = await service.makeBatch(service.as("ak_a"), `tpl_${party.slice(4)}`, 1);
  const expire = "update core.coupon set status = 'EXPIRED' where coupon_id = rules.parse_id('cpn', $1)";
  await service.owner.rows(expire, [couponIds[0]!]);
  const tenant = "(select tenant_id from core.tenant where external_id = 'ten_a')";
  async function record(...seconds: number[]): Promise<void> {
    await service.owner.rows(
      `insert into core.event (tenant_id, event_id, event_type, party_id, coupon_id, occurred_at, recorded_at)
       select p.tenant_id, rules.make_id(), 'coupon.expired', p.party_id, rules.parse_id('cpn', $1), e.at, e.at
       from core.party p, unnest($2::text[]::float[]) with ordinality s (seconds, place),
            lateral (select $3::text::timestamptz + make_interval(secs => s.seconds) as at) e
       where p.tenant_id = ${tenant} and p.external_id = $4
       order by s.place`,
      [couponIds[0]!, seconds.map(String), from, party],
    );
    await sequence();
  }
  async function find(party: string, seconds: number, limit: number): Promise<number | null> {
    const [row] = await service.owner.rows<{ count: number | null }>(
      `select cardinality(rules.find_recorded_events(
         jsonb_populate_record(null::core.call, jsonb_build_object('tenant_id', p.tenant_id, 'caller_id', 0)),
         p.party_id, $1::text::timestamptz, $1::text::timestamptz + make_interval(secs => $2), $3)) as count
       from core.party p
       where p.tenant_id = ${tenant} and p.external_id = $4`,
      [from, seconds, limit, party],
    );
    return row!.count;
  }
  await sequence();
  return { record, find };
}

t.test("a range has an event that committed up to 5 s after its end", async (t) => {
  const { record, find } = await makeFeed(await startOwners(t), "pty_s1");
  await record(0, 2.5, 3);
  await record(3, 6.999_999, 8);
  await record(1.9, 8, 8);
  t.equal(await find("pty_s1", 2, 3), 2);
  await record(7, 7, 8);
  await record(1.9, 8, 8);
  t.equal(await find("pty_s1", 2, 3), 2, "nothing is read after events that were all recorded 5 s after it");
  t.equal(await find("pty_s1", 2.000_001, 3), 3, "unless the range ends later");
});

t.test("a range reads at most ten times as many events of the feed as it may have", async (t) => {
  const { record, find } = await makeFeed(await startOwners(t), "pty_s2");
  await record(...Array<number>(19).fill(0));
  t.equal(await find("pty_s2", 1, 19), 19);
  t.equal(await find("pty_s2", 1, 18), null);
  t.equal(await find("pty_s1", 1, 2), 0, "of the other party");
  await record(0);
  t.equal(await find("pty_s1", 1, 2), null, "ten times two, and none of them shows that the feed ends here");
  t.equal(await find("pty_s1", -6, 2), 0, "a time before the feed");
});

t.test("a range begins with the first page of the feed at its first moment or later", async (t) => {
  const session = await openScratchDatabase(t);
  // Feed n has n pages, one each second, of one to three events.
  await session.run(
    `set session_replication_role = replica;
     insert into core.feed_page (tenant_id, party_id, first_position, sequenced_at, event_seqs)
     select 1, n, sum(1 + k % 3) over (partition by n order by k) - k % 3, moment.at,
            array(select generate_series(1, 1 + k % 3))
     from generate_series(1, 12) n, generate_series(1, n) k,
          lateral (select timestamptz '2026-01-01Z' + k * interval '1 second') moment (at);
     insert into core.feed (tenant_id, party_id, last_position)
     select 1, party_id, max(first_position + cardinality(event_seqs) - 1) from core.feed_page group by party_id`,
  );
  const rows = await session.rows<{ found: bigint; wanted: bigint }>(
    `select rules.find_feed_position(1, f.party_id, moment.at) as found,
            coalesce(
              (select min(p.first_position) from core.feed_page p
               where p.party_id = f.party_id and p.sequenced_at >= moment.at),
              f.last_position + 1) as wanted
     from core.feed f, generate_series(0, 26) half,
          lateral (select timestamptz '2026-01-01Z' + half * interval '0.5 seconds') moment (at)`,
  );
  t.equal(rows.length, 12 * 27);
  t.strictSame(
    rows.map(({ found }) => found),
    rows.map(({ wanted }) => wanted),
  );
});
