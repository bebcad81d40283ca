// Minting: numbers 1 to total_count exactly once each, with concurrent and stopped workers, and another code for each
// one that collides. Killed workers are in lost-worker.test.ts.
import { randomUUID } from "node:crypto";
import t, { type Test } from "tap";
import { exportCodes } from "../../../src/commands/codes.ts";
import { batchKey, lookupHash, makeCode } from "../../../src/crypto/coupon-code.ts";
import { fingerprintKeys } from "../../../src/crypto/key-fingerprint.ts";
import { parseMasterKeys } from "../../../src/crypto/keys.ts";
import { openSession } from "../../../src/database/connect.ts";
import type { Database } from "../../../src/database/types.ts";
import type { DueBatch } from "../../../src/worker/batch-jobs.ts";
import { createMinter } from "../../../src/worker/tasks/mint.ts";
import { fits } from "../../support/fits.ts";
import { checkComplete, findBatch, isComplete, reread, submit } from "../../support/minting.ts";
import { scenario, type Scenario } from "../../support/scenario.ts";
import { openWorker } from "../../support/subscribers.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { openWorkerSession, type TestWorkerSession } from "../../support/worker-session.ts";

let world: Scenario;
let session: TestWorkerSession;

/** The task of a worker that mints. */
const startMinter = ({ keys = world.keys, database = world.worker, stopping = new AbortController().signal } = {}) =>
  createMinter({ database, keys, getSession: () => session, stopping });

t.beforeEach(async (t) => {
  world = await scenario(t as Test);
  session = await openWorkerSession(t as Test, world.address);
});

/** The batches that a worker would be given. */
async function listDueBatches(): Promise<number[]> {
  const text = "select tenant_id, batch_id from jobs.list_due_batches(10, $1::text::jsonb)";
  const rows = await world.worker.rows<DueBatch>(text, [fingerprintKeys(world.keys)]);
  return rows.map(({ batch_id }) => batch_id);
}

/** Claims a batch as a job of this worker does. Null: not due. */
async function claimBatch({ tenant_id, batch_id }: DueBatch, worker = session.number) {
  const holder = randomUUID();
  const [claimed] = await world.worker.rows<{ first_number: number; last_number: number }>(
    "select first_number, last_number from jobs.lease_batch($1, $2, $3, $4, 10000, $5::text::jsonb)",
    [tenant_id, batch_id, worker, holder, fingerprintKeys(world.keys)],
  );
  return claimed === undefined ? null : { holder, ...claimed };
}

/** Mints the next coupons with these lookup hashes. */
async function mintChunk(
  worker: Pick<Database, "rows">,
  { tenant_id, batch_id }: DueBatch,
  holder: string,
  first: number,
  hashes: string[],
) {
  const [row] = await worker.rows<{ minted_count: number; is_complete: boolean }>(
    "select minted_count, is_complete from jobs.mint_chunk($1, $2, $3, $4, $5::text::uuid[])",
    [tenant_id, batch_id, holder, first, `{${hashes.join()}}`],
  );
  return { ...row! };
}

const drawHashes = (count: number): string[] => Array.from({ length: count }, () => randomUUID());

/** A worker's database. `act` carries out each statement that mints a chunk. */
function watchChunks(act: (mint: () => Promise<unknown>, params: readonly unknown[]) => Promise<unknown>): Database {
  return {
    ...world.worker,
    async rows<T>(text: string, params: readonly unknown[] = []) {
      if (!text.includes("mint_chunk")) return world.worker.rows<T>(text, params);
      let rows: T[] = [];
      await act(async () => void (rows = await world.worker.rows<T>(text, params)), params);
      return rows;
    },
  };
}

t.test("two workers on one batch at once mint it once", async (t) => {
  const batch = await submit(world, 20_001);
  const workers = [startMinter(), startMinter({ database: openWorker(t, world) })];
  await Promise.all(
    workers.map(async (worker) => {
      const isOver = async () => {
        await worker.mint(batch);
        return isComplete(world, batch);
      };
      await waitUntil("a complete batch", isOver, { everyMs: 0 });
    }),
  );
  await checkComplete(t, world, batch, 20_001);
});

t.test("a lease keeps other workers away until it ends; then they continue after the last chunk", async (t) => {
  const batch = await submit(world, 20_000);
  t.equal(await claimBatch(batch, 999), null, "a worker without a session claims nothing");
  fits(t, await claimBatch(batch), { first_number: 1, last_number: 10_000 });
  t.strictSame(await listDueBatches(), []);
  t.equal(await claimBatch(batch), null);
  await world.mint();
  fits(t, await reread(world, batch), { status: "PENDING", minted_count: 0 });
  const endLease = "update core.batch set mint_lease_until = clock_timestamp() where batch_id = $1";
  await world.owner.rows(endLease, [batch.batch_id]);
  await world.mint();
  await checkComplete(t, world, batch, 20_000);
});

