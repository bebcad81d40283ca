// The one way to arrange: a database of its own, tenants, callers, and coupons in a given state, all through the
// service's own functions. Calls go through its checks and its gate without HTTP, unless the test asks for HTTP.
import { randomBytes } from "node:crypto";
import type { Test } from "tap";
import { apply, type ApplyOptions } from "../../src/commands/apply.ts";
import { exportCodes } from "../../src/commands/codes.ts";
import type { Address } from "../../src/config/database-address.ts";
import { defaultLimits, type Limits } from "../../src/config/config.ts";
import { fingerprintKeys } from "../../src/crypto/key-fingerprint.ts";
import { parseMasterKeys, type MasterKeys } from "../../src/crypto/keys.ts";
import { connect, openSession } from "../../src/database/connect.ts";
import type { Database, Session } from "../../src/database/types.ts";
import { createGate } from "../../src/gate/gate.ts";
import { listen } from "../../src/http/listener.ts";
import type { Logger } from "../../src/common/log.ts";
import type { Metrics } from "../../src/server/metrics-server.ts";
import { createMinter } from "../../src/worker/tasks/mint.ts";
import type { WorkerSession } from "../../src/worker/worker-session.ts";
import { createCaller, untouched, type Caller } from "./caller.ts";
import { closeIdleConnections, createClient, type Client } from "./client.ts";
import { createDatabase, readRun } from "./database.ts";
import { noteCredentials } from "./described-answers.ts";
import { createDirectClient } from "./direct-client.ts";
import { routeTo } from "./route.ts";
import { createScene, type Batch, type BatchOptions, type Scene } from "./scene.ts";
import { createStubLog } from "./stub.ts";
import { document, merchantOf, secretOf } from "./tenants.ts";
import { waitUntil } from "./wait-until.ts";
import { createWorkerSteps, type WorkerSteps } from "./worker-steps.ts";
import { openWorkerSession } from "./worker-session.ts";

/** Of a test, or of a program that tidies up at its end. */
export type Teardown = Pick<Test, "teardown">;

export type Options = {
  /** A provisioning file; by default the usual tenants. null: the database is provisioned already. */
  file?: unknown;
  /** Starts the HTTP server. */
  http?: boolean;
  limits?: Partial<Limits>;
  metrics?: Metrics;
  /** An existing migrated database, which stays. */
  on?: { address: Address; masterKeyText?: string };
  /** For tests that corrupt rows on purpose. */
  mayBreakInvariants?: boolean;
};

export type Scenario = {
  /** Of the HTTP server. */
  url: string;
  address: Address;
  keys: MasterKeys;
  /** The same keys as text, for COUPON_MASTER_KEY. */
  masterKeyText: string;
  /** Acts as the owner of all tables, to inspect them and to arrange what the service cannot. */
  owner: Database;
  admin: Database;
  worker: Database;
  log: Record<string, unknown>[];
  /** A caller with one of the provisioned credentials, at the merchant where it usually redeems. */
  as(accessKey: string, merchant?: string): Caller;
  apply(file: unknown, options?: ApplyOptions): Promise<unknown>;
  /** Mints what is due, as the worker does. */
  mint(): Promise<void>;
  /** The other steps of the worker. */
  steps: WorkerSteps;
  /** A minted batch, which is released by default. */
  makeBatch(by: Caller, template: string, count: number, options?: BatchOptions): Promise<Batch>;
  /** A session of a superuser, closed at the end of the test. Its triggers can be switched off. */
  openPsql(options?: { triggers?: boolean }): Promise<Session>;
  /** The callers and coupons of the usual tenants. */
  a: Scene;
  b: Scene;
};

export async function scenario(t: Teardown, options: Options = {}): Promise<Scenario> {
  const { file = document } = options;
  const { address, drop, masterKeyText, isApplied } = await openDatabase(options);
  const called = options.on === undefined ? await routeTo(t, address) : address;
  const keys = parseMasterKeys(masterKeyText);
  const open = (role: string) => connect(address, { name: "coupon test", role, max: 4 });
  const [owner, admin, worker] = [open("coupon_owner"), open("coupon_admin"), open("coupon_worker")];
  // First of all: open connections would keep a test alive whose service does not start.
  t.teardown(async () => {
    await Promise.all([owner.end(), admin.end(), worker.end()]);
    await drop();
  });
  noteCredentials(file);
  if (file !== null && !isApplied) await apply(admin, keys, file);
  const { log, logger } = createStubLog("info");

  const { url, connectAs } = await startGate(t, { address: called, keys, logger, options });
  const mint = createMint(t, { address, worker, keys });
  const parts = {
    url,
    address,
    keys,
    masterKeyText,
    owner,
    admin,
    worker,
    log,
    as: (accessKey: string, merchant = merchantOf(accessKey)) => createCaller(connectAs(accessKey), merchant),
    apply(other: unknown, options?: ApplyOptions) {
      noteCredentials(other);
      return apply(admin, keys, other, options);
    },
    mint,
    steps: createWorkerSteps(t, { address, keys, owner, worker }),
    makeBatch: createBatchMaker({ address, owner, admin, keys, mint }),
    openPsql: createPsqlOpener(t, address),
  };
  return { ...parts, a: createScene(parts, "A"), b: createScene(parts, "B") };
}

