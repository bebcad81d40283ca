// The times that calls, patches and jobs write are read after the wait for the row. So what is written never claims to
// have happened while another session still held the row.
import { randomUUID } from "node:crypto";
import t from "tap";
import { fits } from "../../support/fits.ts";
import { claimBatch, drawHashes, find, mintChunk, openWorker, submit } from "../../support/minting.ts";
import { passWhileWaiting } from "../../support/race.ts";
import { startRaceFixture, type RaceFixture } from "../../support/race-fixture.ts";
import { newRequestId, type Running } from "../../support/service.ts";
import { startStatementFixture } from "../../support/statement-fixture.ts";
import { findSubscriber, subscribe } from "../../support/subscribers.ts";
import { openWorkerSession } from "../../support/worker-session.ts";

type Place = { service: Pick<Running, "owner"> };

let fixture: RaceFixture;
t.before(async () => {
  fixture = await startRaceFixture(t);
  await fixture.provision("tpl_hour", { lock_ttl_seconds: 3_600 });
});

const holdCoupon = { hold: "select from core.coupon where coupon_id = rules.parse_id('cpn', $1) for update" };
const holdBatch = { hold: "select from core.batch where batch_id = $1 for update" };
const redemption = "from core.redemption where coupon_id = rules.parse_id('cpn', $1)";
const event = (type: string) =>
  `(select min(least(occurred_at, recorded_at)) from rules.event
    where event_type = '${type}' and coupon_id = rules.parse_id('cpn', $1))`;

// How long a lease still lasts, at most: counted from the moment, and at least: counted from now.
async function readLease({ service }: Place, moment: string, until: string, key: unknown) {
  const [row] = await service.owner.rows<{ most: number; least: number }>(
    `select extract(epoch from ${until} - $2::text::timestamptz)::float as most,
            extract(epoch from ${until} - clock_timestamp())::float as least`,
    [key, moment],
  );
  return { ...row! };
}

// The seconds from the moment to the earliest of these times.
async function secondsAfter({ service }: Place, moment: string, times: string, key: unknown): Promise<number> {
  const [row] = await service.owner.rows<{ seconds: number }>(
    `select extract(epoch from least(${times}) - $2::text::timestamptz)::float as seconds`,
    [key, moment],
  );
  return row!.seconds;
}

type Arranged = { code: string; id: string; lockId: string; redemption: string };
type Call = {
  name: string;
  first: "lock" | "redeem" | null;
  isExpired?: true;
  act(coupon: Arranged): Promise<unknown>;
  times: string;
};
const calls: Call[] = [
  {
    name: "lock",
    first: null,
    act: ({ code }) => fixture.lock(code),
    times: `(select started_at ${redemption}), (select lock_expires_at - interval '1 hour' ${redemption})`,
  },
  {
    name: "redeem",
    first: null,
    act: ({ code }) => fixture.redeem(code),
    times: `(select started_at ${redemption}), (select redeemed_at ${redemption}), ${event("coupon.redeemed")}`,
  },
  {
    name: "redeem after a lock",
    first: "lock",
    isExpired: true,
    act: ({ code }) => fixture.redeem(code),
    times: `(select ended_at ${redemption} and status = 'LAPSED')`,
  },
  {
    name: "confirm",
    first: "lock",
    act: ({ code, lockId }) => fixture.confirm(code, lockId),
    times: `(select redeemed_at ${redemption}), ${event("coupon.redeemed")}`,
  },
  {
    name: "cancel",
    first: "lock",
    act: ({ code, lockId }) => fixture.cancel(code, lockId),
    times: `(select ended_at ${redemption})`,
  },
  {
    name: "reverse",
    first: "redeem",
    act: (coupon) => fixture.reverse(coupon.redemption),
    times: `(select ended_at ${redemption}), ${event("coupon.reversed")}`,
  },
  {
    name: "void",
    first: null,
    act: ({ code }) => fixture.voidCoupon(code),
    times: `${event("coupon.voided")}, (select voided_at from core.voiding
      where coupon_id = rules.parse_id('cpn', $1))`,
  },
];

t.test("What a call writes happened after its wait for the coupon", async (t) => {
  for (const { name, first, isExpired, act, times } of calls) {
    const { code, id } = await fixture.makeCoupon("tpl_hour");
    const lockId = newRequestId();
    const before = first === "lock" ? await fixture.lock(code, lockId) : first && (await fixture.redeem(code));
    const coupon = { code, id, lockId, redemption: before?.json.redemption as string };
    if (isExpired)
      await fixture.service.owner.rows(
        "update core.redemption set lock_expires_at = started_at where coupon_id = rules.parse_id('cpn', $1)",
        [id],
      );
    const { answer, moment } = await passWhileWaiting(fixture.service, holdCoupon, id, () => act(coupon));
    fits(t, answer, { status: 200 }, name);
    const recorded = "(select max(recorded_at) from core.request)";
    const seconds = await secondsAfter(fixture, moment, `${times}, ${recorded}`, id);
    t.ok(seconds >= 0 && seconds < 60, `${name}: ${seconds} s after the wait`);
  }
});

t.test("An allocation happened after its wait for the batch", async (t) => {
  const { service, a } = fixture;
  const { id } = await service.makeBatch(a, "tpl_fixed", 1, { isReleased: false });
  const hold = { hold: "select from core.batch where external_id = $1 for update" };
  const { answer, moment } = await passWhileWaiting(service, hold, id, () =>
    a.post("/v1/batches/allocate", { request_id: newRequestId(), batch: id }),
  );
  t.equal(answer.status, 200);
  const times = `(select allocated_at from core.batch where external_id = $1),
    (select occurred_at from rules.event join core.batch using (tenant_id, batch_id)
     where event_type = 'allocation.completed' and external_id = $1)`;
  t.ok((await secondsAfter(fixture, moment, times, id)) >= 0);
});

