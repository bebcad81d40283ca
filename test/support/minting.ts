// Batches that wait for their coupons, and workers that mint them.
import { randomUUID } from "node:crypto";
import type { Test } from "tap";
import { fingerprintKeys } from "../../src/crypto/key-fingerprint.ts";
import type { MasterKeys } from "../../src/crypto/keys.ts";
import type { Database } from "../../src/database/types.ts";
import { createMinter, type DueBatch } from "../../src/worker/tasks/mint.ts";
import type { WorkerSession } from "../../src/worker/worker-session.ts";
import type { Scenario } from "./scenario.ts";
import { openWorkerSession } from "./worker-session.ts";

export type BatchRow = DueBatch & {
  external_id: string;
  status: string;
  minted_count: number;
  salt: Uint8Array;
  key_version: string;
  is_leased: boolean;
};

/** Submits a batch of the usual template of Variant A. */
export async function submit(world: Scenario, count: number): Promise<BatchRow> {
  const { batch } = await world.a.maker.ok.createBatch(world.a.template, count);
  return findBatch(world, batch.external_id);
}

export async function findBatch({ owner }: Scenario, id: string): Promise<BatchRow> {
  const [row] = await owner.rows<BatchRow>(
    `select tenant_id, batch_id, external_id, status, minted_count, salt, key_version,
            coalesce(mint_lease_until > clock_timestamp(), false) as is_leased
     from core.batch where external_id = $1`,
    [id],
  );
  return row!;
}

/** The same batch now. */
export const reread = (world: Scenario, { external_id }: BatchRow) => findBatch(world, external_id);

export const isComplete = async (world: Scenario, batch: BatchRow) =>
  (await reread(world, batch)).status === "COMPLETED";

/** The batch is complete, its numbers have no gap or duplicate, and one event announces it. */
export async function checkComplete(t: Test, world: Scenario, batch: BatchRow, count: number): Promise<void> {
  const [row] = await world.owner.rows(
    `select b.status, b.minted_count,
            (select count(*)::int from rules.event e
             where (e.tenant_id, e.batch_id, e.event_type) = (b.tenant_id, b.batch_id, 'batch.generated')) as events,
            count(*)::int, count(distinct c.number)::int as different, min(c.number), max(c.number)
     from core.batch b join core.coupon c using (tenant_id, batch_id)
     where b.batch_id = $1 group by b.tenant_id, b.batch_id`,
    [batch.batch_id],
  );
  const numbers = { count, different: count, min: 1, max: count };
  t.strictSame({ ...row }, { status: "COMPLETED", minted_count: count, events: 1, ...numbers });
}

export type MinterOptions = { keys?: MasterKeys; stopping?: AbortSignal; database?: Database };

export async function startMinter(t: Test, world: Scenario, options: MinterOptions = {}) {
  const { keys = world.keys, stopping = new AbortController().signal, database = world.worker } = options;
  const session = await openWorkerSession(t, world.address);
  return createMinter({ database, keys, getSession: () => session, stopping });
}

/** The batches that a worker would be given. */
export async function listDueBatches({ worker, keys }: Scenario): Promise<number[]> {
  const text = "select batch_id from jobs.list_due_batches(10, $1::text::jsonb)";
  const rows = await worker.rows<{ batch_id: number }>(text, [fingerprintKeys(keys)]);
  return rows.map(({ batch_id }) => batch_id);
}

/** Claims a batch as a job of the worker with this session does. Null: not due. */
export async function claimBatch(
  { worker, keys }: Scenario,
  { number }: Pick<WorkerSession, "number">,
  { tenant_id, batch_id }: DueBatch,
) {
  const holder = randomUUID();
  const [claimed] = await worker.rows<{ first_number: number; last_number: number }>(
    "select first_number, last_number from jobs.lease_batch($1, $2, $3, $4, 10000, $5::text::jsonb)",
    [tenant_id, batch_id, number, holder, fingerprintKeys(keys)],
  );
  return claimed === undefined ? null : { holder, ...claimed };
}

/** Mints the next coupons with these lookup hashes. */
export async function mintChunk(
  worker: Pick<Database, "rows">,
  { tenant_id, batch_id }: DueBatch,
  holder: string,
  first: number,
  hashes: string[],
): Promise<{ minted_count: number; is_complete: boolean }> {
  const [row] = await worker.rows<{ minted_count: number; is_complete: boolean }>(
    "select minted_count, is_complete from jobs.mint_chunk($1, $2, $3, $4, $5::text::uuid[])",
    [tenant_id, batch_id, holder, first, `{${hashes.join()}}`],
  );
  return { ...row! };
}

export const drawHashes = (count: number): string[] => Array.from({ length: count }, () => randomUUID());
