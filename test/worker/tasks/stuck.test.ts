// Work that fails because of the rows of one party: only that party waits, it is named, and it catches up when it is
// cured. Such rows come from a restore, a server with other time zones, or psql with triggers switched off.
import t, { type Test } from "tap";
import { provisioning } from "../../../src/commands/provisioning.ts";
import { readConfig } from "../../../src/config/config.ts";
import { newWebhookSecret } from "../../../src/crypto/webhook-signature.ts";
import { openSession, sqlDetail } from "../../../src/database/connect.ts";
import type { Session } from "../../../src/database/types.ts";
import { createUnsticker } from "../../../src/worker/tasks/stuck.ts";
import { work } from "../../../src/work.ts";
import { daySeconds, noonOffset, setZone, zoneOf } from "../../support/business-days.ts";
import type { Caller, Coupon } from "../../support/caller.ts";
import { readCounts } from "../../support/count-reads.ts";
import { fits } from "../../support/fits.ts";
import { startReceiver } from "../../support/receiver.ts";
import { newRequestId } from "../../support/request-id.ts";
import { scenario, type Scenario } from "../../support/scenario.ts";
import { takeStep } from "../../support/sequence-events.ts";
import { beginRequest } from "../../support/sessions.ts";
import { createStubLog } from "../../support/stub.ts";
import { credential, merchant, party, template } from "../../support/tenants.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { loopbackOnly } from "../../support/worker-steps.ts";

const unknownZone = "Asia/Atlantis";

/** A distributor whose events can be made to fail, and another tenant. */
async function start(t: Test) {
  const world = await scenario(t);
  const psql = await world.openPsql({ triggers: false });
  const worker = openSession(world.address, { name: "coupon test worker", role: "coupon_worker" });
  t.teardown(() => worker.end());
  await setZone(world, "pty_a", zoneOf(noonOffset()));
  const coupons = await world.a.makeCoupons(20);
  const stranger = world.as("ak_a_stranger");
  const others = (await world.makeBatch(stranger, "tpl_a2s", 5)).coupons;
  await world.steps.sequence();
  return {
    world,
    psql,
    worker,
    poison: () => psql.run(`update core.party set time_zone = '${unknownZone}' where external_id = 'pty_a'`),
    cure: () => setZone(world, "pty_a", zoneOf(noonOffset())),
    takeCoupon: () => coupons.pop()!,
    redeem: () => world.a.till.ok.redeem(coupons.pop()!),
    redeemElsewhere: () => stranger.ok.redeem(others.pop()!, { merchant: "mch_a2s" }),
    /** One attempt after the rest. Returns whether there was something to try. */
    async retry(limit: number): Promise<boolean> {
      await psql.run("update core.stuck_work set tried_at = tried_at - interval '6 seconds'");
      return (await tryAgain(worker, limit)) > 0;
    },
    /** The number of events in the feed of a tenant, of those that are posted, and of those that wait. */
    async look(tenant = "ten_a") {
      const [row] = await psql.rows<{ feed: number; posted: number; waiting: number; stuck: number }>(
        `select (select count(*)::int from rules.feed_event e where e.tenant_id = t.tenant_id) as feed,
                (select count(*)::int from rules.posting p where p.tenant_id = t.tenant_id) as posted,
                (select count(*)::int from core.event_gap g where g.tenant_id = t.tenant_id) as waiting,
                (select count(*)::int from core.stuck_work s where s.tenant_id = t.tenant_id) as stuck
         from core.tenant t where t.external_id = $1`,
        [tenant],
      );
      return { ...row! };
    },
    /** Whether the feed has the events in the order of their numbers. */
    async isInOrder() {
      const rows = await psql.rows<{ event_seq: string }>(
        `select e.event_seq from rules.feed_event e join core.tenant t using (tenant_id)
         where t.external_id = 'ten_a' order by e.position`,
      );
      return rows.every(({ event_seq }, n) => n === 0 || Number(event_seq) > Number(rows[n - 1]!.event_seq));
    },
  };
}

