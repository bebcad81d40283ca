// Mints the coupons of PENDING batches, numbers 1 to total_count of each.
//
// The batch's row is the truth: how far it is, and who works on it until when (a lease of 30 s). A job is only a
// wake-up call that names a batch. Whoever is killed leaves a lease that runs out; the next wake-up goes on
// behind the last committed chunk, so the count is exact whatever happened. A chunk that comes late or twice
// changes nothing: jobs.mint_chunk compares its first number with the batch's progress.
//
// Codes live only between makeCode and lookupHash below; what goes to the database is the keyed hash.
import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { batchKey, lookupHash, makeCode } from "../../crypto/coupon-code.ts";
import type { MasterKeys } from "../../crypto/keys.ts";
import type { SteadyDatabase } from "../../database/reconnecting.ts";

// Coupons of one transaction. While events are written, by tills as a rule, chunks are small, and each is followed by a pause of
// so many times its length: a large one takes 40 ms, and whoever comes meanwhile shares the machine with it.
const chunkSize = { quiet: 2_000, busy: 250 };
const pausePerBusyChunk = 3;
// Numbers of one claim: more than are minted in a slice.
const claimSize = 1_000_000;
// About 5 ms of work: in `npm start` the API answers on the same thread.
const hashesPerTurn = 500;
// After this long a batch gives its place back, so that a small one does not wait behind a large one.
const sliceMs = 2_000;
// Batches minted at once by one process: a small one need not wait for the slice of a large one to end.
const places = 2;

export type DueBatch = { tenant_id: number; batch_id: number };
type Claim = { salt: Uint8Array; key_version: string; first_number: number; last_number: number };
type Chunk = { first: number; last: number; hashes: string[] };
type Progress = { minted_count: number; is_complete: boolean; collided: number[] | null; event_seq: string };

export function createMinter({
  database,
  keys,
  stopping,
}: {
  database: SteadyDatabase;
  keys: MasterKeys;
  stopping: AbortSignal;
}) {
  let running = 0;

  // Due batches for the places that are free here, the smallest remainder first.
  async function listDue(): Promise<DueBatch[]> {
    if (running >= places) return [];
    return database.rows<DueBatch>("select tenant_id, batch_id from jobs.list_due_batches($1)", [places - running]);
  }

  // On an error the lease is kept on purpose: it is the pause before the next attempt.
  async function mint(due: DueBatch): Promise<void> {
    running += 1;
    try {
      const holder = randomUUID();
      const [claim] = await database.rows<Claim>(
        "select salt, key_version, first_number, last_number from jobs.claim_batch($1, $2, $3, $4)",
        [due.tenant_id, due.batch_id, holder, claimSize],
      );
      if (claim === undefined) return; // complete, or somebody else holds the lease
      if (await mintSlice(due, holder, claim)) return;
      await database.rows("select jobs.release_batch($1, $2, $3)", [due.tenant_id, due.batch_id, holder]);
    } finally {
      running -= 1;
    }
  }

  // True: the batch is complete, or another worker has taken it over. While the database writes a chunk, the codes
  // of the next one are made here.
  async function mintSlice(due: DueBatch, holder: string, claim: Claim): Promise<boolean> {
    const key = batchKey(keys, claim.key_version, claim.salt);
    const draw = (number: number, attempt: number) =>
      lookupHash(keys, makeCode(keys, claim.key_version, key, number, attempt));
    const sliceEnd = performance.now() + sliceMs;
    let eventSeq: string | null = null;
    let isBusy = true;
    let chunk = await drawChunk(claim.first_number);
    for (;;) {
      const since = performance.now();
      const isLast = chunk.last === claim.last_number;
      const [progress, next] = await Promise.all([write(chunk), isLast ? undefined : drawChunk(chunk.last + 1)]);
      if (progress.is_complete || progress.minted_count !== chunk.last) return true;
      if (next === undefined || performance.now() >= sliceEnd || stopping.aborted) return false;
      isBusy = progress.event_seq !== eventSeq;
      if (isBusy) await sleep((performance.now() - since) * pausePerBusyChunk);
      eventSeq = progress.event_seq;
      chunk = next;
    }

    async function drawChunk(first: number): Promise<Chunk> {
      const size = isBusy ? chunkSize.busy : chunkSize.quiet;
      const last = Math.min(first + size - 1, claim.last_number);
      const hashes: string[] = [];
      for (let number = first; number <= last; number += 1) {
        // The first turn sends the chunk before.
        if (hashes.length % hashesPerTurn === 0) await nextTurn();
        hashes.push(draw(number, 0));
      }
      return { first, last, hashes };
    }

    // The codes of the numbers that collided are drawn again, until the chunk goes in.
    async function write({ first, hashes }: Chunk): Promise<Progress> {
      const attempts = hashes.map(() => 0);
      for (;;) {
        const [progress] = await database.rows<Progress>(
          "select minted_count, is_complete, collided, event_seq from jobs.mint_chunk($1, $2, $3, $4, $5::text::uuid[], $6::text::smallint[])",
          [due.tenant_id, due.batch_id, holder, first, `{${hashes.join(",")}}`, `{${attempts.join(",")}}`],
        );
        if (!progress!.collided?.length) return progress!;
        for (const number of progress!.collided) {
          const index = number - first;
          attempts[index]! += 1;
          hashes[index] = draw(number, attempts[index]!);
        }
      }
    }
  }

  return { listDue, mint };
}
