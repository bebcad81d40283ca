// Mints the coupons of PENDING batches, numbers 1 to total_count of each.
//
// A job (batch-jobs.ts) continues after the last committed chunk, so the count is always exact. A chunk that arrives
// late or twice changes nothing: jobs.mint_chunk compares its holder with the batch's, and its first number with the
// batch's progress.
//
// Codes exist only between makeCode and lookupHash below. The database gets the keyed hash.
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { batchKey, lookupHash, makeCode } from "../../crypto/coupon-code.ts";
import { fingerprintKeys } from "../../crypto/key-fingerprint.ts";
import type { MasterKeys } from "../../crypto/keys.ts";
import type { ReconnectingDatabase } from "../../database/reconnecting.ts";
import { createBatchJobs, type BatchLease, type BatchParts, type DueBatch } from "../batch-jobs.ts";
import { useStored } from "../stuck-work.ts";

// Coupons per transaction. A large chunk takes 40 ms and slows down requests that arrive meanwhile. So while events are
// being written, usually by tills, chunks are small, and after each one comes a pause of `pausePerBusyChunk` times its
// duration.
const chunkSize = { quiet: 2_000, busy: 250 };
const pausePerBusyChunk = 3;
// Coupon numbers per lease. Higher than the number that a slice can mint, so each slice takes only one.
const numbersPerLease = 1_000_000;
// About 5 ms of work: under `npm start` the API answers on the same thread.
const hashesPerTurn = 500;
// Batches that one process mints at once, so that a small one does not wait for the slice of a large one.
const maxBatchesAtOnce = 2;

type Leased = { salt: Uint8Array; key_version: string; first_number: number; last_number: number; event_seq: string };
type Chunk = { first: number; last: number; hashes: string[] };
type Progress = { minted_count: number; is_complete: boolean; collided: number[] | null; event_seq: string };
// The lookup hash of a number's code. A new attempt makes another code for the same number.
type Hash = (number: number, attempt: number) => string;

export function createMinter({ keys, ...parts }: BatchParts & { keys: MasterKeys }) {
  const { database } = parts;
  const jobs = createBatchJobs(parts, maxBatchesAtOnce);
  const fingerprints = fingerprintKeys(keys);

  /** Returns due batches in the order of jobs.list_due_batches, at most as many as this process has free places. */
  async function listDue(): Promise<DueBatch[]> {
    const places = jobs.countPlaces();
    if (places <= 0) return [];
    return database.rows<DueBatch>("select tenant_id, batch_id from jobs.list_due_batches($1, $2::text::jsonb)", [
      places,
      fingerprints,
    ]);
  }

  const mint = (due: DueBatch) =>
    jobs.run(due, async (lease) => {
      const [leased] = await database.rows<Leased>(
        `select salt, key_version, first_number, last_number, event_seq
         from jobs.lease_batch($1, $2, $3, $4, $5, $6::text::jsonb)`,
        [lease.tenant_id, lease.batch_id, lease.session.number, lease.holder, numbersPerLease, fingerprints],
      );
      // undefined: complete, leased to another worker, or made with a key that this worker lacks
      return leased === undefined || mintSlice(lease, leased);
    });

  // Returns true if the batch is complete or another worker has taken it over. Hashes of the next chunk are computed
  // while the database writes the current one.
  async function mintSlice(lease: BatchLease, leased: Leased): Promise<boolean> {
    const key = useStored(() => batchKey(keys, leased.key_version, leased.salt));
    const hash: Hash = (number, attempt) => lookupHash(keys, makeCode(keys, leased.key_version, key, number, attempt));
    let eventSeq = leased.event_seq;
    let isBusy = true;
    const makeNext = (first: number) => {
      const size = isBusy ? chunkSize.busy : chunkSize.quiet;
      return makeChunk(first, Math.min(first + size - 1, leased.last_number), hash);
    };
    let chunk = await makeNext(leased.first_number);
    for (;;) {
      const startedAt = performance.now();
      const isLast = chunk.last === leased.last_number;
      const [progress, next] = await Promise.all([
        writeChunk(database, lease, chunk, hash),
        isLast ? undefined : makeNext(chunk.last + 1),
      ]);
      if (progress.is_complete || progress.minted_count !== chunk.last) return true;
      if (next === undefined || lease.isOver()) return false;
      isBusy = progress.event_seq !== eventSeq;
      if (isBusy) await sleep((performance.now() - startedAt) * pausePerBusyChunk);
      eventSeq = progress.event_seq;
      chunk = next;
    }
  }

  return { listDue, mint };
}

async function makeChunk(first: number, last: number, hash: Hash): Promise<Chunk> {
  const hashes: string[] = [];
  for (let number = first; number <= last; number += 1) {
    // The first turn lets the driver send the previous chunk.
    if (hashes.length % hashesPerTurn === 0) await nextTurn();
    hashes.push(hash(number, 0));
  }
  return { first, last, hashes };
}

// Numbers whose codes collide with existing ones get new codes, until the database accepts the chunk.
async function writeChunk(
  database: ReconnectingDatabase,
  { tenant_id, batch_id, holder }: BatchLease,
  chunk: Chunk,
  hash: Hash,
): Promise<Progress> {
  const hashes = [...chunk.hashes];
  const attempts = hashes.map(() => 0);
  for (;;) {
    const [progress] = await database.rows<Progress>(
      `select minted_count, is_complete, collided, event_seq
       from jobs.mint_chunk($1, $2, $3, $4, $5::text::uuid[], $6::text::smallint[])`,
      [tenant_id, batch_id, holder, chunk.first, `{${hashes.join(",")}}`, `{${attempts.join(",")}}`],
    );
    if (!progress!.collided?.length) return progress!;
    for (const number of progress!.collided) {
      const index = number - chunk.first;
      attempts[index]! += 1;
      hashes[index] = hash(number, attempts[index]!);
    }
  }
}