async function tryAgain(worker: Session, limit: number): Promise<number> {
  return (await worker.rows<{ done: number }>("select jobs.try_stuck_work($1) as done", [limit]))[0]!.done;
}

t.test("a cured party catches up in steps and in order; its newer events wait until it has", async (t) => {
  const fixture = await start(t);
  const { world, worker, poison, cure, redeem, redeemElsewhere, retry, look } = fixture;
  const { logger, log } = createStubLog();
  const stopping = new AbortController().signal;
  const { logChanges } = createUnsticker({ sequencer: worker, database: worker, log: logger, stopping });
  await redeem();
  await takeStep(worker);
  await poison();
  for (let times = 0; times < 4; times += 1) {
    await redeem();
    await redeemElsewhere();
    t.equal(await takeStep(worker), 2);
  }
  t.strictSame(await look(), { feed: 1, posted: 1, waiting: 4, stuck: 1 });
  t.strictSame(await look("ten_a2"), { feed: 4, posted: 4, waiting: 0, stuck: 0 });
  fits(
    t,
    [...(await world.owner.rows("select * from report.stuck_work"))],
    [{ tenant: "ten_a", party: "pty_a", work: "events", subject: "pty_a", waiting_events: "4" }],
  );
  await logChanges();
  t.equal(await retry(3), true, "an attempt that fails");
  fits(t, await look(), { feed: 1, waiting: 4, stuck: 1 });
  t.equal(await tryAgain(worker, 3), 0, "it rests");

  await cure();
  t.equal(await retry(3), true);
  t.strictSame(await look(), { feed: 4, posted: 4, waiting: 1, stuck: 1 });
  await redeem();
  t.equal(await takeStep(worker), 1);
  fits(t, await look(), { feed: 4, waiting: 2, stuck: 1 }, "the newer one waits");
  t.equal(await retry(3), true);
  fits(t, await look(), { feed: 6, waiting: 0, stuck: 1 });
  t.equal(await retry(3), true, "nothing waits, and its day can be closed");
  t.equal(await retry(3), false);
  await redeem();
  await takeStep(worker);
  t.strictSame(await look(), { feed: 7, posted: 7, waiting: 0, stuck: 0 });
  t.ok(await fixture.isInOrder());

  await logChanges();
  const stuck = { work: "events", tenant: "ten_a", party: "pty_a", subject: "pty_a" };
  const reason = `time zone "${unknownZone}" not recognized`;
  fits(t, log, [
    { level: 50, ...stuck, reason, msg: "work is stuck; only this party waits" },
    { level: 30, ...stuck, msg: "work is no longer stuck" },
  ]);
});

t.test("an event of a stuck party that is committed late waits too, and is not forgotten", async (t) => {
  const { world, psql, worker, poison, cure, takeCoupon, redeem, retry, look, isInOrder } = await start(t);
  await poison();
  const { code } = takeCoupon();
  const body = { request_id: newRequestId(), coupon: code, merchant: "mch_a" };
  const finish = await beginRequest(world, "ak_a", "redeem", body);
  await redeem();
  t.equal(await takeStep(worker), 1);
  fits(t, await look(), { feed: 0, waiting: 1, stuck: 1 });
  await finish("commit");
  t.equal(await takeStep(worker), 1);
  await takeStep(worker);
  fits(t, await look(), { waiting: 2 });
  t.strictSame([...(await psql.rows("select from core.event_gap where drawn_before is not null"))], []);
  await cure();
  for (let times = 0; times < 3; times += 1) await retry(10);
  t.strictSame(await look(), { feed: 2, posted: 2, waiting: 0, stuck: 0 });
  t.ok(await isInOrder());
});

t.test("events that wait cost the steps of the others nothing", async (t) => {
  const { psql, worker, poison, redeem } = await start(t);
  await poison();
  const count = async () => {
    const reads: number[] = [];
    for (const text of ["jobs.sequence_events(1000)", "jobs.close_days(10)", "jobs.read_metrics()"]) {
      await worker.run("begin");
      const before = await readCounts(worker);
      await worker.rows(`select ${text}`);
      reads.push((await readCounts(worker)).rows - before.rows);
      await worker.run("commit");
    }
    return reads;
  };
  await redeem();
  await takeStep(worker);
  await count();
  const before = await count();
  // More that wait, as if they had been written.
  await psql.run(
    `insert into core.event_gap (event_seq, tenant_id, party_id)
     select event_seq - n, tenant_id, party_id from core.event_gap, generate_series(1, 2000) n`,
  );
  t.strictSame(await count(), before);
  await psql.run("delete from core.event_gap where event_seq not in (select event_seq from rules.event)");
});

