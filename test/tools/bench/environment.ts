// What a benchmark works on: a database with the tenant of the benchmarks, and `serve` and `work` in front of it, each
// a process as in production. Only programs and HTTP touch the database at first, so that it may be that of another
// build.
import { randomBytes } from "node:crypto";
import type { Address } from "../../../src/config/database-address.ts";
import { parseMasterKeys } from "../../../src/crypto/keys.ts";
import { connect, openSession } from "../../../src/database/connect.ts";
import { createCaller, type Caller } from "../../support/caller.ts";
import { closeIdleConnections, createClient } from "../../support/client.ts";
import { root } from "../../support/copy.ts";
import { addressOf, asAdmin, readRun } from "../../support/database.ts";
import { leaveUnchecked, noteCredentials } from "../../support/described-answers.ts";
import { findBrokenInvariants } from "../../support/inspect.ts";
import { startLoggedProgram } from "../../support/logged-program.ts";
import { environmentOf, runProgram, type Database } from "../../support/program.ts";
import { sequenceEvents } from "../../support/sequence-events.ts";
import { becomeCell } from "../../support/route.ts";
import { readAddress } from "../../support/server.ts";
import { makeTemporaryFolder, removeFolder } from "../../support/temporary-folder.ts";
import { startTemporaryServer } from "../../support/temporary-server.ts";
import { credential, merchant, party, secretOf, template } from "../../support/tenants.ts";
import { waitUntil } from "../../support/wait-until.ts";

/**
 * `address` names any database of the server. `folder` is for logs and other files of the run. isOwn: the run has
 * started it.
 */
export type Server = { address: Address; folder: string; isOwn: boolean; stop(): Promise<void> };
/** What a bench gets. `open` returns an environment that the benches of a run share. */
export type Run = {
  server: Server;
  open: () => Promise<Environment>;
  size: number;
  rounds: number;
  /** The checkout of another build, to compare with. */
  against?: string | undefined;
};
export type Environment = Awaited<ReturnType<typeof openEnvironment>>;
export type Subscriber = { id: string; url: string; secret: string };

const prefix = "coupon-bench-";
export const merchants = Array.from({ length: 50 }, (_, index) => `mch_bench${index}`);
/** The distributors of the pools, and of the day that the bench `statement` closes. */
const distributor = "pty_bench";
export const distributorOfDay = "pty_benchday";

/** An embedded server with the settings of `npm start`, or an existing one. */
export async function startServer(databaseUrl: string | undefined): Promise<Server> {
  if (databaseUrl === undefined) {
    const { address, temporaryFolder, stop } = await startTemporaryServer(prefix, { max_connections: "200" });
    return { address, folder: temporaryFolder, isOwn: true, stop };
  }
  const folder = makeTemporaryFolder(prefix);
  const stop = async () => removeFolder(folder);
  return { address: readAddress("BENCH_DATABASE_URL", databaseUrl), folder, isOwn: false, stop };
}

/** The short form only wants to know whether the benches work. */
const isInTest = (): boolean => process.env["COUPON_TEST_RUN"] !== undefined;

// The longest wait is for ten million coupons. A test says earlier what did not come.
export const withinMs = isInTest() ? 120_000 : 1_800_000;

let databases = 0;

/**
 * A database that the build in `folder` has migrated. In a test, a clone of the template of the run, which is migrated
 * already.
 */
export async function createDatabase(
  { address: server }: Pick<Server, "address">,
  folder = root,
  masterKeyText = randomBytes(32).toString("base64"),
) {
  const name = `coupon_bench_${Date.now().toString(36)}_${(databases += 1)}`;
  const from = isInTest() ? `"${readRun().template}" strategy file_copy` : "template0 encoding 'UTF8'";
  await asAdmin(server, (admin) => admin.rows(`create database "${name}" template ${from}`));
  const drop = () => asAdmin(server, (admin) => admin.rows(`drop database "${name}" with (force)`));
  const address = addressOf(server, name);
  await runCommand("migrate", { folder, on: { address, masterKeyText } });
  return { address, masterKeyText, drop };
}

type CommandOptions = { folder: string; on: Database; args?: string[]; input?: string };

async function runCommand(name: string, { folder, on, ...options }: CommandOptions): Promise<void> {
  const { code, stderr } = await runProgram(name, { folder, env: environmentOf(on), ...options });
  if (code !== 0) throw new Error(`${name} in ${folder}: ${stderr}`);
}

type EnvironmentOptions = { folder?: string; cell?: number; masterKeyText?: string };

/**
 * `folder` is the checkout of the build that runs. `cell` is the number of the database among the cells of a router,
 * which share the master key; each has its own tenant.
 */