t.test("a late or duplicate chunk changes nothing", async (t) => {
  const batch = await submit(world, 5);
  const { holder } = (await claimBatch(batch))!;
  const mint = (first: number, count: number, by = holder) =>
    mintChunk(world.worker, batch, by, first, drawHashes(count));
  t.strictSame(await mint(1, 3, randomUUID()), { minted_count: 0, is_complete: false }, "without the lease");
  t.strictSame(await mint(1, 3), { minted_count: 3, is_complete: false });
  t.strictSame(await mint(1, 3), { minted_count: 3, is_complete: false }, "again");
  t.strictSame(await mint(5, 1), { minted_count: 3, is_complete: false }, "with a gap before it");
  t.strictSame(await mint(4, 3), { minted_count: 3, is_complete: false }, "beyond the end");
  t.strictSame(await mint(4, 2), { minted_count: 5, is_complete: true });
  t.strictSame(await mint(4, 2), { minted_count: 5, is_complete: true }, "after the end");
  await checkComplete(t, world, batch, 5);
});

t.test("only the commit of the last chunk waits for the disk", async (t) => {
  const batch = await submit(world, 4);
  const { holder } = (await claimBatch(batch))!;
  const worker = openSession(world.address, { name: "coupon test worker", role: "coupon_worker" });
  t.teardown(() => worker.end());
  await worker.run("set synchronous_commit = on");
  const waits: unknown[] = [];
  for (const first of [1, 3]) {
    await worker.run("begin");
    await mintChunk(worker, batch, holder, first, drawHashes(2));
    waits.push({ ...(await worker.rows("select current_setting('synchronous_commit') as waits"))[0] });
    await worker.run("commit");
  }
  t.strictSame(waits, [{ waits: "off" }, { waits: "on" }]);
});

t.test("a stopped worker finishes its chunk and releases the lease", async (t) => {
  const batch = await submit(world, 3_000);
  const stopping = new AbortController();
  const database = watchChunks((mint) => mint().finally(() => stopping.abort()));
  const minter = startMinter({ database, stopping: stopping.signal });
  await minter.mint(batch);
  fits(t, await reread(world, batch), { status: "PENDING", minted_count: 250, is_leased: false });
});

/** Mints a batch of 3,000 coupons. Returns the sizes of the chunks of each slice. */
async function mintSlices(t: Test, act: (mint: () => Promise<unknown>, isFirst: boolean) => Promise<unknown>) {
  const slices: number[][] = [];
  const database = watchChunks((mint, params) => {
    const slice = slices.at(-1)!;
    slice.push((params[4] as string).split(",").length);
    return act(mint, slice.length === 1);
  });
  const minter = startMinter({ database });
  const batch = await submit(world, 3_000);
  const isOver = async () => {
    slices.push([]);
    await minter.mint(batch);
    return isComplete(world, batch);
  };
  await waitUntil("a complete batch", isOver, { everyMs: 0 });
  return slices;
}

t.test("chunks are small, with pauses between them, while other calls write events", async (t) => {
  const drawEventNumber = () => world.owner.rows("select nextval('core.event_seq')");
  // The first number of a new sequence does not raise its last_value.
  await drawEventNumber();
  // The next chunk of a slice may begin then. A timer counts whole milliseconds.
  let mayBeginAt = 0;
  const slices = await mintSlices(t, async (mint, isFirst) => {
    const begunAt = performance.now();
    t.ok(isFirst || begunAt >= mayBeginAt, "a pause of three times the last chunk");
    await drawEventNumber();
    await mint();
    const now = performance.now();
    mayBeginAt = now + 3 * (now - begunAt) - 2;
  });
  t.strictSame(slices.flat(), Array(12).fill(250));
});

t.test("chunks are large after the first two of a slice while nobody writes events", async (t) => {
  const slices = await mintSlices(t, (mint) => mint());
  // The second chunk is made while the first one is written. A slice ends early on a busy machine.
  let left = 3_000;
  for (const sizes of slices) {
    const expected = [250, 250, 2_000, 500].map((size) => Math.min(size, left)).slice(0, sizes.length);
    t.strictSame(sizes, expected);
    left -= sizes.reduce((sum, size) => sum + size, 0);
  }
  t.equal(left, 0);
});

