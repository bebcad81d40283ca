// Parties with webhooks, events for them, and what the tables know of their deliveries.
import type { Test } from "tap";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { connect } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import type { Subscriber } from "../../src/worker/tasks/deliver.ts";
import { farFromMidnight } from "./business-days.ts";
import type { Caller } from "./caller.ts";
import { scenario, type Scenario } from "./scenario.ts";
import { sequenceEvents } from "./sequence-events.ts";
import { credential, party, template } from "./tenants.ts";
import { openWorkerSession, type TestWorkerSession } from "./worker-session.ts";

/** Of subscribers in a database of their own. */
export const tenant = "ten_w";

export type Subscribed = {
  service: Scenario;
  session: TestWorkerSession;
  tenant: string;
  as(party: string): Caller;
  /** By party: pty_s1, pty_s2, … */
  secrets: Map<string, string>;
  /** Makes `count` events for each party, with a delivery each, and returns their IDs in order. */
  happen(party: string | string[], count: number): Promise<string[]>;
};
type DeliveryRow = {
  event: string;
  party: string;
  status: string;
  attempt_count: number;
  last_error: string | null;
  is_due: boolean;
  parked_at: string | null;
  /** From the last attempt to the next. */
  pause_seconds: number;
};

let tenants = 0;

/**
 * One party for each URL, with `supply` coupons to make events of: voiding a coupon makes an event. `on`: the parties
 * are a new tenant of that scenario, and whatever waits in it is dropped.
 */
export async function subscribe(
  t: Test,
  urls: string[],
  { supply = 20, on }: { supply?: number; on?: Scenario } = {},
): Promise<Subscribed> {
  // Tenants and access keys are unique in a database. The other names repeat in each tenant.
  const own = on === undefined ? tenant : `${tenant}${(tenants += 1)}`;
  const keyOf = (party: string) => `ak_${own}_${party}`;
  const parties = urls.map((url, index) => ({
    id: `pty_s${index + 1}`,
    template: `tpl_s${index + 1}`,
    webhook: { url, secret: newWebhookSecret() },
  }));
  const service = on ?? (await scenario(t, { file: null }));
  // No business day ends during a test: its statement would be delivered too.
  const zone = { time_zone: farFromMidnight() };
  const maker = party("pty_maker", zone);
  await service.apply({
    tenants: [
      {
        id: own,
        name: "W",
        variant: "B",
        parties: [maker, ...parties.map(({ id, webhook }) => party(id, { webhook, ...zone }))],
        templates: parties.map(({ id, template: name }) => template(name, maker.id, { distributor: id })),
        credentials: [maker, ...parties].map(({ id }) => credential(keyOf(id), id)),
      },
    ],
  });
  const session = await openWorkerSession(t, service.address);
  const coupons = new Map<string, string[]>();
  for (const { id, template: name } of parties) {
    const batch = await service.makeBatch(service.as(keyOf(maker.id)), name, supply);
    coupons.set(
      id,
      batch.coupons.map((coupon) => coupon.id),
    );
  }

  async function happen(party: string | string[], count: number): Promise<string[]> {
    const voided = [party].flat().flatMap((one) => coupons.get(one)!.splice(0, count));
    if (voided.length < [party].flat().length * count) throw new Error("no coupons left to void");
    return voidCoupons(service, own, voided);
  }

  await sequenceEvents(service.worker);
  // These tests ignore the events of the batches.
  await dropDeliveries(service);
  const secrets = new Map(parties.map(({ id, webhook }) => [id, webhook.secret]));
  return { service, session, tenant: own, as: (party) => service.as(keyOf(party)), secrets, happen };
}

/** Deletes deliveries that a test ignores. The table keeps them until they are accepted. */
export async function dropDeliveries({ openPsql }: Pick<Scenario, "openPsql">): Promise<void> {
  const psql = await openPsql({ triggers: false });
  await psql.run("delete from core.delivery");
  await psql.end();
}

