// The service for a test: a new database, provisioned tenants, and the HTTP server on a free port.
import { Writable } from "node:stream";
import { randomBytes } from "node:crypto";
import type { Test } from "tap";
import { apply } from "../../src/commands/apply.ts";
import { exportCodes } from "../../src/commands/codes.ts";
import { defaultLimits, type Limits } from "../../src/common/config.ts";
import { connect, openSession } from "../../src/database/connect.ts";
import type { Address } from "../../src/common/database-address.ts";
import type { Database } from "../../src/database/types.ts";
import { parseMasterKeys, type MasterKeys } from "../../src/crypto/keys.ts";
import { createLog } from "../../src/common/log.ts";
import type { Metrics } from "../../src/server/metrics-server.ts";
import { listen } from "../../src/http/listener.ts";
import { serve } from "../../src/serve.ts";
import { createMinter } from "../../src/worker/tasks/mint.ts";
import type { WorkerSession } from "../../src/worker/worker-session.ts";
import { closeIdleConnections, postOk } from "./client.ts";
import { createClient, type Client } from "./signing-client.ts";
import { createDatabase, type Options } from "./database.ts";
import { document, secretOf } from "./provisioning.ts";
import { waitUntil } from "./wait-until.ts";
import { noteCredentials } from "./watch-answers.ts";
import { openWorkerSession } from "./worker-session.ts";

export type Running = {
  url: string;
  address: Address;
  keys: MasterKeys;
  // The same keys as text, for COUPON_MASTER_KEY.
  masterKeyText: string;
  // Acts as the owner of all tables, to inspect them and to arrange what the service cannot.
  owner: Database;
  admin: Database;
  log: Record<string, unknown>[];
  // A client with one of the provisioned credentials.
  as(accessKey: string): Client;
  apply(file: unknown): Promise<unknown>;
  // Mints what is due, as the worker does.
  mint(): Promise<void>;
  // Makes a minted batch, which is released by default, and returns its codes.
  makeBatch(by: Client, template: string, count: number, options?: BatchOptions): Promise<Batch>;
};
// isOver: the validity ended years ago.
export type BatchOptions = { isReleased?: boolean; isOver?: boolean };
export type Batch = { id: string; codes: string[]; couponIds: string[] };
// Of a test, or of a program that tidies up at its end.
export type Teardown = Pick<Test, "teardown">;

let counter = 0;
// A request_id that is unique in this process.
export const newRequestId = () => `test-${process.pid}-${(counter += 1)}`;

// An existing migrated database, which stays. If it is already provisioned, `file` is null.
export type Existing = { address: Address; masterKeyText?: string };

export async function startService(
  t: Teardown,
  file: unknown = document,
  options: Options & { on?: Existing; metrics?: Metrics } = {},
  limited: Partial<Limits> = {},
): Promise<Running> {
  const { address, drop } =
    options.on === undefined ? await createDatabase(options) : { ...options.on, drop: async () => {} };
  const masterKeyText = options.on?.masterKeyText ?? randomBytes(32).toString("base64");
  const keys = parseMasterKeys(masterKeyText);
  const open = (role: string) => connect(address, { name: "coupon test", role, max: 4 });
  const [owner, admin, worker] = [open("coupon_owner"), open("coupon_admin"), open("coupon_worker")];
  // First of all: open connections would keep a test alive whose service does not start.
  t.teardown(async () => {
    await Promise.all([owner.end(), admin.end(), worker.end()]);
    await drop();
  });
  const log: Record<string, unknown>[] = [];
  const lines = new Writable({
    write(chunk, _, done) {
      log.push(JSON.parse(String(chunk)) as Record<string, unknown>);
      done();
    },
  });
  noteCredentials(file);
  if (file !== null) await apply(admin, keys, file);
  const serveLog = createLog("info", lines);
  const limits = { ...defaultLimits, ...limited };
  const listening = await listen({ host: "127.0.0.1", port: 0, limits }, serveLog);
  const service = await serve({ address, keys, limits, listening, log: serveLog, metrics: options.metrics ?? null });
  t.teardown(async () => {
    closeIdleConnections();
    await service.stop();
  });

  let session: WorkerSession | null = null;
  const stopping = new AbortController().signal;
  const minter = createMinter({ database: worker, keys, getSession: () => session, stopping });
  async function mint(): Promise<void> {
    session ??= await openWorkerSession(t, address);
    const isOver = async () => {
      const due = await minter.listDue();
      await Promise.all(due.map((batch) => minter.mint(batch)));
      return due.length === 0;
    };
    await waitUntil("every batch to be minted", isOver, { everyMs: 0, withinMs: 600_000 });
  }

  const as = (accessKey: string) => createClient({ url: service.url, accessKey, secret: secretOf(accessKey) });
  return {
    url: service.url,
    address,
    keys,
    masterKeyText,
    owner,
    admin,
    log,
    as,
    apply(other) {
      noteCredentials(other);
      return apply(admin, keys, other);
    },
    mint,
    makeBatch: createBatchMaker({ address, owner, admin, keys, mint }),
  };
}

type Parts = Pick<Running, "address" | "owner" | "admin" | "keys" | "mint">;

function createBatchMaker({ address, owner, admin, keys, mint }: Parts) {
  return async function makeBatch(
    by: Client,
    template: string,
    count: number,
    { isReleased = true, isOver = false }: BatchOptions = {},
  ): Promise<Batch> {
    const order = { request_id: newRequestId(), template, total_count: count };
    const id = (await postOk(by, "/v1/batches", order)).batch.external_id as string;
    if (isOver) await endValidity(address, id);
    await mint();
    await waitUntil(`${id} to be minted, perhaps by a worker beside this test`, async () => {
      const [batch] = await owner.rows<{ status: string }>("select status from core.batch where external_id = $1", [
        id,
      ]);
      return batch!.status !== "PENDING";
    });
    const coupons = (await Array.fromAsync(exportCodes(admin, keys, id, true))).flat();
    if (isReleased) await postOk(by, "/v1/batches/allocate", { request_id: newRequestId(), batch: id });
    return { id, codes: coupons.map(({ code }) => code), couponIds: coupons.map(({ coupon_id }) => coupon_id) };
  };
}

// Ends the validity of a batch before it is minted. The service refuses to make a batch from a template that is over.
async function endValidity(address: Address, batch: string): Promise<void> {
  const psql = openSession(address, { name: "psql" });
  try {
    await psql.run("set session_replication_role = replica");
    await psql.rows("update core.batch set valid_to = '2020-01-02' where external_id = $1", [batch]);
  } finally {
    await psql.end();
  }
}
