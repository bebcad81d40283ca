// Batches that wait for their coupons, and workers that mint them.
import { randomUUID } from "node:crypto";
import type { Test } from "tap";
import { fingerprintKeys } from "../../src/crypto/key-fingerprint.ts";
import type { MasterKeys } from "../../src/crypto/keys.ts";
import { connect } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { createMinter, type DueBatch } from "../../src/worker/tasks/mint.ts";
import type { WorkerSession } from "../../src/worker/worker-session.ts";
import { newRequestId, type Running } from "./service.ts";
import { openWorkerSession } from "./worker-session.ts";

export type BatchRow = DueBatch & {
  external_id: string;
  status: string;
  minted_count: number;
  salt: Uint8Array;
  key_version: string;
  is_leased: boolean;
};
export type Claim = { holder: string; first_number: number; last_number: number };

export async function submit(service: Running, count: number): Promise<string> {
  const created = await service
    .as("ak_a")
    .post("/v1/batches", { request_id: newRequestId(), template: "tpl_fixed", total_count: count });
  return created.json.batch.external_id as string;
}

export async function find(service: Pick<Running, "owner">, id: string): Promise<BatchRow> {
  const [row] = await service.owner.rows<BatchRow>(
    `select tenant_id, batch_id, external_id, status, minted_count, salt, key_version,
            coalesce(mint_lease_until > clock_timestamp(), false) as is_leased
     from core.batch where external_id = $1`,
    [id],
  );
  return row!;
}

// The batch is complete, its numbers have no gap or duplicate, and one event announces it.
export async function checkComplete(t: Test, service: Running, id: string, count: number): Promise<void> {
  const { tenant_id, batch_id, status, minted_count } = await find(service, id);
  t.strictSame({ status, minted_count }, { status: "COMPLETED", minted_count: count });
  const [numbers] = await service.owner.rows(
    `select count(*)::int, count(distinct number)::int as different, min(number), max(number)
     from core.coupon
     where batch_id = $1`,
    [batch_id],
  );
  t.strictSame({ ...numbers }, { count, different: count, min: 1, max: count });
  const events = await service.owner.rows(
    "select from rules.event where tenant_id = $1 and batch_id = $2 and event_type = 'batch.generated'",
    [tenant_id, batch_id],
  );
  t.equal(events.length, 1, "one batch.generated");
}

export function openWorker(t: Test, service: Running): Database {
  const database = connect(service.address, { name: "coupon test worker", role: "coupon_worker", max: 2 });
  t.teardown(() => database.end());
  return database;
}

const never = new AbortController().signal;

export type MinterOptions = { keys?: MasterKeys; stopping?: AbortSignal; database?: Database };

export async function startMinter(
  t: Test,
  service: Running,
  { keys = service.keys, stopping = never, database = openWorker(t, service) }: MinterOptions = {},
) {
  const session = await openWorkerSession(t, service.address);
  return createMinter({ database, keys, getSession: () => session, stopping });
}

// Claims a batch as a job of the worker with this session does. Null: not due.
export async function claimBatch(
  { keys }: Running,
  worker: Database,
  { number }: Pick<WorkerSession, "number">,
  { tenant_id, batch_id }: DueBatch,
): Promise<Claim | null> {
  const holder = randomUUID();
  const [claimed] = await worker.rows<Omit<Claim, "holder">>(
    "select first_number, last_number from jobs.lease_batch($1, $2, $3, $4, 10000, $5::text::jsonb)",
    [tenant_id, batch_id, number, holder, fingerprintKeys(keys)],
  );
  return claimed === undefined ? null : { holder, ...claimed };
}

// Mints the next coupons with these lookup hashes.
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
