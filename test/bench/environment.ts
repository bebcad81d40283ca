// A database with the tenant of the benches, its coupons minted by the real worker, and the service in front of it, each
// program a process of its own.
import { randomBytes } from "node:crypto";
import { apply } from "../../src/commands/apply.ts";
import { createClient } from "../../src/commands/client.ts";
import { connect, openSession } from "../../src/database/connect.ts";
import { type Address, formatUrl } from "../../src/common/database-address.ts";
import type { Database } from "../../src/database/types.ts";
import { parseMasterKeys, type MasterKeys } from "../../src/crypto/keys.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { createDeck, createPile, type Deck } from "./coupon-pool.ts";
import { checkLaws } from "./invariants.ts";
import type { Measured } from "./measure.ts";
import { startProgram, type Program } from "./programs.ts";
import type { Server } from "./server.ts";
import { accessKey, secret, template, tenantDocument, type Subscriber } from "./tenant.ts";
import { until } from "./wait-until.ts";

export type Stage = {
  address: Address;
  folder: string;
  keys: MasterKeys;
  owner: Database;
  tenantId: number;
  credentialId: number;
  url: string;
  measured: Measured;
  startWorker(): Promise<Pick<Program, "stop">>;
  // Submits a batch, and answers its id. Its distributor: pty_bench unless said otherwise.
  submit(count: number, distributor?: string): Promise<string>;
  // A worker has to run beside.
  untilMinted(batch: string): Promise<void>;
  // For redemption.
  release(batch: string): Promise<void>;
  // A batch from the beginning to the end, and its coupons; more such batches when they are used up.
  makeDeck(count: number): Promise<Deck>;
  // Sequences what is left, looks at the laws, and drops everything.
  close(): Promise<void>;
};
type Parts = Pick<Stage, "address" | "folder" | "keys" | "url" | "startWorker"> &
  Omit<Measured, "owner"> & { subscribers?: Subscriber[]; end(): Promise<void> };

export async function openStage(server: Server, subscribers: Subscriber[] = []): Promise<Stage> {
  const { address, drop } = await server.createDatabase();
  await migrate(address);
  const masterKeyText = randomBytes(32).toString("base64");
  const env = {
    DATABASE_URL: formatUrl(address),
    COUPON_MASTER_KEY: masterKeyText,
    PORT: "0",
    WEBHOOK_ALLOW: "127.0.0.0/8",
  };
  const { folder, postmasterPid } = server;
  const service = await startProgram("serve", folder, env);
  return joinStage({
    address,
    folder,
    postmasterPid,
    subscribers,
    keys: parseMasterKeys(masterKeyText),
    url: service.url,
    servePid: service.pid,
    startWorker: () => startProgram("work", folder, env),
    async end() {
      await service.stop();
      await drop();
    },
  });
}

// On a service that runs already, without the tenant.
export async function joinStage({
  address,
  folder,
  keys,
  url,
  startWorker,
  postmasterPid,
  servePid,
  subscribers,
  end,
}: Parts): Promise<Stage> {
  const owner = connect(address, { name: "coupon bench", role: "coupon_owner", max: 2 });
  const admin = connect(address, { name: "coupon bench", role: "coupon_admin", max: 1 });
  await apply(admin, keys, tenantDocument(subscribers));
  await admin.end();
  const [caller] = await owner.rows<{ tenant_id: number; credential_id: number }>(
    "select tenant_id, credential_id from gate.find_credential($1)",
    [accessKey],
  );
  const client = createClient({ url, accessKey, secret });
  let count = 0;

  async function must(path: string, body: object): Promise<any> {
    const answer = await client.post(path, { request_id: `stage-${(count += 1)}`, ...body });
    if (answer.status !== 200) throw new Error(`${path}: ${answer.text}`);
    return answer.json;
  }

  const stage: Stage = {
    address,
    folder,
    keys,
    owner,
    url,
    startWorker,
    tenantId: caller!.tenant_id,
    credentialId: caller!.credential_id,
    measured: { owner, postmasterPid, servePid },
    async submit(total, distributor) {
      const { batch } = await must("/v1/batches", {
        template,
        total_count: total,
        ...(distributor !== undefined && { distributor }),
      });
      return batch.external_id as string;
    },
    async untilMinted(batch) {
      await until(`the coupons of ${batch}`, async () => {
        const [row] = await owner.rows<{ status: string }>(
          "select b.status from core.batch b where b.external_id = $1",
          [batch],
        );
        return row!.status === "PENDING" ? null : row!.status;
      });
    },
    release: (batch) => must("/v1/batches/allocate", { batch }),
    makeDeck: (total) =>
      createDeck(async () => {
        const batch = await stage.submit(total);
        const worker = await startWorker();
        await stage.untilMinted(batch);
        await stage.release(batch);
        await worker.stop();
        return createPile({ owner, keys, batch });
      }),
    async close() {
      try {
        await checkLaws(address);
      } finally {
        await owner.end();
        await end();
      }
    },
  };
  return stage;
}

// Fresh statistics, and no checkpoint in the rounds that follow.
export async function settle(stage: Stage): Promise<void> {
  const session = openSession(stage.address, { name: "coupon bench" });
  await session.run("vacuum analyze");
  await session.run("checkpoint");
  await session.end();
}