type Poison = {
  /** SQL with triggers off; $1: the tenant. */
  sql: string;
  /** What waits then, as in report.stuck_work. */
  stuck: { work: string; reason: RegExp };
  /** SQL with triggers off, or what `apply` changes of the party. */
  cure: string | ((url: string) => object);
  /** The zone of its party stays as it is. */
  keepsZone?: true;
};

const ofTenant = "(select tenant_id from core.tenant where external_id = $1)";
const newestBatch = `(select max(batch_id) from core.batch where tenant_id = ${ofTenant})`;
const newestLock = `(select coupon_id from core.redemption where tenant_id = ${ofTenant} and status = 'LOCKED')`;
const poisons: Record<string, Poison> = {
  "a time zone that the server does not know": {
    sql: `update core.party set time_zone = '${unknownZone}' where tenant_id = ${ofTenant}`,
    stuck: { work: "events", reason: /^time zone "Asia\/Atlantis" not recognized$/ },
    cure: () => ({ time_zone: "Asia/Kolkata" }),
    keepsZone: true,
  },
  "a lock of a coupon that is voided": {
    sql: `update core.coupon set status = 'VOIDED' where coupon_id = ${newestLock}`,
    stuck: { work: "locks", reason: /it cannot change from VOIDED to ISSUED/ },
    cure: `update core.coupon set status = 'LOCKED' where coupon_id = ${newestLock}`,
  },
  "a lock of a coupon that is not locked": {
    sql: `update core.redemption r set coupon_id = c.coupon_id, lock_expires_at = now() + interval '1 hour'
      from core.coupon c
      where r.tenant_id = ${ofTenant} and r.status = 'LOCKED'
        and c.tenant_id = r.tenant_id and c.status = 'ISSUED' and c.valid_to < now()`,
    stuck: { work: "expiry", reason: /is EXPIRED, but its live redemption is LOCKED/ },
    cure: `update core.redemption r set coupon_id = c.coupon_id, lock_expires_at = now()
      from core.coupon c
      where r.tenant_id = ${ofTenant} and r.status = 'LOCKED' and c.tenant_id = r.tenant_id and c.status = 'LOCKED'`,
  },
  "a coupon whose number is not minted yet": {
    sql: `insert into core.coupon
        (tenant_id, batch_id, number, coupon_id, lookup_hash, valid_from, valid_to, created_at)
      select tenant_id, batch_id, 1, gen_random_uuid(), gen_random_uuid(), valid_from, valid_to, now()
      from core.batch where batch_id = ${newestBatch}`,
    stuck: { work: "mint", reason: /"number_is_unique_in_batch"/ },
    cure: `delete from core.coupon where batch_id = ${newestBatch}`,
  },
  "a ledger entry in an unknown currency": {
    sql: `update core.ledger_entry set currency = 'XQZ' where tenant_id = ${ofTenant}`,
    stuck: { work: "statement", reason: /"statement_line_currency_fkey"/ },
    cure: `update core.ledger_entry set currency = 'EUR' where tenant_id = ${ofTenant}`,
  },
  "a secret that does not open": {
    sql: `update core.webhook set sealed_secret = '1' where tenant_id = ${ofTenant}`,
    stuck: { work: "webhook", reason: /a sealed secret is too short/ },
    cure: (url) => ({ webhook: { url, secret: newWebhookSecret() } }),
  },
};

/** A tenant with one distributor. `poison`: what happens to it; null: it stays healthy. */
type Tenant = {
  id: string;
  party: string;
  poison: Poison | null;
  by: Caller;
  coupons: Coupon[];
  /** The ID of its newest batch. */
  batch: string;
};