t.test(
  "The lease of a batch lasts 30 s from the end of the wait, and one that ran out meanwhile is free",
  async (t) => {
    const { service } = fixture;
    const worker = openWorker(t, service);
    const [first, second] = [await openWorkerSession(t, service.address), await openWorkerSession(t, service.address)];
    const batch = await find(service, await submit(service, 10));
    // Another worker claims the batch, and its lease runs out before the other session lets go of the row.
    const change = `update core.batch set mint_worker = ${first.number}, mint_holder = gen_random_uuid(),
    mint_lease_until = clock_timestamp() where batch_id = $1`;
    const { answer: claim, moment } = await passWhileWaiting(service, { ...holdBatch, change }, batch.batch_id, () =>
      claimBatch(service, worker, second, batch),
    );
    fits(t, claim, { first_number: 1, last_number: 10 });
    const lease = "(select mint_lease_until from core.batch where batch_id = $1)";
    const claimed = await readLease(fixture, moment, lease, batch.batch_id);
    t.ok(claimed.most >= 30 && claimed.least < 30, JSON.stringify(claimed));

    const chunk = await passWhileWaiting(service, holdBatch, batch.batch_id, () =>
      mintChunk(worker, batch, claim!.holder, 1, drawHashes(9)),
    );
    t.strictSame(chunk.answer, { minted_count: 9, is_complete: false });
    const renewed = await readLease(fixture, chunk.moment, lease, batch.batch_id);
    t.ok(renewed.most >= 30 && renewed.least < 30, JSON.stringify(renewed));

    const last = await passWhileWaiting(service, holdBatch, batch.batch_id, () =>
      mintChunk(worker, batch, claim!.holder, 10, drawHashes(1)),
    );
    t.strictSame(last.answer, { minted_count: 10, is_complete: true });
    const times = `(select completed_at from core.batch where batch_id = $1),
    (select occurred_at from rules.event where event_type = 'batch.generated' and batch_id = $1)`;
    t.ok((await secondsAfter(fixture, last.moment, times, batch.batch_id)) >= 0);
  },
);

t.test(
  "The lease of a subscriber lasts 60 s from the end of the wait, and one that ran out meanwhile is free",
  async (t) => {
    const subscribed = await subscribe(t, ["http://127.0.0.1:1"]);
    const [delivery] = await subscribed.happen("pty_s1", 1);
    const { tenant_id, party_id } = await findSubscriber(subscribed, "pty_s1");
    const gone = await openWorkerSession(t, subscribed.service.address);
    // The pause that the subscriber asked for ends meanwhile, too, and the old secret of a rotation is over.
    const change = `with replaced as (
      insert into core.replaced_secret (tenant_id, party_id, replaced_at, sealed_secret)
      select tenant_id, party_id, clock_timestamp() - interval '24 hours', sealed_secret
      from core.webhook where party_id = $1)
    update core.webhook set worker = ${gone.number}, holder = gen_random_uuid(),
    lease_until = clock_timestamp(), paused_until = clock_timestamp()
    where party_id = $1`;
    const hold = { hold: "select from core.webhook where party_id = $1 for update", change };
    const { answer, moment } = await passWhileWaiting(subscribed.service, hold, party_id, () =>
      subscribed.worker.rows<{ external_id: string; secrets: number }>(
        "select external_id, cardinality(sealed_secrets) as secrets from jobs.claim_deliveries($1, $2, $3, $4, 10)",
        [tenant_id, party_id, subscribed.session.number, randomUUID()],
      ),
    );
    t.strictSame(
      answer.map((row) => ({ ...row })),
      [{ external_id: delivery, secrets: 1 }],
    );
    const lease = "(select lease_until from core.webhook where party_id = $1)";
    const seconds = await readLease(subscribed, moment, lease, party_id);
    t.ok(seconds.most >= 60 && seconds.least < 60, JSON.stringify(seconds));
  },
);

t.test("A statement is ready after the wait for its row", async (t) => {
  const statements = await startStatementFixture(t, 1);
  const { books, parties, service } = statements;
  await books.sequence();
  await statements.end(parties[0]!);
  await books.sequence();
  // A session holds the row while the last step of the closer waits for it.
  const hold = { hold: "select from core.statement where $1::text is not null for update" };
  const moments: string[] = [];
  const rows = async <T>(text: string, parameters?: unknown[]): Promise<T[]> => {
    if (!text.includes("jobs.finish_statement")) return books.worker.rows<T>(text, parameters);
    const { answer, moment } = await passWhileWaiting(service, hold, "all", () =>
      books.worker.rows<T>(text, parameters),
    );
    moments.push(moment);
    return answer;
  };
  const closer = books.closerOn({ rows: rows as typeof books.worker.rows, end: () => books.worker.end() });
  await closer.closeDays();
  await closer.finishStatements();
  t.equal(moments.length, 1);
  const times = `(select min(ready_at) from core.statement where $1::text is not null),
    (select min(least(occurred_at, recorded_at)) from rules.event where event_type = 'reconciliation.ready')`;
  t.ok((await secondsAfter(statements, moments[0]!, times, "all")) >= 0);
});