/** Voids coupons of a tenant. Returns the IDs of their events in order. */
export async function voidCoupons(
  { admin, owner, worker }: Pick<Scenario, "admin" | "owner" | "worker">,
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

/** Another worker's connections. */
export function openWorker(t: Test, { address }: Pick<Scenario, "address">): Database {
  const database = connect(address, { name: "coupon test worker", role: "coupon_worker", max: 2 });
  t.teardown(() => database.end());
  return database;
}

export async function findSubscriber({ service, tenant: own }: Subscribed, party: string): Promise<Subscriber> {
  const [row] = await service.owner.rows<Subscriber>(
    `select tenant_id, p.party_id
     from core.party p join core.tenant t using (tenant_id)
     where (t.external_id, p.external_id) = ($1, $2)`,
    [own, party],
  );
  return { ...row! };
}

export async function listDeliveries({ service, tenant: own }: Subscribed): Promise<DeliveryRow[]> {
  const rows = await service.owner.rows<DeliveryRow>(
    `select d.event, d.party, d.status, d.attempt_count, d.last_error, d.next_attempt_at <= clock_timestamp() as is_due,
            d.parked_at::text,
            extract(epoch from d.next_attempt_at
              - (select max(a.attempted_at) from report.delivery_attempt a
                 where a.event = d.event))::float as pause_seconds
     from report.delivery d join rules.event e on rules.format_id('evt', e.event_id) = d.event
     where d.tenant = $1
     order by e.event_seq`,
    [own],
  );
  return rows.map((row) => ({ ...row }));
}

/** Of one party, or of all. */
export async function listAttempts({ service, tenant: own }: Subscribed, party: string | null = null) {
  const rows = await service.owner.rows<{
    event: string;
    attempt: number;
    http_status: number | null;
    error: string | null;
  }>(
    `select event, attempt, http_status, error from report.delivery_attempt
     where tenant = $1 and party = coalesce($2, party)
     order by attempted_at, attempt, event`,
    [own, party],
  );
  return rows.map((row) => ({ ...row }));
}

/** Of core.webhook. */
export async function readWebhook(fixture: Subscribed, party = "pty_s1") {
  const { tenant_id, party_id } = await findSubscriber(fixture, party);
  const [row] = await fixture.service.owner.rows<{
    url: string;
    disabled_at: string | null;
    paused_until: string | null;
    holder: string | null;
    worker: number | null;
    lease_until: string | null;
  }>(
    `select url, disabled_at::text, paused_until::text, holder::text, worker, lease_until::text
     from core.webhook where (tenant_id, party_id) = ($1, $2)`,
    [tenant_id, party_id],
  );
  return { ...row! };
}

/**
 * Time passes: waiting deliveries become due, and pauses end, except for a subscriber whose lease a worker still holds.
 * A live lease does not end.
 */
export async function passTime({ service }: Subscribed): Promise<void> {
  await service.owner.rows("update core.delivery set next_attempt_at = clock_timestamp() where parked_at is null");
  await service.owner.rows(
    `update core.webhook set paused_until = null, lease_until = clock_timestamp()
     where holder is null or lease_until <= clock_timestamp()`,
  );
}

/** Takes the lease as `holder`, by default of the worker whose session the fixture has. */
export async function claim(
  { service, session }: Subscribed,
  { tenant_id, party_id }: Subscriber,
  holder: string,
  limit = 10,
) {
  return service.worker.rows<{ event_id: string; external_id: string; attempt: number }>(
    "select event_id, external_id, attempt from jobs.lease_deliveries($1, $2, $3, $4, $5)",
    [tenant_id, party_id, session.number, holder, limit],
  );
}

/** Records failed attempts, as a worker does that holds the lease or has lost it. */
export function recordFailure(
  fixture: Subscribed,
  { tenant_id, party_id }: Subscriber,
  holder: string,
  ...deliveries: object[]
) {
  const outcome = { http_status: 404, error: null, is_taken: false, retry_after_seconds: null, is_gone: false };
  return fixture.service.worker.rows("select jobs.record_deliveries($1, $2, $3, $4::text::jsonb)", [
    tenant_id,
    party_id,
    holder,
    JSON.stringify(deliveries.map((delivery) => ({ duration_ms: 1, ...outcome, ...delivery }))),
  ]);
}
