// Distributors with webhooks, events for them, and the worker's delivery of these events.
import type { Test } from "tap";
import { createAddressRule } from "../../src/worker/address-rule.ts";
import { connect } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { createDeliverer, type Subscriber } from "../../src/worker/tasks/deliver.ts";
import { createSender } from "../../src/worker/webhook-sender.ts";
import type { WorkerSession } from "../../src/worker/worker-session.ts";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { noonOffset, setZone, zoneOf } from "./business-days.ts";
import { sequenceEvents } from "./sequence-events.ts";
import { startService, type Running } from "./service.ts";
import { createStubLog } from "./stub.ts";
import { openWorkerSession, type TestWorkerSession } from "./worker-session.ts";
import { credential, party, template } from "./tenants.ts";
import { dropDeliveries } from "./drop-deliveries.ts";

export const tenant = "ten_w";
export const loopbackOnly = ["127.0.0.0/8"];
// More than any test needs.
const mostRounds = 200;

export type Subscribed = {
  service: Running;
  worker: Database;
  session: TestWorkerSession;
  // By party: pty_s1, pty_s2, …
  secrets: Map<string, string>;
  // Makes `count` events for each party, with a delivery each, and returns their IDs in order.
  happen(party: string | string[], count: number): Promise<string[]>;
  // Sequences new events, which creates their deliveries.
  sequence(): Promise<void>;
};
type DeliveryRow = {
  event: string;
  party: string;
  status: string;
  attempt_count: number;
  last_error: string | null;
  // Seconds from the last attempt to the next.
  pause_seconds: number;
  is_due: boolean;
};

// One party for each URL, with `supply` coupons to make events of: voiding a coupon makes an event.
export async function subscribe(t: Test, urls: string[], supply = 20): Promise<Subscribed> {
  const parties = urls.map((url, index) => ({ id: `pty_s${index + 1}`, url, secret: newWebhookSecret() }));
  const service = await startService(t, {
    tenants: [
      {
        id: tenant,
        name: "W",
        variant: "B",
        parties: [party("pty_maker"), ...parties.map(({ id, url, secret }) => party(id, { webhook: { url, secret } }))],
        templates: parties.map(({ id }) => template(`tpl_${id.slice(4)}`, "pty_maker", { distributor: id })),
        credentials: [credential("ak_maker", "pty_maker"), ...parties.map(({ id }) => credential(`ak_${id}`, id))],
      },
    ],
  });
  const worker = openWorker(t, service);
  const session = await openWorkerSession(t, service.address);
  // No business day ends during a test: its statement would be delivered too.
  for (const { id } of parties) await setZone(service, id, zoneOf(noonOffset()));
  const coupons = new Map<string, string[]>();
  for (const { id } of parties)
    coupons.set(id, (await service.makeBatch(service.as("ak_maker"), `tpl_${id.slice(4)}`, supply)).couponIds);

  const sequence = () => sequenceEvents(worker);

  async function happen(party: string | string[], count: number): Promise<string[]> {
    const voided = [party].flat().flatMap((one) => coupons.get(one)!.splice(0, count));
    if (voided.length < [party].flat().length * count) throw new Error("no coupons left to void");
    return voidCoupons(service, worker, tenant, voided);
  }

  await sequence();
  // These tests ignore the events of the batches.
  await dropDeliveries(service.address);
  const secrets = new Map(parties.map(({ id, secret }) => [id, secret]));
  return { service, worker, session, secrets, happen, sequence };
}

/** Voids coupons of a tenant. Returns the IDs of their events in order. */
export async function voidCoupons(
  { admin, owner }: Running,
  worker: Database,
  tenantId: string,
  couponIds: string[],
): Promise<string[]> {
  await admin.rows("select admin.void_coupon($1, c, 'to have an event') from unnest($2::text[]) c", [
    tenantId,
    couponIds,
  ]);
  await sequenceEvents(worker);
  const rows = await owner.rows<{ event: string }>(
    `select event from report.event
     where event_type = 'coupon.voided' and coupon = any ($1::text[]) order by event_seq`,
    [couponIds],
  );
  return rows.map(({ event }) => event);
}

export function openWorker(t: Test, service: Running): Database {
  const database = connect(service.address, { name: "coupon test worker", role: "coupon_worker", max: 2 });
  t.teardown(() => database.end());
  return database;
}

async function readClock({ owner }: Running): Promise<string> {
  const [row] = await owner.rows<{ now: string }>("select clock_timestamp()::text as now");
  return row!.now;
}

