// Codes that collide with another code of the tenant, in the same chunk or before, are replaced.
import t from "tap";
import { exportCodes } from "../../../src/commands/codes.ts";
import { batchKey, lookupHash, makeCode } from "../../../src/crypto/coupon-code.ts";
import { openSession } from "../../../src/database/connect.ts";
import type { Database } from "../../../src/database/types.ts";
import { checkComplete, claimBatch, find, mintChunk, openWorker, startMinter, submit } from "../../support/minting.ts";
import { startService } from "../../support/service.ts";
import { openWorkerSession } from "../../support/worker-session.ts";

t.test("a code that another coupon of the tenant has is replaced, twice if need be", async (t) => {
  const service = await startService(t);
  const { keys } = service;
  // More than the first chunk.
  const [taken, id] = [await submit(service, 2), await submit(service, 1_260)];
  const { batch_id, salt, key_version } = await find(service, id);
  const key = batchKey(keys, key_version, salt);
  const others = [0, 1].map((attempt) => makeCode(keys, key_version, key, 1_255, attempt));
  const worker = openWorker(t, service);
  const other = await find(service, taken);
  const { holder } = (await claimBatch(service, worker, await openWorkerSession(t, service.address), other))!;
  await mintChunk(
    worker,
    other,
    holder,
    1,
    others.map((code) => lookupHash(keys, code)),
  );
  await service.mint();
  await checkComplete(t, service, id, 1_260);
  const drawn = await service.owner.rows(
    "select number, code_attempt from core.coupon where batch_id = $1 and code_attempt > 0",
    [batch_id],
  );
  t.strictSame(
    drawn.map((row) => ({ ...row })),
    [{ number: 1_255, code_attempt: 2 }],
  );
  const codes = (await Array.fromAsync(exportCodes(service.admin, keys, id, true))).flat().map(({ code }) => code);
  t.equal(codes[1_254], makeCode(keys, key_version, key, 1_255, 2));
  t.equal(new Set([...codes, ...others]).size, 1_262);
});

t.test("twin codes within a chunk are replaced too, and the batch is completed", async (t) => {
  const service = await startService(t);
  const id = await submit(service, 5);
  const worker = openWorker(t, service);
  let chunks = 0;
  const withTwins: Database = {
    ...worker,
    async rows<T>(text: string, params: readonly unknown[] = []) {
      if (!text.includes("mint_chunk")) return worker.rows<T>(text, params);
      chunks += 1;
      if (chunks === 10) throw new Error("the same chunk comes again and again");
      if (chunks > 1) return worker.rows<T>(text, params);
      const [first, , third, , fifth] = (params[4] as string).slice(1, -1).split(",");
      return worker.rows<T>(text, params.with(4, `{${[first, first, third, first, fifth]}}`));
    },
  };
  await (await startMinter(t, service, { database: withTwins })).mint(await find(service, id));
  await checkComplete(t, service, id, 5);
  t.equal(chunks, 2);
  const attempts = await service.owner.rows<{ code_attempt: number }>(
    "select code_attempt from core.coupon where batch_id = (select batch_id from core.batch) order by number",
  );
  t.strictSame(
    attempts.map(({ code_attempt }) => code_attempt),
    [0, 1, 0, 1, 0],
    "the first of the twins keeps its code",
  );
  // Enough to lose their order when they are sorted by code.
  const [collided] = await service.owner.rows<{ numbers: number[] }>(
    `select rules.find_collisions(1, 1, array(
       select md5((n % 7)::text)::uuid from generate_series(1, 70) n order by n)) as numbers`,
  );
  t.strictSame(
    collided!.numbers.toSorted((a, b) => a - b),
    Array.from({ length: 63 }, (_, index) => index + 8),
    "the first of each code",
  );
});

t.test("a coupon that psql has inserted with a number of the chunk is an error, not a code to replace", async (t) => {
  const service = await startService(t);
  await submit(service, 1);
  await service.mint();
  const batch = await find(service, await submit(service, 2));
  const worker = openWorker(t, service);
  const { holder } = (await claimBatch(service, worker, await openWorkerSession(t, service.address), batch))!;
  const psql = openSession(service.address, { name: "coupon test" });
  t.teardown(() => psql.end());
  await psql.run("begin");
  await psql.rows(
    `insert into core.coupon (tenant_id, batch_id, number, coupon_id, lookup_hash, valid_from, valid_to, created_at)
     select tenant_id, $1, 2, gen_random_uuid(), gen_random_uuid(), valid_from, valid_to, created_at from core.coupon`,
    [batch.batch_id],
  );
  const hashes = [1, 2].map((number) => String(number).repeat(32));
  await t.rejects(mintChunk(psql, batch, holder, 1, hashes), { message: /number_is_unique_in_batch/ });
  await psql.run("rollback");
});
