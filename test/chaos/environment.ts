// The environment of a run: PostgreSQL, the API and the worker as supervised processes, proxies between them, a webhook
// subscriber, readers of the feeds, and coupons.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { apply } from "../../src/commands/apply.ts";
import { exportCodes } from "../../src/commands/codes.ts";
import { connect } from "../../src/database/connect.ts";
import type { Address } from "../../src/common/database-address.ts";
import type { Database } from "../../src/database/types.ts";
import { parseMasterKeys, type MasterKeys } from "../../src/crypto/keys.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import { createClient, type Reply } from "../support/signing-client.ts";
import { findFreePort } from "../support/listen.ts";
import { environmentOf } from "../support/program.ts";
import { secretOf } from "../support/tenants.ts";
import { waitUntil } from "../support/wait-until.ts";
import type { Pools } from "./clients.ts";
import { startProxy, type Proxy } from "../support/proxy.ts";
import { noteCredentials } from "../support/described-answers.ts";
import { startReceiver, type Receiver } from "./receiver.ts";
import { makeServer, type DatabaseServer } from "./server.ts";
import { supervise, type Supervised } from "./supervisor.ts";
import { tenantDocument, tenants, type Variant } from "./tenants.ts";

export type Environment = {
  // The API behind the clients' proxy.
  url: string;
  server: DatabaseServer;
  // Bypasses the proxy, as a superuser.
  address: Address;
  owner: Database;
  api: Supervised;
  worker: Supervised;
  clientProxy: Proxy;
  databaseProxy: Proxy;
  receiver: Receiver;
  pools: Pools;
  // The event IDs that a reader has pulled from each feed since the beginning.
  feeds: Record<Variant, string[]>;
  submit: Submit;
  stop(): Promise<void>;
};
type Submit = (variant: Variant, count: number, template?: string) => Promise<string>;
type Programs = Pick<Environment, "url" | "api" | "worker" | "clientProxy" | "databaseProxy">;
type Options = { coupons: number; isSubscribed: boolean };
type AtEnd = (...ends: (() => unknown)[]) => void;

const shortShare = 0.1;
const variants = ["A", "B"] as const;

