// Minting: numbers 1 to total_count exactly once each, with concurrent, killed and stopped workers.
import t, { type Test } from "tap";
import { fingerprintKeys } from "../../../src/crypto/key-fingerprint.ts";
import { parseMasterKeys } from "../../../src/crypto/keys.ts";
import { openSession } from "../../../src/database/connect.ts";
import type { Database } from "../../../src/database/types.ts";
import { fits } from "../../support/fits.ts";
import {
  checkComplete,
  claimBatch,
  drawHashes,
  find,
  mintChunk,
  openWorker,
  startMinter,
  submit,
} from "../../support/minting.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { openWorkerSession } from "../../support/worker-session.ts";

t.test("a batch of several chunks is minted to the exact count", async (t) => {
  const service = await startService(t);
  const id = await submit(service, 25_001);
  await service.mint();
  await checkComplete(t, service, id, 25_001);
});

t.test("two workers on one batch at once mint it once", async (t) => {
  const service = await startService(t);
  const id = await submit(service, 30_000);
  const batch = await find(service, id);
  const workers = [await startMinter(t, service), await startMinter(t, service)];
  await Promise.all(
    workers.map(async (worker) => {
      const isComplete = async () => {
        await worker.mint(batch);
        return (await find(service, id)).status === "COMPLETED";
      };
      await waitUntil("a complete batch", isComplete, { everyMs: 0 });
    }),
  );
  await checkComplete(t, service, id, 30_000);
});

t.test("a lease keeps other workers away until it ends; then they continue after the last chunk", async (t) => {
  const service = await startService(t);
  const id = await submit(service, 20_000);
  const batch = await find(service, id);
  const worker = openWorker(t, service);
  const session = await openWorkerSession(t, service.address);
  fits(t, await claimBatch(service, worker, session, batch), { first_number: 1, last_number: 10_000 });
  const list = "select from jobs.list_due_batches(10, $1::text::jsonb)";
  t.equal((await worker.rows(list, [fingerprintKeys(service.keys)])).length, 0);
  t.equal(await claimBatch(service, worker, session, batch), null);
  await service.mint();
  fits(t, await find(service, id), { status: "PENDING", minted_count: 0 });
  await service.owner.rows("update core.batch set mint_lease_until = clock_timestamp() where batch_id = $1", [
    batch.batch_id,
  ]);
  await service.mint();
  await checkComplete(t, service, id, 20_000);
});

t.test("a late or duplicate chunk changes nothing", async (t) => {
  const service = await startService(t);
  const id = await submit(service, 5);
  const batch = await find(service, id);
  const worker = openWorker(t, service);
  const { holder } = (await claimBatch(service, worker, await openWorkerSession(t, service.address), batch))!;
  const mint = (first: number, count: number) => mintChunk(worker, batch, holder, first, drawHashes(count));
  t.strictSame(await mint(1, 3), { minted_count: 3, is_complete: false });
  t.strictSame(await mint(1, 3), { minted_count: 3, is_complete: false }, "again");
  t.strictSame(await mint(5, 1), { minted_count: 3, is_complete: false }, "with a gap before it");
  t.strictSame(await mint(4, 3), { minted_count: 3, is_complete: false }, "beyond the end");
  t.strictSame(await mint(4, 2), { minted_count: 5, is_complete: true });
  t.strictSame(await mint(4, 2), { minted_count: 5, is_complete: true }, "after the end");
  await checkComplete(t, service, id, 5);
});

t.test("only the commit of the last chunk waits for the disk", async (t) => {
  const service = await startService(t);
  const id = await submit(service, 4);
  const batch = await find(service, id);
  const { holder } = (await claimBatch(
    service,
    openWorker(t, service),
    await openWorkerSession(t, service.address),
    batch,
  ))!;
  const session = openSession(service.address, { name: "coupon test worker", role: "coupon_worker" });
  t.teardown(() => session.end());
  await session.run("set synchronous_commit = on");
  const waitsAfter = async (first: number) => {
    await session.run("begin");
    await mintChunk(session, batch, holder, first, drawHashes(2));
    const [row] = await session.rows<{ waits: string }>("select current_setting('synchronous_commit') as waits");
    await session.run("commit");
    return row!.waits;
  };
  t.strictSame([await waitsAfter(1), await waitsAfter(3)], ["off", "on"]);
  await checkComplete(t, service, id, 4);
});

t.test("a stopped worker finishes its chunk and releases the lease", async (t) => {
  const service = await startService(t);
  const id = await submit(service, 30_000);
  const stopping = new AbortController();
  const database = openWorker(t, service);
  const stoppedAfterFirstChunk: Database = {
    ...database,
    async rows<T>(text: string, params?: readonly unknown[]) {
      const rows = await database.rows<T>(text, params);
      if (text.includes("mint_chunk")) stopping.abort();
      return rows;
    },
  };
  const minter = await startMinter(t, service, { database: stoppedAfterFirstChunk, stopping: stopping.signal });
  await minter.mint(await find(service, id));
  fits(t, await find(service, id), { status: "PENDING", minted_count: 250, is_leased: false });
});

