// Mints the coupons of PENDING batches, numbers 1 to total_count of each.
//
// The batch's row is the truth: how far it is, and who works on it until when (a lease of 30 s). A job is only a
// wake-up call that names a batch. Whoever is killed leaves a lease that runs out; the next wake-up goes on
// behind the last committed chunk, so the count is exact whatever happened. A chunk that comes late or twice
// changes nothing: jobs.mint_chunk compares its first number with the batch's progress.
//
// Codes live only between makeCode and lookupHash below; what goes to the database is the keyed hash.
import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { batchKey, lookupHash, makeCode } from "../code.ts";
import type { MasterKeys } from "../keys.ts";
import type { SteadyDatabase } from "../steady.ts";

const chunkSize = 10_000;
// About 5 ms of work: in `npm start` the API answers on the same thread.
const hashesPerTurn = 500;
// After this long a batch gives its place back, so that a small one does not wait behind a large one.
const sliceMs = 2_000;
// Batches minted at once by one process: a second one lets its database time overlap the other's hashing.
const places = 2;

export type DueBatch = { tenant_id: number; batch_id: number };
type Progress = { is_complete: boolean; collided: number[] | null };
type Chunk = { salt: Uint8Array; key_version: string; first_number: number; last_number: number };

export function createMinter({ database, keys, stopping }: { database: SteadyDatabase; keys: MasterKeys; stopping: AbortSignal }) {
  let running = 0;

  // Due batches for the places that are free here, the smallest remainder first.
  async function listDue(): Promise<DueBatch[]> {
    if (running >= places) return [];
    return database.rows<DueBatch>("select tenant_id, batch_id from jobs.due_mint($1)", [places - running]);
  }

  // On an error the lease is kept on purpose: it is the pause before the next attempt.
  async function mint({ tenant_id, batch_id }: DueBatch): Promise<void> {
    running += 1;
    try {
      const holder = randomUUID();
      const sliceEnd = performance.now() + sliceMs;
      while (performance.now() < sliceEnd && !stopping.aborted) {
        const [chunk] = await database.rows<Chunk>(
          "select salt, key_version, first_number, last_number from jobs.claim_mint($1, $2, $3, $4)",
          [tenant_id, batch_id, holder, chunkSize],
        );
        if (chunk === undefined) return; // complete, or somebody else holds the lease
        const progress = await mintChunk({ tenant_id, batch_id }, holder, chunk);
        if (progress.is_complete) return;
      }
      await database.rows("select jobs.release_mint($1, $2, $3)", [tenant_id, batch_id, holder]);
    } finally {
      running -= 1;
    }
  }

  // The codes of the numbers that collided are drawn again, until the chunk goes in.
  async function mintChunk({ tenant_id, batch_id }: DueBatch, holder: string, chunk: Chunk): Promise<Progress> {
    const key = batchKey(keys, chunk.key_version, chunk.salt);
    const draw = (number: number, attempt: number) => lookupHash(keys, makeCode(keys, chunk.key_version, key, number, attempt));
    const hashes: string[] = [];
    for (let number = chunk.first_number; number <= chunk.last_number; number += 1) {
      hashes.push(draw(number, 0));
      if (hashes.length % hashesPerTurn === 0) await nextTurn();
    }
    const attempts = hashes.map(() => 0);
    for (;;) {
      const [progress] = await database.rows<Progress>(
        "select is_complete, collided from jobs.mint_chunk($1, $2, $3, $4, $5::text::uuid[], $6::text::smallint[])",
        [tenant_id, batch_id, holder, chunk.first_number, `{${hashes.join(",")}}`, `{${attempts.join(",")}}`],
      );
      if (!progress?.collided?.length) return progress!;
      for (const number of progress.collided) {
        const index = number - chunk.first_number;
        attempts[index]! += 1;
        hashes[index] = draw(number, attempts[index]!);
      }
    }
  }

  return { listDue, mint };
}