// The healthy tenants are the first and the last.
async function arrangeTenants(world: Scenario, url: string) {
  const kinds = [null, ...Object.values(poisons), null];
  const makeDocument = (index: number, changes: object = {}) => ({
    id: `ten_w${index}`,
    name: "W",
    variant: "A",
    parties: [party(`pty_w${index}`, { webhook: { url: `${url}/${index}` }, ...changes })],
    merchants: [merchant(`mch_w${index}`, `pty_w${index}`)],
    templates: [template(`tpl_w${index}`, `pty_w${index}`)],
    credentials: [credential(`ak_w${index}`)],
  });
  await world.apply({ tenants: kinds.map((_, index) => makeDocument(index)) });
  const tenants: Tenant[] = [];
  for (const [index, poison] of kinds.entries()) {
    const by = world.as(`ak_w${index}`, `mch_w${index}`);
    const { coupons } = await world.makeBatch(by, `tpl_w${index}`, 3);
    // The first event of its feed.
    await by.ok.redeem(coupons.pop()!);
    const { batch } = await by.ok.createBatch(`tpl_w${index}`, 1);
    tenants.push({ id: `ten_w${index}`, party: `pty_w${index}`, poison, by, coupons, batch: batch.external_id });
  }
  await world.mint();
  return { tenants, urlOf: (index: number) => `${url}/${index}`, makeDocument };
}

// An entry, a lock that has expired, a released batch that has ended, and a batch to mint.
async function happen(psql: Session, tenants: Tenant[]): Promise<void> {
  for (const [index, { by, coupons, batch }] of tenants.entries()) {
    const [redeemed, locked] = coupons as [Coupon, Coupon];
    await by.ok.redeem(redeemed);
    await by.ok.lock(locked);
    await by.ok.allocateBatch(batch);
    await by.ok.createBatch(`tpl_w${index}`, 1);
  }
  await psql.run(`
    update core.redemption set lock_expires_at = clock_timestamp() where status = 'LOCKED';
    update core.batch set valid_to = '2020-01-02' where status = 'ALLOCATED' and total_count = 1;
    update core.coupon c set valid_to = b.valid_to from core.batch b where b.batch_id = c.batch_id`);
}

// What has happened to each tenant, as text.
async function readStates({ owner }: Scenario): Promise<Map<string, string>> {
  const rows = await owner.rows<{ tenant: string; state: string }>(
    `select t.external_id as tenant, format('%s events, %s lapsed, %s expired, %s minted, %s delivered, %s closed',
       (select last_position from core.feed f where f.tenant_id = t.tenant_id),
       (select count(*) from core.redemption r where r.tenant_id = t.tenant_id and r.status = 'LAPSED'),
       (select count(*) from core.coupon c where c.tenant_id = t.tenant_id and c.status = 'EXPIRED'),
       (select count(*) from core.batch b where b.tenant_id = t.tenant_id and b.status <> 'PENDING'),
       (select count(*) from core.delivery_attempt a where a.tenant_id = t.tenant_id and a.http_status = 204),
       (select count(*) from core.statement s where s.tenant_id = t.tenant_id and s.ready_at is not null)) as state
     from core.tenant t`,
  );
  return new Map(rows.map(({ tenant, state }) => [tenant, state]));
}

type Line = Record<string, unknown>;

async function whileWorking({ address, keys }: Scenario, act: (log: Line[]) => Promise<void>): Promise<void> {
  const { logger, log } = createStubLog();
  const config = readConfig({ WEBHOOK_ALLOW: loopbackOnly.join() });
  const worker = await work({ address, keys, config, log: logger });
  try {
    await act(log);
  } finally {
    await worker.stop();
  }
}

async function listStuck({ owner }: Scenario): Promise<Line[]> {
  return [...(await owner.rows<Line>("select work, tenant, party, reason from jobs.list_stuck_work() order by party"))];
}