t.test("a worker with another key, or without the batch's key, leaves the batch to the others", async (t) => {
  const batch = await submit(world, 10);
  for (const version of ["1", "2"]) {
    const minter = startMinter({ keys: parseMasterKeys(`${version}:${"0".repeat(43)}=`) });
    t.equal((await minter.listDue()).length, 0);
    await minter.mint(batch);
    fits(t, await reread(world, batch), { minted_count: 0, is_leased: false });
  }
});

t.test("small batches come first, and a tenant with many leaves a place to another tenant", async (t) => {
  const [second, first] = [await submit(world, 20), await submit(world, 10)];
  const submitOther = async () => {
    const { batch } = await world.b.maker.ok.createBatch(world.b.template, 1_000);
    return findBatch(world, batch.external_id);
  };
  const [other, otherSecond] = [await submitOther(), await submitOther()];
  const list = [first, other, second, otherSecond].map(({ batch_id }) => batch_id);
  t.strictSame(await listDueBatches(), list);
  await claimBatch(first);
  t.strictSame(await listDueBatches(), list.slice(1), "the second is its next");

  // What is left decides, not the size: only 5 of this batch.
  const begun = await submit(world, 100);
  const { holder } = (await claimBatch(begun))!;
  await mintChunk(world.worker, begun, holder, 1, drawHashes(95));
  await world.worker.rows("select jobs.end_batch_lease($1, $2, $3)", [begun.tenant_id, begun.batch_id, holder]);
  t.strictSame(
    (await listDueBatches()).filter((id) => id !== other.batch_id && id !== otherSecond.batch_id),
    [begun.batch_id, second.batch_id],
  );
});

t.test("a worker mints two batches at once, and asks for as many as it has free places", async (t) => {
  const batches: number[] = [];
  for (const count of [1, 2, 3]) batches.push((await submit(world, count)).batch_id);
  const listed: number[][] = [];
  const list = async () => void listed.push((await minter.listDue()).map(({ batch_id }) => batch_id));
  const minter = startMinter({ database: watchChunks((mint) => list().then(mint)) });
  const [first, second, third] = batches as [number, number, number];
  await list();
  for (const batch of await minter.listDue()) await minter.mint(batch);
  await list();
  t.strictSame(listed, [[first, second], [second], [third], [third]]);
});

t.test("a code that another coupon of the tenant has is replaced, twice if need be", async (t) => {
  const { keys } = world;
  // More than the first chunk.
  const [other, batch] = [await submit(world, 2), await submit(world, 1_260)];
  const key = batchKey(keys, batch.key_version, batch.salt);
  const makeAttempt = (attempt: number) => makeCode(keys, batch.key_version, key, 1_255, attempt);
  const taken = [makeAttempt(0), makeAttempt(1)];
  const { holder } = (await claimBatch(other))!;
  const hashes = taken.map((code) => lookupHash(keys, code));
  await mintChunk(world.worker, other, holder, 1, hashes);
  await world.mint();
  await checkComplete(t, world, batch, 1_260);
  const drawn = "select number, code_attempt from core.coupon where batch_id = $1 and code_attempt > 0";
  fits(t, [...(await world.owner.rows(drawn, [batch.batch_id]))], [{ number: 1_255, code_attempt: 2 }]);
  const exported = await Array.fromAsync(exportCodes(world.admin, keys, batch.external_id, true));
  const codes = exported.flat().map(({ code }) => code);
  t.equal(codes[1_254], makeAttempt(2));
  t.equal(new Set([...codes, ...taken]).size, 1_262);
});

t.test("twin codes within a chunk are replaced too, and the batch is completed", async (t) => {
  const batch = await submit(world, 5);
  let chunks = 0;
  const database: Database = {
    ...world.worker,
    async rows<T>(text: string, params: readonly unknown[] = []) {
      if (!text.includes("mint_chunk")) return world.worker.rows<T>(text, params);
      chunks += 1;
      if (chunks === 10) throw new Error("the same chunk comes again and again");
      if (chunks > 1) return world.worker.rows<T>(text, params);
      const [first, , third, , fifth] = (params[4] as string).slice(1, -1).split(",");
      return world.worker.rows<T>(text, params.with(4, `{${[first, first, third, first, fifth]}}`));
    },
  };
  await startMinter({ database }).mint(batch);
  await checkComplete(t, world, batch, 5);
  t.equal(chunks, 2);
  const [row] = await world.owner.rows<{ attempts: number[] }>(
    "select array(select code_attempt from core.coupon order by number) as attempts",
  );
  t.strictSame(row!.attempts, [0, 1, 0, 1, 0], "the first of the twins keeps its code");
});
