// Minting: numbers 1 to total_count exactly once each, with concurrent, killed and stopped workers.
import { randomUUID } from "node:crypto";
import t, { type Test } from "tap";
import { batchKey, lookupHash, makeCode } from "../../../src/crypto/coupon-code.ts";
import { fingerprintKeys } from "../../../src/crypto/key-fingerprint.ts";
import { parseMasterKeys } from "../../../src/crypto/keys.ts";
import { connect, openSession } from "../../../src/database/connect.ts";
import type { Database } from "../../../src/database/types.ts";
import { createMinter, type DueBatch } from "../../../src/worker/tasks/mint.ts";
import { exportCodes } from "../../../src/commands/codes.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";

type BatchRow = DueBatch & {
  external_id: string;
  status: string;
  minted_count: number;
  salt: Uint8Array;
  key_version: string;
  is_leased: boolean;
};

async function submit(service: Running, count: number): Promise<string> {
  const created = await service
    .as("ak_a")
    .post("/v1/batches", { request_id: newRequestId(), template: "tpl_fixed", total_count: count });
  return created.json.batch.external_id as string;
}

async function find(service: Running, id: string): Promise<BatchRow> {
  const [row] = await service.owner.rows<BatchRow>(
    `select tenant_id, batch_id, external_id, status, minted_count, salt, key_version,
            coalesce(mint_lease_until > clock_timestamp(), false) as is_leased
     from core.batch where external_id = $1`,
    [id],
  );
  return row!;
}

// The batch is complete, its numbers have no gap or duplicate, and one event announces it.
async function checkComplete(t: Test, service: Running, id: string, count: number): Promise<void> {
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
    "select from core.event where tenant_id = $1 and batch_id = $2 and event_type = 'batch.generated'",
    [tenant_id, batch_id],
  );
  t.equal(events.length, 1, "one batch.generated");
}

function openWorker(t: Test, service: Running): Database {
  const database = connect(service.address, { name: "coupon test worker", role: "coupon_worker", max: 2 });
  t.teardown(() => database.end());
  return database;
}

const never = new AbortController().signal;

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
  const workers = [openWorker(t, service), openWorker(t, service)].map((database) =>
    createMinter({ database, keys: service.keys, stopping: never }),
  );
  await Promise.all(
    workers.map(async (worker) => {
      while ((await find(service, id)).status === "PENDING") await worker.mint(batch);
    }),
  );
  await checkComplete(t, service, id, 30_000);
});

t.test("a lease keeps other workers away until it ends; then they continue after the last chunk", async (t) => {
  const service = await startService(t);
  const id = await submit(service, 20_000);
  const { tenant_id, batch_id } = await find(service, id);
  const worker = openWorker(t, service);
  const [dead, fingerprints] = [randomUUID(), fingerprintKeys(service.keys)];
  const claim = "select first_number, last_number from jobs.claim_batch($1, $2, $3, 10000, $4::text::jsonb)";
  t.match(await worker.rows(claim, [tenant_id, batch_id, dead, fingerprints]), [
    { first_number: 1, last_number: 10_000 },
  ]);
  t.equal((await worker.rows("select from jobs.list_due_batches(10, $1::text::jsonb)", [fingerprints])).length, 0);
  t.equal((await worker.rows(claim, [tenant_id, batch_id, randomUUID(), fingerprints])).length, 0);
  await service.mint();
  t.match(await find(service, id), { status: "PENDING", minted_count: 0 });
  await service.owner.rows("update core.batch set mint_lease_until = clock_timestamp() where batch_id = $1", [
    batch_id,
  ]);
  await service.mint();
  await checkComplete(t, service, id, 20_000);
});

t.test("a late or duplicate chunk changes nothing", async (t) => {
  const service = await startService(t);
  const id = await submit(service, 5);
  const { tenant_id, batch_id } = await find(service, id);
  const worker = openWorker(t, service);
  const mintChunk = (first: number, count: number) => {
    const hashes = Array.from({ length: count }, () => randomUUID());
    return worker.rows("select minted_count, is_complete from jobs.mint_chunk($1, $2, $3, $4, $5::text::uuid[])", [
      tenant_id,
      batch_id,
      randomUUID(),
      first,
      `{${hashes}}`,
    ]);
  };
  t.match(await mintChunk(1, 3), [{ minted_count: 3, is_complete: false }]);
  t.match(await mintChunk(1, 3), [{ minted_count: 3, is_complete: false }], "again");
  t.match(await mintChunk(5, 1), [{ minted_count: 3, is_complete: false }], "with a gap before it");
  t.match(await mintChunk(4, 3), [{ minted_count: 3, is_complete: false }], "beyond the end");
  t.match(await mintChunk(4, 2), [{ minted_count: 5, is_complete: true }]);
  t.match(await mintChunk(4, 2), [{ minted_count: 5, is_complete: true }], "after the end");
  await checkComplete(t, service, id, 5);
});