/** Each poisoned party is in the report and in the log, with its kind of work and its reason, and no other party is. */
async function checkNamed(t: Test, world: Scenario, tenants: Tenant[], log: Line[]): Promise<void> {
  const named = tenants.flatMap(({ id, party: owner, poison }) =>
    poison === null ? [] : [{ tenant: id, party: owner, ...poison.stuck }],
  );
  await waitUntil("all to be named", async () => (await listStuck(world)).length >= named.length);
  fits(t, await listStuck(world), named);
  const listLogged = () => log.filter(({ msg }) => msg === "work is stuck; only this party waits");
  await waitUntil("the log to name them", () => listLogged().length >= named.length);
  fits(
    t,
    listLogged().toSorted((one, other) => (one["party"]! < other["party"]! ? -1 : 1)),
    named.map((one) => ({ level: 50, ...one })),
  );
}

t.test("a row that no work can use stops nobody else; its party is named, and goes on once it is cured", async (t) => {
  const receiver = await startReceiver(t);
  const world = await scenario(t, { file: null });
  const psql = await world.openPsql({ triggers: false });
  const { tenants, urlOf, makeDocument } = await arrangeTenants(world, receiver.url);
  const setZones = async (days: number) => {
    for (const one of tenants)
      if (!one.poison?.keepsZone) await setZone(world, one.party, zoneOf(noonOffset() + days * daySeconds));
  };
  const untilAllAre = (state: string, some: Tenant[]) =>
    waitUntil(`${some.length} tenants to have ${state}`, async () => {
      const states = await readStates(world);
      return some.every(({ id }) => states.get(id) === state);
    });
  await setZones(0);
  // Opens the books.
  await world.steps.sequence();
  await happen(psql, tenants);
  for (const { id, poison } of tenants) if (poison !== null) await psql.rows(poison.sql, [id]);

  const [open, closed] = ["8 delivered, 0 closed", "9 delivered, 1 closed"].map(
    (rest) => `3 events, 1 lapsed, 1 expired, 3 minted, ${rest}`,
  ) as [string, string];
  const healthy = tenants.filter(({ poison }) => poison === null);
  await whileWorking(world, async (log) => {
    await untilAllAre(open, healthy);
    await setZones(1);
    await untilAllAre(closed, healthy);
    await checkNamed(t, world, tenants, log);
    const states = await readStates(world);
    for (const { id, poison } of tenants) if (poison !== null) t.not(states.get(id), closed, `${id} waits`);
  });

  for (const [index, { id, poison }] of tenants.entries()) {
    if (poison === null) continue;
    if (typeof poison.cure === "string") await psql.rows(poison.cure, [id]);
    else await world.apply({ tenants: [makeDocument(index, poison.cure(urlOf(index)))] });
  }
  // The pauses before the next attempt are over.
  await psql.run(`
    update core.stuck_work set tried_at = tried_at - interval '5 minutes';
    update core.webhook set holder = null, worker = null;
    update core.batch set mint_holder = null, mint_worker = null, mint_lease_until = null;
    update core.delivery set next_attempt_at = now()`);
  await whileWorking(world, async () => {
    await waitUntil("nothing to be stuck", async () => (await listStuck(world)).length === 0);
    for (const { party: owner } of tenants) await setZone(world, owner, zoneOf(noonOffset() + daySeconds));
    await untilAllAre(closed, tenants);
  });
});

t.test("apply names the path of a time zone that only the server does not know", async (t) => {
  const world = await scenario(t, { file: null });
  const document = provisioning.parse({
    tenants: [1, 2].map((n) => ({ id: `ten_${n}`, name: "A", variant: "A", parties: [party(`pty_${n}`)] })),
  });
  // It is set after the check of the programs, which ask Node.
  document.tenants[1]!.parties[0]!.time_zone = unknownZone;
  const refused = world.owner.rows("select admin.apply($1::text::jsonb)", [JSON.stringify(document)]);
  const error = await refused.catch((caught: unknown) => caught);
  const message = "the database server does not know this time zone";
  t.strictSame(JSON.parse(sqlDetail(error)!), [{ path: "tenants.1.parties.0.time_zone", message }]);
  t.strictSame([...(await world.owner.rows("select from core.tenant"))], [], "nothing is changed");
});
