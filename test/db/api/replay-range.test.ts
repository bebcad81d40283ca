// Events of a time, sent again: which ones, and how many at most.
import t from "tap";
import { openScratchDatabase } from "../../support/database.ts";
import { newRequestId } from "../../support/service.ts";
import { readWebhook, startOwners, type Owners } from "../../support/webhook-owners.ts";

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
  const whole = await replay();
  t.strictSame([whole.status, whole.json], [200, { ok: true, replayed: 10_000 }], whole.text);
  await addDays(fixture, 1);
  const message = "must be earlier: at most 10000 events are replayed at once";
  t.match(await replay(), { status: 400, json: { details: { issues: [{ path: "to", message }] } } });
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
  await owner.rows("delete from core.delivery where ctid in (select ctid from core.delivery limit 2)");
  t.strictSame(await counts(), [0, 9_999]);
});

t.test("a range reads at most as many events of the feed as it may have, and one more", async (t) => {
  const fixture = await startOwners(t);
  const { owner } = fixture.service;
  for (const path of ["/a/s1", "/a/s2", "/a/s1"]) await fixture.happen(path, 2);
  const find = async (from: string, to: string, limit: number, party = "pty_s1") => {
    const [row] = await owner.rows<{ count: number | null }>(
      `select cardinality(rules.find_recorded_events(
         jsonb_populate_record(null::core.call, jsonb_build_object('tenant_id', p.tenant_id, 'caller_id', 0)),
         p.party_id, $1::text::timestamptz, $2::text::timestamptz, $3)) as count
       from core.party p join core.tenant t using (tenant_id)
       where t.external_id = 'ten_a' and p.external_id = $4`,
      [from, to, limit, party],
    );
    return row!.count;
  };
  const rows = await owner.rows<{ at: string }>(
    `select (e.recorded_at)::text as at from rules.feed_event f join rules.event e using (tenant_id, event_id)
     join core.tenant t using (tenant_id) where t.external_id = 'ten_a' order by f.position`,
  );
  const [first, last] = [rows[0]!.at, rows[5]!.at];
  t.equal(rows.length, 6);
  t.equal(await find(first, "2099-01-01", 6), 6, "four are of this party, and two of its second batch");
  t.equal(await find(first, "2099-01-01", 6, "pty_s2"), 4, "two are of the other party, and two of its batch");
  t.equal(await find(first, "2099-01-01", 5, "pty_s2"), null, "six coupon events of the feed would be read");
  t.equal(await find(first, last, 5), 5, "the sixth is past the end, so nothing is left out");
  t.equal(await find("2020-01-01", "2020-01-02", 1), 0);
  t.equal(await find("2098-01-01", "2099-01-01", 1), 0);
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