// Whether all deliveries became due after that. On a busy machine, the retry of a failed one may be due already.
async function areYounger({ owner }: Running, since: string): Promise<boolean> {
  const [row] = await owner.rows<{ is_left: boolean }>(
    `select exists (select from core.test_delivery)
       or exists (select from core.delivery where parked_at is null and next_attempt_at <= $1::text::timestamptz)
       as is_left`,
    [since],
  );
  return !row!.is_left;
}

// session: of the worker that delivers. drain() delivers what is due when it is called, without the worker's timers.
export function startDeliverer(
  { service, session: ownSession }: Pick<Subscribed, "service" | "session">,
  database: Database,
  {
    allow = loopbackOnly,
    timeoutMs = 15_000,
    session = ownSession as WorkerSession,
    stopping = new AbortController().signal,
  } = {},
) {
  const { logger, log } = createStubLog();
  const send = createSender({ mayConnect: createAddressRule(allow), timeoutMs });
  const outcomes: string[] = [];
  const deliverer = createDeliverer({
    database,
    keys: service.keys,
    send,
    getSession: () => session,
    stopping,
    log: logger,
    onAttempt: (outcome) => outcomes.push(outcome),
  });
  async function drain(): Promise<void> {
    const since = await readClock(service);
    for (let round = 0; round < mostRounds; round += 1) {
      const due = await deliverer.listDue();
      const isOver = due.length === 0 || (await areYounger(service, since));
      if (isOver) return;
      await Promise.all(due.map((one) => deliverer.deliver(one)));
    }
    throw new Error(`deliveries are still due after ${mostRounds} rounds`);
  }
  return { ...deliverer, drain, outcomes, log };
}

export async function findSubscriber({ service }: Subscribed, party: string): Promise<Subscriber> {
  const [row] = await service.owner.rows<Subscriber>(
    "select p.tenant_id, p.party_id from core.party p where p.external_id = $1",
    [party],
  );
  return row!;
}

export async function listDeliveries({ service }: Subscribed): Promise<DeliveryRow[]> {
  const rows = await service.owner.rows<DeliveryRow>(
    `select d.event, d.party, d.status, d.attempt_count, d.last_error, d.next_attempt_at <= clock_timestamp() as is_due,
            extract(epoch from d.next_attempt_at
              - (select max(a.attempted_at) from report.delivery_attempt a
                 where a.event = d.event))::float as pause_seconds
     from report.delivery d join rules.event e on rules.format_id('evt', e.event_id) = d.event
     order by e.event_seq`,
  );
  return rows.map((row) => ({ ...row }));
}

// Of one party, or of all.
export async function listAttempts({ service }: Subscribed, party: string | null = null) {
  const rows = await service.owner.rows<{
    event: string;
    party: string;
    attempt: number;
    http_status: number | null;
    error: string | null;
    duration_ms: number;
  }>(
    `select event, party, attempt, http_status, error, duration_ms from report.delivery_attempt a
     where party = coalesce($1, party)
     order by attempted_at, attempt, event`,
    [party],
  );
  return rows.map((row) => ({ ...row }));
}

// Time passes: waiting deliveries become due, and pauses end, except for a subscriber whose lease a worker still holds.
// A live lease does not end.
export async function passTime({ service }: Subscribed): Promise<void> {
  await service.owner.rows("update core.delivery set next_attempt_at = clock_timestamp() where parked_at is null");
  await service.owner.rows(
    `update core.webhook set paused_until = null, lease_until = clock_timestamp()
     where holder is null or lease_until <= clock_timestamp()`,
  );
}

/** Parameters: tenant_id, party_id, number of the worker, holder. */
export const claimDeliveries = "select event_id, attempt from jobs.claim_deliveries($1, $2, $3, $4, 10)";

/** Records failed attempts, as a worker does that holds the lease or has lost it. */
export function recordFailure(
  fixture: Subscribed,
  { tenant_id, party_id }: Subscriber,
  holder: string,
  ...deliveries: object[]
) {
  const outcome = { http_status: 404, error: null, is_taken: false, retry_after_seconds: null, is_gone: false };
  return fixture.worker.rows("select jobs.record_deliveries($1, $2, $3, $4::text::jsonb)", [
    tenant_id,
    party_id,
    holder,
    JSON.stringify(deliveries.map((delivery) => ({ duration_ms: 1, ...outcome, ...delivery }))),
  ]);
}
