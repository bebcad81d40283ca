// What subscribers ask for reads few rows of large tables, also on a connection that planned its statements when the
// tables were empty, and before they are analyzed. So does a page of a feed.
import t from "tap";
import { openSession } from "../../src/database/connect.ts";
import { countReads, readCounts, stopAutovacuum } from "../support/count-reads.ts";
import { openScratchDatabase } from "../support/database.ts";
import { newRequestId } from "../support/service.ts";
import { startOwners } from "../support/webhook-owners.ts";
import { dropDeliveries } from "../support/subscribers.ts";

// Operation, arguments, and how many rows it may read.
const calls: [string, object, number][] = [
  // 100 attempts with their events.
  ["get_webhook", {}, 350],
  ["replay_events", { event_id: `evt_${"0".repeat(26)}` }, 30],
  // Before the feed begins: a replay reads on to its limit, here the 400 events of the feed.
  ["replay_events", { from: "2020-01-02T00:00:00Z", to: "2020-01-03T00:00:00Z" }, 900],
  ["replay_events", { from: "2098-01-01T00:00:00Z", to: "2099-01-01T00:00:00Z" }, 60],
  ["test_webhook", { event_type: "coupon.voided" }, 30],
];

t.test("get_webhook, replay_events, test_webhook and list_due_webhooks read few rows of large tables", async (t) => {
  const fixture = await startOwners(t);
  const { service } = fixture;
  const dba = openSession(service.address, { name: "coupon test dba" });
  await stopAutovacuum(dba);
  await dba.end();
  const till = openSession(service.address, { name: "coupon test till", role: "coupon_api" });
  t.teardown(till.end);
  const [caller] = await till.rows<{ tenant_id: number; credential_id: number }>(
    "select tenant_id, credential_id from gate.find_credential('ak_b_s1')",
  );
  async function countRows([operation, args]: (typeof calls)[number]): Promise<number> {
    const { tenant_id, credential_id } = caller!;
    const call = {
      credential_id,
      operation,
      args,
      request_id: newRequestId(),
      nonce: null,
      body_hash: operation.startsWith("get") ? null : "00",
    };
    await till.run("begin");
    const before = await readCounts(till);
    await till.rows("select gate.perform($1, $2::text::jsonb, true)", [tenant_id, JSON.stringify([call])]);
    const after = await readCounts(till);
    await till.run("commit");
    return after.rows - before.rows;
  }

  for (const call of calls) await countRows(call);
  await fixture.happen("/b/s2", 400);
  await fixture.happen("/b/s1", 400);
  await fixture.deliverer.drain();
  await service.owner.rows(
    `insert into core.event (tenant_id, event_id, event_type, party_id, business_date, occurred_at, recorded_at)
     select p.tenant_id, rules.make_id(), 'reconciliation.ready', p.party_id, '2020-01-01', '2021-01-02', '2021-01-02'
     from core.party p join core.tenant t using (tenant_id), generate_series(1, 4000)
     where t.external_id = 'ten_b' and p.external_id like 'pty_s%'`,
  );
  await fixture.sequence();
  // Thousands of deliveries wait for a later attempt.
  await service.owner.rows("update core.delivery set next_attempt_at = clock_timestamp() + interval '1 hour'");
  const worker = countReads(openSession(service.address, { name: "coupon test worker", role: "coupon_worker" }));
  t.teardown(worker.end);
  t.equal((await worker.rows("select from jobs.list_due_webhooks(32)")).length, 0);
  const { "jobs.list_due_webhooks": due } = worker.takeRows();
  t.ok(due! < 20, `list_due_webhooks: ${due} rows, at most 20`);
  await dropDeliveries(service.address);
  for (const call of calls) {
    const [rows, most] = [await countRows(call), call[2]];
    t.ok(rows <= most, `${JSON.stringify(call)}: ${rows} rows, at most ${most}`);
  }
});

// The planner knows the table, and prefers to sort: the pages of four feeds take turns.
t.test("A page of a feed reads no more than the events of the page need", async (t) => {
  const session = await openScratchDatabase(t);
  await session.run(
    `set session_replication_role = replica;
     set random_page_cost = 4;
     set plan_cache_mode = force_generic_plan;
     set enable_seqscan = off;
     insert into core.feed_page (tenant_id, party_id, first_position, sequenced_at, event_seqs)
     select 1, n % 4, n / 4 + 1, now(), array[n] from generate_series(0, 3999) n;
     analyze core.feed_page;
     begin`,
  );
  const before = await readCounts(session);
  const [page] = await session.rows<{ event_seqs: bigint[] }>("select event_seqs from rules.read_feed(1, 2, 500, 3)");
  const { rows } = await readCounts(session);
  t.strictSame(page!.event_seqs.map(Number), [2_002, 2_006, 2_010], "positions 501 to 503");
  // The page where the list begins, and up to one more than the list has events.
  t.ok(rows - before.rows <= 5, `${rows - before.rows} rows`);
  await session.run("rollback");
});
