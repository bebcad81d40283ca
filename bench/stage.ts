// A database with the tenant of the benches, its coupons minted by the real worker, and the service in front of it, each
// program a process of its own.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { apply } from "../src/apply.ts";
import { createClient, type Client } from "../src/client.ts";
import { connect, type Address, type Database } from "../src/database.ts";
import { parseMasterKeys, type MasterKeys } from "../src/keys.ts";
import { migrate } from "../src/migrate.ts";
import { createDeck, type Deck } from "./deck.ts";
import { checkLaws } from "./laws.ts";
import type { Measured } from "./measure.ts";
import { startProgram, type Program } from "./programs.ts";
import { urlOf, type Server } from "./server.ts";
import { accessKey, secret, template, tenantDocument, type Subscriber } from "./tenant.ts";

export type Stage = {
  address: Address;
  folder: string;
  keys: MasterKeys;
  owner: Database;
  admin: Database;
  tenantId: number;
  credentialId: number;
  url: string;
  client: Client;
  measured: Measured;
  startWorker(): Promise<Program>;
  // Submits a batch, and answers its id.
  submit(count: number, distributor?: string): Promise<string>;
  // Minted: until the worker is done with it. Released: for redemption.
  untilMinted(batch: string): Promise<void>;
  release(batch: string): Promise<void>;
  // A batch from the beginning to the end, and its coupons shuffled.
  makeDeck(count: number, distributor?: string): Promise<Deck>;
  // Sequences what is left, looks at the laws, and drops everything.
  close(): Promise<void>;
};

export async function openStage(server: Server, subscribers: Subscriber[] = []): Promise<Stage> {
  const { address, drop } = await server.createDatabase();
  await migrate(address);
  const masterKeyText = randomBytes(32).toString("base64");
  const keys = parseMasterKeys(masterKeyText);
  const [owner, admin] = ["coupon_owner", "coupon_admin"].map((role) => connect(address, { name: "coupon bench", role, max: 2 })) as [Database, Database];
  await apply(admin, keys, tenantDocument(subscribers));
  const [caller] = await owner.rows<{ tenant_id: number; credential_id: number }>("select tenant_id, credential_id from gate.find_credential($1)", [accessKey]);
  const env = { DATABASE_URL: urlOf(address), COUPON_MASTER_KEY: masterKeyText, PORT: "0", WEBHOOK_ALLOW: "127.0.0.0/8" };
  const service = await startProgram("serve", server.folder, env);
  const client = createClient({ url: service.url, accessKey, secret });
  let count = 0;

  async function must(path: string, body: object): Promise<any> {
    const answer = await client.post(path, { request_id: `stage-${(count += 1)}`, ...body });
    if (answer.status !== 200) throw new Error(`${path}: ${answer.text}`);
    return answer.json;
  }

  const stage: Stage = {
    address, folder: server.folder, keys, owner, admin, client,
    tenantId: caller!.tenant_id,
    credentialId: caller!.credential_id,
    url: service.url,
    measured: { owner, postmasterPid: server.postmasterPid, servePid: service.pid },
    startWorker: () => startProgram("work", server.folder, env),
    async submit(total, distributor) {
      const { batch } = await must("/v1/batches", { template, total_count: total, ...(distributor !== undefined && { distributor }) });
      return batch.external_id as string;
    },
    async untilMinted(batch) {
      for (;;) {
        const [row] = await owner.rows<{ status: string }>("select b.status from core.batch b where b.external_id = $1", [batch]);
        if (row!.status !== "PENDING") return;
        await sleep(20);
      }
    },
    release: (batch) => must("/v1/batches/allocate", { batch }),
    async makeDeck(total, distributor) {
      const batch = await stage.submit(total, distributor);
      const worker = await stage.startWorker();
      await stage.untilMinted(batch);
      await stage.release(batch);
      await worker.stop();
      return createDeck({ owner, keys, batch });
    },
    async close() {
      try {
        await checkLaws(address);
      } finally {
        await service.stop();
        await Promise.all([owner.end(), admin.end()]);
        await drop();
      }
    },
  };
  return stage;
}
