// Batches that wait for their coupons.
import type { Test } from "tap";
import type { DueBatch } from "../../src/worker/batch-jobs.ts";
import type { Scenario } from "./scenario.ts";

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
