// Minting: numbers 1 to total_count exactly once each, with concurrent and stopped workers, and another code for each
// one that collides. Killed workers are in lost-worker.test.ts.
import t, { type Test } from "tap";
import { exportCodes } from "../../../src/commands/codes.ts";
import { batchKey, lookupHash, makeCode } from "../../../src/crypto/coupon-code.ts";
import { parseMasterKeys } from "../../../src/crypto/keys.ts";
import { openSession } from "../../../src/database/connect.ts";
import type { Database } from "../../../src/database/types.ts";
import { fits } from "../../support/fits.ts";
import {
  checkComplete,
  claimBatch,
  drawHashes,
  findBatch,
  isComplete,
  listDueBatches,
  mintChunk,
  reread,
  startMinter,
  submit,
} from "../../support/minting.ts";
import { scenario, type Scenario } from "../../support/scenario.ts";
import { openWorker } from "../../support/subscribers.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { openWorkerSession, type TestWorkerSession } from "../../support/worker-session.ts";

let world: Scenario;
let session: TestWorkerSession;
t.beforeEach(async (t) => {
  world = await scenario(t as Test);
  session = await openWorkerSession(t as Test, world.address);
});

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
  const workers = [await startMinter(t, world), await startMinter(t, world, { database: openWorker(t, world) })];
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
  fits(t, await claimBatch(world, session, batch), { first_number: 1, last_number: 10_000 });
  t.strictSame(await listDueBatches(world), []);
  t.equal(await claimBatch(world, session, batch), null);
  await world.mint();
  fits(t, await reread(world, batch), { status: "PENDING", minted_count: 0 });
  const endLease = "update core.batch set mint_lease_until = clock_timestamp() where batch_id = $1";
  await world.owner.rows(endLease, [batch.batch_id]);
  await world.mint();
  await checkComplete(t, world, batch, 20_000);
});

t.test("a late or duplicate chunk changes nothing", async (t) => {
  const batch = await submit(world, 5);
  const { holder } = (await claimBatch(world, session, batch))!;
  const mint = (first: number, count: number) => mintChunk(world.worker, batch, holder, first, drawHashes(count));
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
  const { holder } = (await claimBatch(world, session, batch))!;
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
  const minter = await startMinter(t, world, { database, stopping: stopping.signal });
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
  const minter = await startMinter(t, world, { database });
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
    const minter = await startMinter(t, world, { keys: parseMasterKeys(`${version}:${"0".repeat(43)}=`) });
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
  t.strictSame(await listDueBatches(world), list);
  await claimBatch(world, session, first);
  t.strictSame(await listDueBatches(world), list.slice(1), "the second is its next");
});

t.test("a worker mints two batches at once, and asks for as many as it has free places", async (t) => {
  const batches: number[] = [];
  for (const count of [1, 2, 3]) batches.push((await submit(world, count)).batch_id);
  const listed: number[][] = [];
  const list = async () => void listed.push((await minter.listDue()).map(({ batch_id }) => batch_id));
  const minter = await startMinter(t, world, { database: watchChunks((mint) => list().then(mint)) });
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
  const { holder } = (await claimBatch(world, session, other))!;
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
  await (await startMinter(t, world, { database })).mint(batch);
  await checkComplete(t, world, batch, 5);
  t.equal(chunks, 2);
  const [row] = await world.owner.rows<{ attempts: number[]; collided: number[] }>(
    // Enough to lose their order when they are sorted by code.
    `select array(select code_attempt from core.coupon order by number) as attempts,
            rules.find_collisions(1, 1, array(
              select md5((n % 7)::text)::uuid from generate_series(1, 70) n order by n)) as collided`,
  );
  t.strictSame(row!.attempts, [0, 1, 0, 1, 0], "the first of the twins keeps its code");
  const allButSeven = Array.from({ length: 63 }, (_, index) => index + 8);
  t.strictSame(
    row!.collided.toSorted((a, b) => a - b),
    allButSeven,
    "the first of each code",
  );
});

t.test("a coupon that psql has inserted with a number of the chunk is an error, not a code to replace", async (t) => {
  await submit(world, 1);
  await world.mint();
  const batch = await submit(world, 2);
  const { holder } = (await claimBatch(world, session, batch))!;
  const psql = await world.openPsql();
  await psql.run("begin");
  await psql.rows(
    `insert into core.coupon (tenant_id, batch_id, number, coupon_id, lookup_hash, valid_from, valid_to, created_at)
     select tenant_id, $1, 2, gen_random_uuid(), gen_random_uuid(), valid_from, valid_to, created_at from core.coupon`,
    [batch.batch_id],
  );
  const minting = mintChunk(psql, batch, holder, 1, drawHashes(2));
  await t.rejects(minting, { message: /number_is_unique_in_batch/ });
  await psql.run("rollback");
});
