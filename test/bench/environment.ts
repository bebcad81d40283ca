// What a benchmark works on: a database with the benchmark tenant, coupons minted by the real worker, and the service
// in front of it. Each program is a separate process.
import { randomBytes } from "node:crypto";
import { apply } from "../../src/commands/apply.ts";
import { connect, openSession } from "../../src/database/connect.ts";
import type { Address } from "../../src/common/database-address.ts";
import type { Database } from "../../src/database/types.ts";
import { parseMasterKeys, type MasterKeys } from "../../src/crypto/keys.ts";
import { migrate } from "../../src/migration/migrate.ts";
import { postOk } from "../support/client.ts";
import { startLoggedProgram } from "../support/logged-program.ts";
import { createClient } from "../support/signing-client.ts";
import { environmentOf } from "../support/program.ts";
import { waitUntil } from "../support/wait-until.ts";
import { noteCredentials } from "../support/watch-answers.ts";
import { createCouponPool, openBatch, type CouponPool } from "./coupon-pool.ts";
import { checkInvariants } from "./invariants.ts";
import type { Measured } from "./measure.ts";
import type { Server } from "./server.ts";
import { accessKey, secret, template, tenantDocument, type Subscriber } from "./tenant.ts";

export type Environment = {
  address: Address;
  folder: string;
  keys: MasterKeys;
  owner: Database;
  tenantId: number;
  credentialId: number;
  url: string;
  measured: Measured;
  // pid: null where the worker is a part of the service's process.
  startWorker(): Promise<{ pid: number | null; stop(): Promise<void> }>;
  // Submits a batch and returns its ID. The distributor is pty_bench by default.
  submit(count: number, distributor?: string): Promise<string>;
  // Needs a running worker.
  untilMinted(batch: string): Promise<void>;
  // Makes the batch redeemable.
  release(batch: string): Promise<void>;
  // Submits, mints and releases a batch. The pool mints more such batches when it is empty.
  makePool(count: number): Promise<CouponPool>;
  // Sequences the remaining events, checks the invariants, and drops the database.
  close(): Promise<void>;
};
type Parts = Pick<Environment, "address" | "folder" | "keys" | "url" | "startWorker"> &
  Omit<Measured, "monitor"> & { subscribers?: Subscriber[]; end(): Promise<void> };

// The slowest wait is for a mint of ten million coupons.
export const patience = { withinMs: 1_800_000 };

export async function openEnvironment(server: Server, subscribers: Subscriber[] = []): Promise<Environment> {
  const { address, drop } = await server.createDatabase();
  await migrate(address);
  const masterKeyText = randomBytes(32).toString("base64");
  const env = environmentOf({ address, masterKeyText });
  const { folder, postmasterPid } = server;
  const service = await startLoggedProgram("serve", folder, env);
  return joinEnvironment({
    address,
    folder,
    postmasterPid,
    subscribers,
    keys: parseMasterKeys(masterKeyText),
    url: service.url,
    servePid: service.pid,
    startWorker: () => startLoggedProgram("work", folder, env),
    async end() {
      await service.stop();
      await drop();
    },
  });
}

// Uses a service that already runs, and adds the tenant.
export async function joinEnvironment(parts: Parts): Promise<Environment> {
  const { address, folder, keys, url, startWorker, postmasterPid, servePid, subscribers, end } = parts;
  const owner = connect(address, { name: "coupon bench", role: "coupon_owner", max: 2 });
  const monitor = connect(address, { name: "coupon bench monitor", max: 1 });
  const admin = connect(address, { name: "coupon bench", role: "coupon_admin", max: 1 });
  const tenants = tenantDocument(subscribers);
  noteCredentials(tenants);
  await apply(admin, keys, tenants);
  await admin.end();
  const [caller] = await owner.rows<{ tenant_id: number; credential_id: number }>(
    "select tenant_id, credential_id from gate.find_credential($1)",
    [accessKey],
  );
  const batches = createBatches(owner, url);
  return {
    address,
    folder,
    keys,
    owner,
    url,
    startWorker,
    tenantId: caller!.tenant_id,
    credentialId: caller!.credential_id,
    measured: { monitor, postmasterPid, servePid },
    ...batches,
    makePool: (total) =>
      createCouponPool(async () => {
        const batch = await batches.submit(total);
        const worker = await startWorker();
        await batches.untilMinted(batch);
        await batches.release(batch);
        await worker.stop();
        return openBatch({ owner, keys, batch });
      }),
    async close() {
      try {
        await checkInvariants(address);
      } finally {
        await Promise.all([owner.end(), monitor.end()]);
        await end();
      }
    },
  };
}

function createBatches(owner: Database, url: string): Pick<Environment, "submit" | "untilMinted" | "release"> {
  const by = createClient({ url, accessKey, secret });
  let count = 0;
  const post = (path: string, body: object) => postOk(by, path, { request_id: `environment-${(count += 1)}`, ...body });
  return {
    async submit(total, distributor) {
      const { batch } = await post("/v1/batches", {
        template,
        total_count: total,
        ...(distributor !== undefined && { distributor }),
      });
      return batch.external_id as string;
    },
    async untilMinted(batch) {
      const isMinted = async (): Promise<boolean> => {
        const [row] = await owner.rows<{ status: string }>(
          "select b.status from core.batch b where b.external_id = $1",
          [batch],
        );
        return row!.status !== "PENDING";
      };
      await waitUntil(`the coupons of ${batch}`, isMinted, patience);
    },
    release: (batch) => post("/v1/batches/allocate", { batch }),
  };
}

// Needs a running worker.
export async function untilCaughtUp({ owner }: Pick<Environment, "owner">): Promise<void> {
  const isCaughtUp = async (): Promise<boolean> => {
    const [row] = await owner.rows<{ feed_waiting: number }>("select feed_waiting from jobs.read_metrics()");
    return row!.feed_waiting === 0;
  };
  await waitUntil("the feed to catch up", isCaughtUp, patience);
}

// Refreshes the statistics, and makes a checkpoint so that none falls into the following rounds.
export async function settle(environment: Pick<Environment, "address">): Promise<void> {
  const session = openSession(environment.address, { name: "coupon bench" });
  await session.run("vacuum analyze");
  await session.end();
  await makeCheckpoint(environment);
}

export async function makeCheckpoint({ address }: Pick<Environment, "address">): Promise<void> {
  const session = openSession(address, { name: "coupon bench" });
  await session.run("checkpoint");
  await session.end();
}
