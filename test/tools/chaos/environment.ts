// The environment of a run: PostgreSQL as `npm start` runs it, the API and the worker as supervised processes, proxies
// between them, a webhook subscriber, readers of the feeds, and coupons.
import { readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Address } from "../../../src/config/database-address.ts";
import { newWebhookSecret } from "../../../src/crypto/webhook-signature.ts";
import { connect } from "../../../src/database/connect.ts";
import { findPostmaster } from "../../../src/embedded/postmaster.ts";
import { migrate } from "../../../src/migration/migrate.ts";
import { findFreePort } from "../../support/listen.ts";
import { environmentOf } from "../../support/program.ts";
import { startProxy } from "../../support/proxy.ts";
import { startReceiver } from "../../support/receiver.ts";
import { scenario, type Scenario, type Teardown } from "../../support/scenario.ts";
import { createClient } from "../../support/client.ts";
import { startTemporaryServer } from "../../support/temporary-server.ts";
import { party, secretOf, template as templateOf } from "../../support/tenants.ts";
import { supervise } from "./supervisor.ts";
import type { Subject } from "./operations.ts";
import { lockSecondsOf, tenants, usualTemplate, type Variant } from "./workload.ts";

export type Environment = Awaited<ReturnType<typeof openEnvironment>>;

const variants = ["A", "B"] as const;
const templates = Object.keys(lockSecondsOf);

// count: of coupons per tenant. Without a subscriber a run need not wait for the minute by which deliveries pause after
// an error.
export async function openEnvironment(t: Teardown, count: number, { isSubscribed = true } = {}) {
  const server = await startTemporaryServer("coupon-chaos-", { shared_buffers: "256MB" });
  t.teardown(server.stop);
  const { address, temporaryFolder: logFolder } = server;
  await migrate(address);
  const owner = connect(address, { name: "coupon chaos", max: 4 });
  t.teardown(() => owner.end());
  // The logins of a deployment.
  await owner.rows("create role serve login in role coupon_api");
  await owner.rows("create role work login in role coupon_worker");

  const receiver = await startReceiver(t);
  const world = await scenario(t, { on: { address } });
  await world.apply(extraDocument(variants, isSubscribed ? receiver.url : null));
  const programs = await startPrograms(t, address, world.masterKeyText, logFolder);

  const [A, B] = [await makeCoupons(world, "A", count), await makeCoupons(world, "B", count)];
  return {
    ...programs,
    /** Bypasses the proxy, as a superuser. */
    address,
    owner,
    /** Where the programs write their logs. */
    logFolder,
    postmasterPid: () => findPostmaster(path.join(server.folder, "data"))!.pid,
    serverLog: () => readFileSync(path.join(server.folder, "server.log"), "utf8"),
    coupons: { A, B },
    /** The subscriber of both tenants. */
    receiver,
    /** The event IDs that a reader has pulled from each feed. */
    feeds: readFeeds(t, programs.url),
    /** Submits a batch and returns its ID. */
    async submit(variant: Variant, count: number): Promise<string> {
      const { batch } = await world.as(tenants[variant].maker).ok.createBatch(usualTemplate, count);
      return batch.external_id;
    },
  };
}

// Neighbours are of different templates.
export async function makeCoupons(world: Scenario, variant: Variant, count: number): Promise<Subject[]> {
  const made: Subject[][] = [];
  for (const template of templates) {
    const maker = world.as(tenants[variant].maker);
    const { id: batch, coupons } = await world.makeBatch(maker, template, count / templates.length);
    made.push(coupons.map(({ code, id }) => ({ code, id, batch, variant, template })));
  }
  return made[0]!.flatMap((_, index) => made.map((list) => list[index]!));
}

const clientOf = (url: string, accessKey: string) => createClient({ url, accessKey, secret: secretOf(accessKey) });

// Adds a subscriber to the distributor of usual tenants, and templates whose coupons are redeemable again after a
// reversal. url: of the subscriber; null: there is none.
export function extraDocument(of: readonly Variant[], url: string | null): object {
  const webhook = url === null ? null : { url, secret: newWebhookSecret() };
  const extra = (variant: Variant, maker: string, distributor: string) => ({
    id: tenants[variant].id,
    name: variant,
    variant,
    parties: [party(distributor, webhook === null ? {} : { webhook })],
    templates: Object.entries(lockSecondsOf).map(([template, lock_ttl_seconds]) =>
      templateOf(template, maker, { distributor, after_reversal: "reissued", lock_ttl_seconds }),
    ),
  });
  const all = { A: extra("A", "pty_a", "pty_a"), B: extra("B", "pty_maker", "pty_dist") };
  return { tenants: of.map((variant) => all[variant]) };
}

async function startPrograms(t: Teardown, { host, port }: Address, masterKeyText: string, logFolder: string) {
  const databaseProxy = await startProxy({ host, port });
  t.teardown(databaseProxy.stop);
  const apiPort = await findFreePort();
  const clientProxy = await startProxy({ host: "127.0.0.1", port: apiPort });
  t.teardown(clientProxy.stop);
  const env = (user: string) => ({
    ...environmentOf({
      address: { host: "127.0.0.1", port: databaseProxy.port, user, database: "coupon" },
      masterKeyText,
    }),
    PORT: String(apiPort),
    LOG_LEVEL: "info",
  });
  const api = await supervise("serve", logFolder, env("serve"));
  t.teardown(api.stop);
  const worker = await supervise("work", logFolder, env("work"));
  t.teardown(worker.stop);
  return { url: `http://127.0.0.1:${clientProxy.port}`, api, worker, clientProxy, databaseProxy };
}

// Each reader continues from its cursor after every error, and never reads a page twice.
export function readFeeds(t: Teardown, url: string): Record<Variant, string[]> {
  const feeds: Record<Variant, string[]> = { A: [], B: [] };
  let isStopping = false;
  const readers = variants.map(async (variant) => {
    const reader = clientOf(url, tenants[variant].reader);
    let cursor = "";
    while (!isStopping) {
      const pulled = reader.get(`/v1/events?limit=1000${cursor}`).catch(() => null);
      const answer = await Promise.race([pulled, sleep(10_000, null)]);
      if (answer?.status === 200) {
        feeds[variant].push(...answer.json.events.map(({ event_id }: { event_id: string }) => event_id));
        cursor = `&cursor=${encodeURIComponent(answer.json.next_cursor)}`;
      }
      await sleep(200);
    }
  });
  t.teardown(() => {
    isStopping = true;
    return Promise.all(readers);
  });
  return feeds;
}