t.test("chunks are small, with pauses between them, while other calls write events", async (t) => {
  const service = await startService(t);
  const drawEventNumber = () => service.owner.rows("select nextval('core.event_seq')");
  // The first number of a new sequence does not raise its last_value.
  await drawEventNumber();
  // The next chunk of a slice may begin then. A timer counts whole milliseconds.
  let mayBeginAt = 0;
  const slices = await mintWatched(t, service, {
    claimed: () => (mayBeginAt = 0),
    async chunk(mint) {
      const begunAt = performance.now();
      t.ok(begunAt >= mayBeginAt, "a pause of three times the last chunk");
      await drawEventNumber();
      await mint();
      const now = performance.now();
      mayBeginAt = now + 3 * (now - begunAt) - 2;
    },
  });
  t.strictSame(slices.flat(), Array(12).fill(250));
});

t.test("chunks are large after the first two of a slice while nobody writes events", async (t) => {
  const service = await startService(t);
  const slices = await mintWatched(t, service, { claimed() {}, chunk: (mint) => mint() });
  // The second chunk is made while the first one is written. A slice ends early on a busy machine.
  let left = 3_000;
  for (const sizes of slices) {
    const expected = [250, 250, 2_000, 500].map((size) => Math.min(size, left)).slice(0, sizes.length);
    t.strictSame(sizes, expected);
    left -= sizes.reduce((sum, size) => sum + size, 0);
  }
  t.equal(left, 0);
});

type Watch = { claimed(): void; chunk(mint: () => Promise<void>): Promise<void> };

// Mints a batch of 3,000 coupons. Returns the sizes of the chunks of each slice.
async function mintWatched(t: Test, service: Running, watch: Watch): Promise<number[][]> {
  const database = openWorker(t, service);
  const slices: number[][] = [];
  const watched: Database = {
    ...database,
    async rows<T>(text: string, params?: readonly unknown[]) {
      if (!text.includes("mint_chunk")) {
        watch.claimed();
        if (text.includes("lease_batch")) slices.push([]);
        return database.rows<T>(text, params);
      }
      slices.at(-1)!.push((params![4] as string).split(",").length);
      let rows: T[] = [];
      await watch.chunk(async () => void (rows = await database.rows<T>(text, params)));
      return rows;
    },
  };
  const minter = await startMinter(t, service, { database: watched });
  const batch = await find(service, await submit(service, 3_000));
  const isComplete = async () => {
    await minter.mint(batch);
    return (await find(service, batch.external_id)).status === "COMPLETED";
  };
  await waitUntil("a complete batch", isComplete, { everyMs: 0 });
  return slices;
}

t.test("a worker with another key, or without the batch's key, leaves the batch to the others", async (t) => {
  const service = await startService(t);
  const batch = await find(service, await submit(service, 10));
  for (const keys of ["1", "2"].map((version) => parseMasterKeys(`${version}:${"0".repeat(43)}=`))) {
    const minter = await startMinter(t, service, { keys });
    t.equal((await minter.listDue()).length, 0);
    await minter.mint(batch);
    fits(t, await find(service, batch.external_id), { minted_count: 0, is_leased: false });
  }
});

t.test("small batches come before large ones", async (t) => {
  const service = await startService(t);
  await submit(service, 1_000_000);
  const small = await find(service, await submit(service, 10));
  const list = "select batch_id from jobs.list_due_batches(1, $1::text::jsonb)";
  const [first] = await openWorker(t, service).rows(list, [fingerprintKeys(service.keys)]);
  fits(t, first, { batch_id: small.batch_id });
});

t.test("a tenant with many batches leaves a place to another tenant", async (t) => {
  const service = await startService(t);
  const worker = openWorker(t, service);
  const [first, second] = [
    await find(service, await submit(service, 10)),
    await find(service, await submit(service, 20)),
  ];
  const submitOther = async () => {
    const body = { request_id: newRequestId(), template: "tpl_b", total_count: 1_000 };
    const created = await service.as("ak_maker").post("/v1/batches", body);
    return find(service, created.json.batch.external_id as string);
  };
  const [other, otherSecond] = [await submitOther(), await submitOther()];
  const list = async () => {
    const text = "select batch_id from jobs.list_due_batches(10, $1::text::jsonb)";
    const rows = await worker.rows<{ batch_id: number }>(text, [fingerprintKeys(service.keys)]);
    return rows.map(({ batch_id }) => batch_id);
  };
  t.strictSame(await list(), [first.batch_id, other.batch_id, second.batch_id, otherSecond.batch_id]);
  await claimBatch(service, worker, await openWorkerSession(t, service.address), first);
  t.strictSame(await list(), [other.batch_id, second.batch_id, otherSecond.batch_id], "the second is its next");
});

t.test("a worker mints two batches at once, and asks for as many as it has free places", async (t) => {
  const service = await startService(t);
  const batches: number[] = [];
  for (const count of [1, 2, 3]) batches.push((await find(service, await submit(service, count))).batch_id);
  const database = openWorker(t, service);
  const listed: number[][] = [];
  const list = async () => void listed.push((await minter.listDue()).map(({ batch_id }) => batch_id));
  const watched: Database = {
    ...database,
    async rows<T>(text: string, params?: readonly unknown[]) {
      if (text.includes("mint_chunk")) await list();
      return database.rows<T>(text, params);
    },
  };
  const minter = await startMinter(t, service, { database: watched });
  const [first, second, third] = batches as [number, number, number];
  await list();
  for (const batch of await minter.listDue()) await minter.mint(batch);
  await list();
  t.strictSame(listed, [[first, second], [second], [third], [third]]);
});
