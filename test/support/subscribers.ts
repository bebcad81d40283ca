// Distributors with webhooks, events for them, and a worker's hands to deliver these.
import type { Test } from "tap";
import { createAddressRule } from "../../src/worker/address-rule.ts";
import { connect } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { createDeliverer, type Subscriber } from "../../src/worker/tasks/deliver.ts";
import { createSender } from "../../src/worker/webhook-sender.ts";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { secretOf } from "./provisioning.ts";
import { startService, type Running } from "./service.ts";

export const tenant = "ten_w";
export const loopbackOnly = ["127.0.0.0/8"];

export type Subscribed = {
  service: Running;
  worker: Database;
  // By party: pty_s1, pty_s2 …
  secrets: Map<string, string>;
  // As many events for a party (or for each of several), in order, each with a delivery; their ids.
  happen(party: string | string[], count: number): Promise<string[]>;
  // Gives what has happened its deliveries.
  sequence(): Promise<void>;
};
type DeliveryRow = {
  event: string;
  party: string;
  status: string;
  attempt_count: number;
  last_error: string | null;
  // From the last attempt to the next one.
  pause_seconds: number;
  is_due: boolean;
};

// One party for each URL; coupons wait for each, `supply` of them, to be voided one by one.
export async function subscribe(t: Test, urls: string[], supply = 20): Promise<Subscribed> {
  const parties = urls.map((url, index) => ({ id: `pty_s${index + 1}`, url, secret: newWebhookSecret() }));
  const service = await startService(t, {
    tenants: [
      {
        id: tenant,
        name: "W",
        variant: "B",
        parties: [
          { id: "pty_maker", name: "maker" },
          ...parties.map(({ id, url, secret }) => ({ id, name: id, webhook: { url, secret } })),
        ],
        templates: parties.map(({ id }) => ({
          id: `tpl_${id.slice(4)}`,
          name: id,
          maker: "pty_maker",
          distributor: id,
          currency: "EUR",
          discount: { type: "fixed", amount: 5 },
          valid_from: "2020-01-01T00:00:00Z",
          valid_to: "2099-01-01T00:00:00Z",
        })),
        credentials: [
          { access_key: "ak_maker", secret: secretOf("ak_maker"), party: "pty_maker" },
          ...parties.map(({ id }) => ({ access_key: `ak_${id}`, secret: secretOf(`ak_${id}`), party: id })),
        ],
      },
    ],
  });
  const worker = openWorker(t, service);
  const coupons = new Map<string, string[]>();
  for (const { id } of parties)
    coupons.set(id, (await service.makeBatch(service.as("ak_maker"), `tpl_${id.slice(4)}`, supply)).couponIds);

  async function sequence(): Promise<void> {
    let isDrained = false;
    while (!isDrained) {
      const [row] = await worker.rows<{ sequenced: number; is_drained: boolean }>(
        "select sequenced, is_drained from jobs.sequence_events(1000)",
      );
      isDrained = row!.is_drained && row!.sequenced === 0;
    }
  }

  async function happen(party: string | string[], count: number): Promise<string[]> {
    const voided = [party].flat().flatMap((one) => coupons.get(one)!.splice(0, count));
    if (voided.length < [party].flat().length * count) throw new Error("no coupons left to void");
    await service.admin.rows("select admin.void_coupon($1, c, 'to have an event') from unnest($2::text[]) c", [
      tenant,
      voided,
    ]);
    await sequence();
    const rows = await service.owner.rows<{ event: string }>(
      "select event from report.event where event_type = 'coupon.voided' and coupon = any ($1::text[]) order by event_seq",
      [voided],
    );
    return rows.map(({ event }) => event);
  }

  await sequence();
  // The allocations of these batches have been told, as far as these tests go.
  await service.owner.rows("delete from core.delivery");
  return { service, worker, secrets: new Map(parties.map(({ id, secret }) => [id, secret])), happen, sequence };
}

export function openWorker(t: Test, service: Running): Database {
  const database = connect(service.address, { name: "coupon test worker", role: "coupon_worker", max: 2 });
  t.teardown(() => database.end());
  return database;
}

// A worker without its clockwork: delivers what is due until nothing is.
export function startDeliverer(
  { service }: Subscribed,
  database: Database,
  { allow = loopbackOnly, timeoutMs = 15_000, stopping = new AbortController().signal } = {},
) {
  const send = createSender({ mayConnect: createAddressRule(allow), timeoutMs });
  const outcomes: string[] = [];
  const deliverer = createDeliverer({
    database,
    keys: service.keys,
    send,
    stopping,
    onAttempt: (outcome) => outcomes.push(outcome),
  });
  async function drain(): Promise<void> {
    for (let due = await deliverer.listDue(); due.length > 0; due = await deliverer.listDue())
      await Promise.all(due.map((one) => deliverer.deliver(one)));
  }
  return { ...deliverer, drain, outcomes };
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
              - (select max(a.attempted_at) from report.delivery_attempt a where a.event = d.event))::float as pause_seconds
     from report.delivery d join core.event e on rules.format_id('evt', e.event_id) = d.event
     order by e.event_seq`,
  );
  return rows.map((row) => ({ ...row }));
}

export async function listAttempts({ service }: Subscribed) {
  const rows = await service.owner.rows<{
    event: string;
    party: string;
    attempt: number;
    http_status: number | null;
    error: string | null;
    duration_ms: number;
  }>(
    `select event, party, attempt, http_status, error, duration_ms from report.delivery_attempt a order by attempted_at, attempt, event`,
  );
  return rows.map((row) => ({ ...row }));
}

// Time passes for whoever waits: what waits for its next attempt is due, no pause or lease is left.
export async function passTime({ service }: Subscribed): Promise<void> {
  await service.owner.rows("update core.delivery set next_attempt_at = clock_timestamp() where parked_at is null");
  await service.owner.rows(
    "update core.webhook set paused_until = null, lease_until = clock_timestamp() where holder is null or lease_until <= clock_timestamp()",
  );
}