// coupons: per tenant. Without a subscriber a run need not wait for the minute by which deliveries pause after an
// error.
export async function openEnvironment(coupons: number, { isSubscribed = true } = {}): Promise<Environment> {
  const server = await makeServer();
  const ends: (() => unknown)[] = [() => server.remove()];
  const stop = async (): Promise<void> => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  try {
    const parts = await startParts(server, { coupons, isSubscribed }, (...more) => void ends.push(...more));
    return { ...parts, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startParts(
  server: DatabaseServer,
  { coupons, isSubscribed }: Options,
  atEnd: AtEnd,
): Promise<Omit<Environment, "stop">> {
  await server.start();
  const address: Address = { host: "127.0.0.1", port: server.port, user: "postgres", database: "coupon" };
  await migrate(address);
  const owner = connect(address, { name: "coupon chaos", max: 4 });
  atEnd(() => owner.end());
  await prepareDatabase(owner, server.smallDisk);

  const receiver = await startReceiver();
  atEnd(receiver.stop);
  const masterKeyText = randomBytes(32).toString("base64");
  const keys = parseMasterKeys(masterKeyText);
  const tenants = tenantDocument(isSubscribed ? { url: receiver.url, secret: newWebhookSecret() } : null);
  noteCredentials(tenants);
  await apply(owner, keys, tenants);
  const programs = await startPrograms(server, masterKeyText, atEnd);

  const { submit, makePools } = createBatches(programs.url, owner, keys);
  const [A, B] = await Promise.all(variants.map((variant) => makePools(variant, coupons)));
  const feeds: Record<Variant, string[]> = { A: [], B: [] };
  const reading = new AbortController();
  const readers = variants.map((variant) => readFeed(programs.url, variant, feeds[variant], reading.signal));
  atEnd(() => (reading.abort(), Promise.all(readers)));
  return { ...programs, server, address, owner, receiver, pools: { A: A!, B: B! }, feeds, submit };
}

async function startPrograms(server: DatabaseServer, masterKeyText: string, atEnd: AtEnd): Promise<Programs> {
  const databaseProxy = await startProxy({ host: "127.0.0.1", port: server.port });
  const apiPort = await findFreePort();
  const clientProxy = await startProxy({ host: "127.0.0.1", port: apiPort });
  atEnd(databaseProxy.stop, clientProxy.stop);
  const env = (user: string) => ({
    ...environmentOf({
      address: { host: "127.0.0.1", port: databaseProxy.port, user, database: "coupon" },
      masterKeyText,
    }),
    PORT: String(apiPort),
    LOG_LEVEL: "info",
    CHAOS_CLOCK_OFF_MS: String(6 * 60_000),
  });
  const api = await supervise("serve", server.folder, env("serve"));
  atEnd(api.stop);
  const worker = await supervise("work", server.folder, env("work"));
  atEnd(worker.stop);
  return { url: `http://127.0.0.1:${clientProxy.port}`, api, worker, clientProxy, databaseProxy };
}

function createBatches(url: string, owner: Database, keys: MasterKeys) {
  let count = 0;
  // The checker ignores requests whose ID begins with s-.
  // Repeats a call that was answered 503, as clients do.
  const post = (accessKey: string, path: string, values: object) => {
    const body = { request_id: `s-${(count += 1)}`, ...values };
    const by = createClient({ url, accessKey, secret: secretOf(accessKey) });
    const tryIt = async () => {
      const { status, json, text } = await by.post(path, body);
      if (status !== 200 && status !== 503) throw new Error(`${path}: ${text}`);
      return status === 200 ? json : null;
    };
    return waitUntil(`a decision on ${path}`, tryIt, { everyMs: 200 });
  };
  const submit: Submit = async (variant, total, template = tenants[variant].template) =>
    (await post(tenants[variant].maker, "/v1/batches", { template, total_count: total })).batch.external_id;

  async function makePool(variant: Variant, total: number, template: string): Promise<string[]> {
    const batch = await submit(variant, total, template);
    const isMinted = async (): Promise<boolean> => {
      const [row] = await owner.rows<{ status: string }>("select status from core.batch where external_id = $1", [
        batch,
      ]);
      return row!.status !== "PENDING";
    };
    await waitUntil(`the coupons of ${batch}`, isMinted, { everyMs: 50 });
    await post(tenants[variant].maker, "/v1/batches/allocate", { batch });
    return (await Array.fromAsync(exportCodes(owner, keys, batch, true))).flat().map(({ code }) => code);
  }
  const makePools = async (variant: Variant, coupons: number) => ({
    usual: await makePool(variant, coupons, tenants[variant].template),
    short: await makePool(variant, Math.ceil(coupons * shortShare), tenants[variant].shortTemplate),
  });
  return { submit, makePools };
}

// Creates the logins of a deployment, and moves the tables that grow to the small disk.
async function prepareDatabase(owner: Database, smallDisk: string | null): Promise<void> {
  await owner.rows("create extension amcheck");
  await owner.rows("create role serve login in role coupon_api");
  await owner.rows("create role work login in role coupon_worker");
  if (smallDisk === null) return;
  await owner.rows(`create tablespace small location '${smallDisk}'`);
  for (const table of ["request", "redemption", "ledger_entry"])
    await owner.rows(`alter table core.${table} set tablespace small`);
}

// Continues from its cursor after every error, and never reads a page twice.
async function readFeed(url: string, variant: Variant, events: string[], stopping: AbortSignal): Promise<void> {
  const accessKey = tenants[variant].reader;
  const reader = createClient({ url, accessKey, secret: secretOf(accessKey) });
  let cursor: string | null = null;
  while (!stopping.aborted) {
    const target: string = `/v1/events?limit=1000${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`;
    const answer: Reply | null = await Promise.race([reader.get(target).catch(() => null), sleep(10_000, null)]);
    if (answer?.status === 200) {
      events.push(...(answer.json.events as { event_id: string }[]).map(({ event_id }) => event_id));
      cursor = answer.json.next_cursor;
    }
    await sleep(500);
  }
}