export async function openEnvironment(
  server: Pick<Server, "address" | "folder">,
  { folder = root, cell = 1, ...options }: EnvironmentOptions = {},
) {
  const { drop, ...on } = await createDatabase(server, folder, options.masterKeyText);
  const { address, masterKeyText } = on;
  if (cell !== 1) await becomeCell(address, cell);
  const accessKey = `ak_bench${cell}`;
  const database = connect(address, { name: "coupon bench", max: 2 });
  const start = (name: "serve" | "work") => startLoggedProgram(name, server.folder, environmentOf(on), folder);
  const serve = await start("serve");
  if (!isInTest()) leaveUnchecked(serve.url, "all");
  let work = await start("work");

  /** Waits until the condition is true. `sql` may say what follows `select condition`. */
  const until = (what: string, sql: string, params: unknown[] = [], everyMs = 20): Promise<unknown> => {
    const isTrue = async () => (await database.rows<{ done: boolean }>(`select ${sql}`, params))[0]?.done;
    return waitUntil(what, isTrue, { withinMs, everyMs });
  };
  const untilCaughtUp = () => until("the feed to catch up", "feed_waiting = 0 as done from jobs.read_metrics()");

  async function apply(file: ReturnType<typeof describeTenant>): Promise<void> {
    noteCredentials(file);
    await runCommand("apply", { folder, on, args: ["-"], input: JSON.stringify(file) });
  }

  async function stop(): Promise<void> {
    closeIdleConnections();
    await Promise.all([serve.stop(), work.stop()]);
    await database.end();
  }

  await apply(describeTenant(accessKey));
  const [caller] = await database.rows<{ tenant_id: number; credential_id: number }>(
    "select tenant_id, credential_id from gate.find_credential($1)",
    [accessKey],
  );
  const signer = { accessKey, secret: secretOf(accessKey) };

  return {
    address,
    masterKeyText,
    keys: parseMasterKeys(masterKeyText),
    database,
    url: serve.url,
    credential: signer,
    tenantId: caller!.tenant_id,
    credentialId: caller!.credential_id,
    pids: () => ({ serve: serve.pid, work: work.pid }),
    until,
    untilCaughtUp,
    ...createBatches(createCaller(createClient({ url: serve.url, ...signer }), merchants[0]!), until),
    subscribe: (subscribers: Subscriber[]) => apply(describeTenant(accessKey, subscribers)),
    async restartWorker(meanwhile: () => Promise<void>): Promise<void> {
      await work.stop();
      await meanwhile();
      work = await start("work");
    },
    stop,
    /** Sequences the remaining events, checks the invariants, and drops the database. */
    async close(): Promise<void> {
      await untilCaughtUp();
      await stop();
      await checkInvariants(address);
      await drop();
    },
  };
}

function createBatches({ ok }: Caller, until: (what: string, sql: string, params: unknown[]) => Promise<unknown>) {
  /** Returns the ID of the batch. */
  async function submit(count: number, to = distributor): Promise<string> {
    const { batch } = await ok.createBatch("tpl_bench", count, { distributor: to });
    return batch.external_id;
  }

  const untilMinted = (batch: string) =>
    until(`the coupons of ${batch}`, "status <> 'PENDING' as done from core.batch where external_id = $1", [batch]);

  /** Submits, mints and releases a batch. */
  async function release(count: number, to?: string): Promise<string> {
    const batch = await submit(count, to);
    await untilMinted(batch);
    await ok.allocateBatch(batch);
    return batch;
  }

  return { submit, untilMinted, release };
}

/** A tenant of Variant A with fifty merchants. */
function describeTenant(accessKey: string, subscribers: Subscriber[] = []) {
  const tenant = {
    id: accessKey.replace("ak", "ten"),
    name: "Bench",
    variant: "A",
    parties: [
      party(distributor),
      party(distributorOfDay),
      ...subscribers.map(({ id, ...webhook }) => party(id, { webhook })),
    ],
    merchants: merchants.map((id) => merchant(id, distributor)),
    // Locks that the bench `instructions` makes are confirmed under valgrind, many minutes later.
    templates: [template("tpl_bench", distributor, { lock_ttl_seconds: 86_400 })],
    credentials: [credential(accessKey)],
  };
  return { tenants: [tenant] };
}

/** Refreshes the statistics, and makes a checkpoint so that none falls into the following rounds. */
export async function settle({ address }: Pick<Environment, "address">): Promise<void> {
  const session = openSession(address, { name: "coupon bench" });
  await session.rows("vacuum analyze");
  await session.rows("checkpoint");
  await session.end();
}

export async function checkInvariants(address: Address): Promise<void> {
  const session = openSession(address, { name: "coupon bench" });
  try {
    await sequenceEvents(session);
    // Without statistics a query over these tables may take hours.
    await session.run("set work_mem = '256MB'; analyze");
    const broken = await findBrokenInvariants(session);
    if (broken.length > 0) throw new Error(`broken invariants: ${broken.join("; ")}`);
  } finally {
    await session.end();
  }
}
