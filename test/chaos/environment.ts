// All that takes part: PostgreSQL, the API and the worker as programs of their own under a supervisor, the proxies between them,
// the subscriber, the readers of the feeds, and coupons to work with.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { apply } from "../../src/commands/apply.ts";
import { createClient, type Reply } from "../../src/commands/client.ts";
import { exportCodes } from "../../src/commands/codes.ts";
import { connect } from "../../src/database/connect.ts";
import { type Address, formatUrl } from "../../src/common/database-address.ts";
import type { Database } from "../../src/database/types.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { newWebhookSecret } from "../../src/crypto/webhook-signature.ts";
import type { Piles } from "./clients.ts";
import { findFreePort, makePostgres, type Postgres } from "./postgres.ts";
import { startProxy, type Proxy } from "./proxy.ts";
import { startReceiver, type Receiver } from "./receiver.ts";
import { supervise, type Supervised } from "./supervisor.ts";
import { readers, secretOf, tenantDocument, tenants, type Variant } from "./tenants.ts";

export type Stage = {
  // For clients: through their proxy.
  url: string;
  postgres: Postgres;
  // Past the proxy, as a superuser.
  address: Address;
  owner: Database;
  api: Supervised;
  worker: Supervised;
  clientProxy: Proxy;
  databaseProxy: Proxy;
  receiver: Receiver;
  piles: Piles;
  // The feeds as they were read from the beginning, whatever happened meanwhile.
  feeds: Record<Variant, string[]>;
  submit(variant: Variant, count: number, template?: string): Promise<string>;
  stop(): Promise<void>;
};

const shortShare = 0.1;

// coupons: of each tenant. Without a subscriber nobody waits for the minute in which deliveries pause after an error.
export async function openStage(coupons: number, { isSubscribed = true } = {}): Promise<Stage> {
  const postgres = await makePostgres();
  const ends: (() => unknown)[] = [() => postgres.remove()];
  const stop = async (): Promise<void> => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  try {
    return await furnish(postgres, { coupons, isSubscribed }, ends, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function furnish(
  postgres: Postgres,
  { coupons, isSubscribed }: { coupons: number; isSubscribed: boolean },
  ends: (() => unknown)[],
  stop: Stage["stop"],
): Promise<Stage> {
  await postgres.start();
  const address: Address = { host: "127.0.0.1", port: postgres.port, user: "postgres", database: "coupon" };
  await migrate(address);
  const owner = connect(address, { name: "coupon chaos", max: 4 });
  ends.push(() => owner.end());
  await prepareDatabase(owner, postgres.smallDisk);

  const receiver = await startReceiver();
  const [databaseProxy, apiPort, masterKeyText] = [
    await startProxy(postgres.port),
    await findFreePort(),
    randomBytes(32).toString("base64"),
  ];
  const clientProxy = await startProxy(apiPort);
  ends.push(receiver.stop, databaseProxy.stop, clientProxy.stop);
  const keys = parseMasterKeys(masterKeyText);
  await apply(owner, keys, tenantDocument(isSubscribed ? { url: receiver.url, secret: newWebhookSecret() } : null));

  const env = (login: string) => ({
    DATABASE_URL: formatUrl({ ...address, user: login, port: databaseProxy.port }),
    COUPON_MASTER_KEY: masterKeyText,
    PORT: String(apiPort),
    WEBHOOK_ALLOW: "127.0.0.0/8",
    LOG_LEVEL: "info",
    CHAOS_CLOCK_OFF_MS: String(6 * 60_000),
  });
  const api = await supervise("serve", postgres.folder, env("serve"));
  ends.push(api.stop);
  const worker = await supervise("work", postgres.folder, env("work"));
  ends.push(worker.stop);

  const url = `http://127.0.0.1:${clientProxy.port}`;
  let count = 0;
  async function must(accessKey: string, target: string, body: object): Promise<any> {
    const answer = await createClient({ url, accessKey, secret: secretOf(accessKey) }).post(target, {
      request_id: `s-${(count += 1)}`,
      ...body,
    });
    if (answer.status !== 200) throw new Error(`${target}: ${answer.text}`);
    return answer.json;
  }
  const submit = async (variant: Variant, total: number, template = tenants[variant].template): Promise<string> =>
    (await must(tenants[variant].maker, "/v1/batches", { template, total_count: total })).batch.external_id;

  async function makePile(variant: Variant, total: number, template: string): Promise<string[]> {
    const batch = await submit(variant, total, template);
    const statusOf = async () =>
      (await owner.rows<{ status: string }>("select b.status from core.batch b where b.external_id = $1", [batch]))[0]!
        .status;
    while ((await statusOf()) === "PENDING") await sleep(50);
    await must(tenants[variant].maker, "/v1/batches/allocate", { batch });
    return (await Array.fromAsync(exportCodes(owner, keys, batch, true))).flat().map(({ code }) => code);
  }
  const makePiles = async (variant: Variant) => ({
    usual: await makePile(variant, coupons, tenants[variant].template),
    short: await makePile(variant, Math.ceil(coupons * shortShare), tenants[variant].shortTemplate),
  });
  const [A, B] = await Promise.all([makePiles("A"), makePiles("B")]);

  const feeds: Record<Variant, string[]> = { A: [], B: [] };
  const reading = new AbortController();
  const read = (["A", "B"] as const).map((variant) => readFeed(url, variant, feeds[variant], reading.signal));
  ends.push(() => (reading.abort(), Promise.all(read)));
  return {
    url,
    postgres,
    address,
    owner,
    api,
    worker,
    clientProxy,
    databaseProxy,
    receiver,
    piles: { A, B },
    feeds,
    submit,
    stop,
  };
}

// The logins that a deployment has, and the tables that grow on the disk that can be filled.
async function prepareDatabase(owner: Database, smallDisk: string | null): Promise<void> {
  await owner.rows("create extension amcheck");
  await owner.rows("create role serve login in role coupon_api");
  await owner.rows("create role work login in role coupon_worker");
  if (smallDisk === null) return;
  await owner.rows(`create tablespace small location '${smallDisk}'`);
  for (const table of ["request", "redemption", "event"])
    await owner.rows(`alter table core.${table} set tablespace small`);
}

// Goes on from its cursor after whatever happened; a page once read is never read again.
async function readFeed(url: string, variant: Variant, events: string[], stopping: AbortSignal): Promise<void> {
  const client = createClient({ url, accessKey: readers[variant], secret: secretOf(readers[variant]) });
  let cursor: string | null = null;
  while (!stopping.aborted) {
    const answer: Reply | null = await Promise.race([
      client
        .get(`/v1/events?limit=1000${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`)
        .catch(() => null),
      sleep(10_000, null),
    ]);
    if (answer?.status === 200) {
      events.push(...(answer.json.events as { event_id: string }[]).map(({ event_id }) => event_id));
      cursor = answer.json.next_cursor;
    }
    await sleep(500);
  }
}