type GateParts = { address: Address; keys: MasterKeys; logger: Logger; options: Options };

// With HTTP, or only the gate.
async function startGate(
  t: Teardown,
  { address, keys, logger, options }: GateParts,
): Promise<{ url: string; connectAs(accessKey: string): Client }> {
  const { http = false, metrics = null } = options;
  if (!http) {
    const role = { role: "coupon_api", name: "coupon test gate", max: 8 };
    const gate = createGate({
      log: logger,
      connect: () => connect(address, { ...role, statementTimeoutMs: 3_000, lockTimeoutMs: 2_000 }),
    });
    t.teardown(() => gate.end());
    // As serve does when it starts.
    await gate.registerKeys(fingerprintKeys(keys), performance.now() + 10_000);
    return { url: "", connectAs: (accessKey) => createDirectClient(gate, keys, accessKey) };
  }
  const limits = { ...defaultLimits, ...options.limits };
  const listening = await listen({ host: "127.0.0.1", port: 0, limits }, logger);
  // Not while a test runs, because tests compare tables.
  const noteUsesEveryMs = 3_600_000;
  // Loaded only here, because most tests begin without it.
  const { serve } = await import("../../src/serve.ts");
  const { url, stop } = await serve({ address, keys, limits, listening, noteUsesEveryMs, log: logger, metrics });
  t.teardown(async () => {
    closeIdleConnections();
    await stop();
  });
  return { url, connectAs: (accessKey) => createClient({ url, accessKey, secret: secretOf(accessKey) }) };
}

/** `isApplied`: it has the tenants of the file, because the template has the usual ones. */
async function openDatabase({ file = document, on, ...options }: Options) {
  const newKey = randomBytes(32).toString("base64");
  if (on !== undefined) return { masterKeyText: newKey, ...on, drop: async () => {}, isApplied: false };
  const usual = file === document ? readRun().usual : undefined;
  const { address, drop } = await createDatabase(options, usual?.template);
  return { address, drop, masterKeyText: usual?.masterKeyText ?? newKey, isApplied: usual !== undefined };
}

function createPsqlOpener(t: Teardown, address: Address): Scenario["openPsql"] {
  return async ({ triggers = true } = {}) => {
    const psql = openSession(address, { name: "psql" });
    t.teardown(() => psql.end());
    if (!triggers) await psql.run("set session_replication_role = replica");
    return psql;
  };
}

function createMint(t: Teardown, { address, worker, keys }: Pick<Scenario, "address" | "worker" | "keys">) {
  let session: WorkerSession | null = null;
  const stopping = new AbortController().signal;
  const minter = createMinter({ database: worker, keys, getSession: () => session, stopping });
  return async function mint(): Promise<void> {
    session ??= await openWorkerSession(t, address);
    const isOver = async () => {
      const due = await minter.listDue();
      await Promise.all(due.map((batch) => minter.mint(batch)));
      return due.length === 0;
    };
    await waitUntil("every batch to be minted", isOver, { everyMs: 0, withinMs: 600_000 });
  };
}

type Parts = Pick<Scenario, "address" | "owner" | "admin" | "keys" | "mint">;

function createBatchMaker({ address, owner, admin, keys, mint }: Parts): Scenario["makeBatch"] {
  return async (by, template, count, { isReleased = true, isOver = false, distributor } = {}) => {
    const { batch } = await by.ok.createBatch(template, count, distributor === undefined ? {} : { distributor });
    const id = batch.external_id as string;
    if (isOver) await endValidity(address, id);
    await mint();
    await waitUntil(`${id} to be minted, perhaps by a worker beside this test`, async () => {
      const [row] = await owner.rows<{ status: string }>("select status from core.batch where external_id = $1", [id]);
      return row!.status !== "PENDING";
    });
    const coupons = (await Array.fromAsync(exportCodes(admin, keys, id, true))).flat();
    if (isReleased) await by.ok.allocateBatch(id);
    return { id, coupons: coupons.map(({ code, coupon_id }) => ({ code, id: coupon_id, ...untouched })) };
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