t.test("only the commit of the last chunk waits for the disk", async (t) => {
  const service = await startService(t);
  const id = await submit(service, 4);
  const { tenant_id, batch_id } = await find(service, id);
  const session = openSession(service.address, { name: "coupon test worker", role: "coupon_worker" });
  t.teardown(() => session.end());
  await session.run("set synchronous_commit = on");
  const waitsAfter = async (first: number) => {
    await session.run("begin");
    await session.rows("select from jobs.mint_chunk($1, $2, $3, $4, $5::text::uuid[])", [
      tenant_id,
      batch_id,
      randomUUID(),
      first,
      `{${randomUUID()},${randomUUID()}}`,
    ]);
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
  await createMinter({ database: stoppedAfterFirstChunk, keys: service.keys, stopping: stopping.signal }).mint(
    await find(service, id),
  );
  t.match(await find(service, id), { status: "PENDING", minted_count: 250, is_leased: false });
});

t.test("chunks are small while other calls write events, and large otherwise", async (t) => {
  const service = await startService(t);
  const database = openWorker(t, service);
  for (const [isBusy, most] of [
    [true, 250],
    [false, 2_000],
  ] as const) {
    const sizes: number[] = [];
    const watched: Database = {
      ...database,
      async rows<T>(text: string, params?: readonly unknown[]) {
        if (text.includes("mint_chunk") && isBusy) await service.owner.rows("select nextval('core.event_seq')");
        const before = text.includes("mint_chunk") ? (params![4] as string) : null;
        if (before !== null) sizes.push(before.split(",").length);
        return database.rows<T>(text, params);
      },
    };
    await createMinter({ database: watched, keys: service.keys, stopping: new AbortController().signal }).mint(
      await find(service, await submit(service, 3_000)),
    );
    t.equal(Math.max(...sizes), most);
    t.equal(
      sizes.reduce((sum, size) => sum + size),
      3_000,
    );
  }
});

t.test("a worker with another key, or without the batch's key, leaves the batch to the others", async (t) => {
  const service = await startService(t);
  const batch = await find(service, await submit(service, 10));
  for (const keys of ["1", "2"].map((version) => parseMasterKeys(`${version}:${"0".repeat(43)}=`))) {
    const minter = createMinter({ database: openWorker(t, service), keys, stopping: never });
    t.equal((await minter.listDue()).length, 0);
    await minter.mint(batch);
    t.match(await find(service, batch.external_id), { minted_count: 0, is_leased: false });
  }
});

t.test("small batches come before large ones", async (t) => {
  const service = await startService(t);
  await submit(service, 1_000_000);
  const small = await find(service, await submit(service, 10));
  const list = "select batch_id from jobs.list_due_batches(1, $1::text::jsonb)";
  const [first] = await openWorker(t, service).rows(list, [fingerprintKeys(service.keys)]);
  t.match(first, { batch_id: small.batch_id });
});

t.test("a code that another coupon of the tenant has is replaced", async (t) => {
  const service = await startService(t);
  const { keys } = service;
  const [taken, id] = [await submit(service, 1), await submit(service, 5)];
  const { tenant_id, batch_id, salt, key_version } = await find(service, id);
  const key = batchKey(keys, key_version, salt);
  const third = makeCode(keys, key_version, key, 3);
  const worker = openWorker(t, service);
  await worker.rows("select jobs.mint_chunk($1, $2, $3, 1, array[$4]::uuid[])", [
    tenant_id,
    (await find(service, taken)).batch_id,
    randomUUID(),
    lookupHash(keys, third),
  ]);
  await service.mint();
  await checkComplete(t, service, id, 5);
  const drawn = await service.owner.rows(
    "select number, code_attempt from core.coupon where batch_id = $1 and code_attempt > 0",
    [batch_id],
  );
  t.strictSame(
    drawn.map((row) => ({ ...row })),
    [{ number: 3, code_attempt: 1 }],
  );
  const codes = (await Array.fromAsync(exportCodes(service.admin, keys, id, true))).flat().map(({ code }) => code);
  t.equal(codes[2], makeCode(keys, key_version, key, 3, 1));
  t.equal(new Set([...codes, third]).size, 6);
});
