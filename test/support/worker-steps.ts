// The steps of a worker, one at a time, without its timers and jobs.
import type { Test } from "tap";
import type { Address } from "../../src/config/database-address.ts";
import type { MasterKeys } from "../../src/crypto/keys.ts";
import type { Database } from "../../src/database/types.ts";
import { createAddressRule } from "../../src/worker/address-rule.ts";
import { createCloser } from "../../src/worker/tasks/close.ts";
import { createDeliverer, type Subscriber } from "../../src/worker/tasks/deliver.ts";
import { createExpirer } from "../../src/worker/tasks/expire.ts";
import { createRecaller } from "../../src/worker/tasks/recall.ts";
import { createSender } from "../../src/worker/webhook-sender.ts";
import type { WorkerSession } from "../../src/worker/worker-session.ts";
import { sequenceEvents } from "./sequence-events.ts";
import { createStubLog } from "./stub.ts";
import { openWorkerSession } from "./worker-session.ts";

export const loopbackOnly = ["127.0.0.0/8"];
// More than any test needs.
const mostRounds = 200;

export type StepOptions = {
  /** One that watches its statements, or breaks. */
  database?: Pick<Database, "rows" | "end">;
  session?: WorkerSession;
  stopping?: AbortSignal;
  /** The private addresses that may get webhooks. */
  allow?: string[];
  /** For the answer to a webhook. */
  timeoutMs?: number;
};

/** What the steps need of a scenario. */
export type World = { address: Address; keys: MasterKeys; owner: Database; worker: Database };

export type WorkerSteps = ReturnType<typeof createWorkerSteps>;

export function createWorkerSteps(t: Pick<Test, "teardown">, world: World, options: StepOptions = {}) {
  const { database = world.worker, stopping = new AbortController().signal } = options;
  const { allow = loopbackOnly, timeoutMs = 15_000 } = options;
  const { logger, log } = createStubLog();
  const outcomes: string[] = [];
  let session = options.session ?? null;
  const join = async () => (session ??= await openWorkerSession(t, world.address));

  const parts = { log: logger, stopping };
  const { closeDays, finishStatements } = createCloser({ sequencer: database, statements: database, ...parts });
  const deliverer = createDeliverer({
    ...parts,
    database,
    keys: world.keys,
    send: createSender({ mayConnect: createAddressRule(allow), timeoutMs }),
    getSession: () => session,
    onAttempt: (outcome) => outcomes.push(outcome),
  });
  const recaller = createRecaller({ database, getSession: () => session, stopping });
  const sequence = () => sequenceEvents(database);

  async function listDue(): Promise<Subscriber[]> {
    await join();
    const due = await deliverer.listDue();
    return due.map((one) => ({ ...one }));
  }

  async function deliverDue(): Promise<void> {
    const [clock] = await world.owner.rows<{ now: string }>("select clock_timestamp()::text as now");
    for (let round = 0; round < mostRounds; round += 1) {
      const due = await listDue();
      if (due.length === 0 || !(await isSomeDueSince(world.owner, clock!.now))) return;
      await Promise.all(due.map((one) => deliverer.deliver(one)));
    }
    throw new Error(`deliveries are still due after ${mostRounds} rounds`);
  }

  return {
    /** Sequences every committed event, which creates its deliveries. */
    sequence,
    /** Closes the days that are over. */
    closeDays,
    finishStatements,
    /** The three above, one after the other. */
    async close() {
      await sequence();
      await closeDays();
      await finishStatements();
    },
    /** Lapses expired locks, and expires coupons that are over. */
    expire: createExpirer({ database, stopping }),
    /** Carries out recalls, up to coupons that are still locked. */
    async recall() {
      await join();
      for (let due = await recaller.listDue(); due.length > 0; due = await recaller.listDue())
        for (const batch of due) await recaller.recall(batch);
    },
    listDue,
    async deliver(subscriber: Subscriber) {
      await join();
      await deliverer.deliver(subscriber);
    },
    /** Delivers what is due now. A retry that becomes due meanwhile waits for the next call. */
    deliverDue,
    /** How each attempt of a delivery ended. */
    outcomes,
    log,
  };
}

async function isSomeDueSince(owner: Database, moment: string): Promise<boolean> {
  const [row] = await owner.rows<{ is_due: boolean }>(
    `select exists (select from core.test_delivery)
       or exists (select from core.delivery where parked_at is null and next_attempt_at <= $1::text::timestamptz)
       as is_due`,
    [moment],
  );
  return row!.is_due;
}
