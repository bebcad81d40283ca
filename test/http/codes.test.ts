// Codes over HTTP: a file that only the holder of a party's private key can read, given to those to whom `coupon codes`
// would give it. Each export is recorded, and no answer has a code in the clear.
import { Decrypter, generateX25519Identity, identityToRecipient } from "age-encryption";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import path from "node:path";
import { buffer } from "node:stream/consumers";
import t from "tap";
import { exportCodes } from "../../src/commands/codes.ts";
import { batchKey, lookupHash, makeCode } from "../../src/crypto/coupon-code.ts";
import { codesHeader, toCodeLines } from "../../src/formats/codes-csv.ts";
import { newId } from "../../src/formats/id.ts";
import type { CodesFile, Gate } from "../../src/gate/gate.ts";
import { createExports } from "../../src/http/codes-download.ts";
import { openDownload } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { untilBlocked } from "../support/race.ts";
import { scenario } from "../support/scenario.ts";
import { createStubLog, done, keys, secret, startStub, type Stub } from "../support/stub.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";
import { party, secretOf } from "../support/tenants.ts";
import { waitUntil } from "../support/wait-until.ts";

const identity = await generateX25519Identity();
const publicKey = await identityToRecipient(identity);

async function decrypt(file: Uint8Array): Promise<string> {
  const decrypter = new Decrypter();
  decrypter.addIdentity(identity);
  return decrypter.decrypt(file, "text");
}

const world = await scenario(t, { http: true });
const { a, b } = world;
const targetOf = (batch: string, reader = "") => `/v1/batches/${batch}/codes${reader && `?party=${reader}`}`;
const setKey = (variant: "A" | "B", id: string, public_key: string | null) => {
  const tenant = `ten_${variant.toLowerCase()}`;
  return world.apply({ tenants: [{ id: tenant, name: variant, variant, parties: [party(id, { public_key })] }] });
};
const open = (accessKey: string, target: string) =>
  openDownload({ url: world.url, path: target, accessKey, secret: secretOf(accessKey) });
const csvOf = async (batch: string) =>
  codesHeader + toCodeLines((await Array.fromAsync(exportCodes(world.admin, world.keys, batch, true))).flat());
const countExports = async (batch: string) =>
  (await world.owner.rows("select from core.audit where target = $1 and details ? 'party'", [batch])).length;
const conflict = (code: string) => ({ status: 409, json: { code, details: null } });
const notFound = { status: 404, json: { code: "NOT_FOUND", details: { resource: "batch" } } };
const needsParty = { status: 400, json: { code: "INVALID_REQUEST", details: { issues: [{ path: "party" }] } } };

t.test("The file decrypts to the rows of coupon codes, and the audit says who fetched it for whom", async (t) => {
  await setKey("B", "pty_dist", publicKey);
  const { id, coupons } = await world.makeBatch(b.maker, b.template, 3_000);
  const response = await open("ak_dist", targetOf(id));
  const file = await buffer(response);
  t.equal(response.statusCode, 200);
  fits(t, response.headers, {
    "content-type": "application/octet-stream",
    "content-length": String(file.length),
    "content-disposition": `attachment; filename="codes-${id}.csv.age"`,
    "cache-control": "no-store",
  });
  const csv = await csvOf(id);
  t.equal(await decrypt(file), csv);
  const inClear = [coupons[0]!.code, coupons[0]!.id, "coupon_id"];
  for (const text of inClear) t.notOk(file.includes(text), `${text} is not in the file`);
  const [row] = await world.owner.rows<{ details: object; salt: string }>(
    `select u.details, encode(b.salt, 'hex') as salt from core.audit u join core.batch b on b.external_id = u.target
     where u.target = $1 and u.action = 'export_codes' and u.details ? 'party'`,
    [id],
  );
  const who = { party: "pty_dist", public_key: publicKey, access_key: "ak_dist" };
  t.strictSame(row!.details, { status: "ALLOCATED", total_count: 3_000, ...who });
  for (const text of [row!.salt, coupons[0]!.code]) t.notMatch(JSON.stringify(world.log), text, "not logged");

  const head = await b.distributor.head(targetOf(id));
  t.strictSame([head.status, head.headers["content-length"], await countExports(id)], [200, String(file.length), 1]);
  const again = await buffer(await open("ak_dist", targetOf(id)));
  t.notOk(again.equals(file), "each file has its own key");
  t.equal(await countExports(id), 2);
});

const hasAge = spawnSync("age", ["--version"]).error === undefined;
t.test("age, the program, decrypts the file", { skip: !hasAge && "age is not installed" }, async (t) => {
  const folder = useTemporaryFolder(t, "coupon-codes-");
  await setKey("A", "pty_a", publicKey);
  const { id } = await world.makeBatch(a.maker, a.template, 1_500);
  const [key, file] = ["key.txt", "codes.csv.age"].map((name) => path.join(folder, name)) as [string, string];
  writeFileSync(key, identity, { mode: 0o600 });
  writeFileSync(file, await buffer(await open("ak_a", targetOf(id))));
  const { stdout, stderr } = spawnSync("age", ["-d", "-i", key, file], { encoding: "utf8" });
  t.strictSame([stderr, stdout], ["", await csvOf(id)]);
});

t.test("Variant B: the maker prints before it releases; the distributor waits for the release", async (t) => {
  await setKey("B", "pty_dist", publicKey);
  const { id } = await world.makeBatch(b.maker, b.template, 2, { isReleased: false });
  fits(t, await b.maker.get(targetOf(id)), conflict("NO_PUBLIC_KEY"));
  await setKey("B", "pty_maker", publicKey);
  t.equal(await decrypt(await buffer(await open("ak_maker", targetOf(id)))), await csvOf(id));
  fits(t, await b.distributor.get(targetOf(id)), conflict("COUPON_NOT_RELEASED"));
  for (const stranger of [b.till, b.otherTill, world.as("ak_a"), world.as("ak_other")])
    fits(t, await stranger.get(targetOf(id)), notFound);
  fits(t, await b.maker.get(targetOf(id, "pty_dist")), needsParty, "Variant B knows no ?party=");
  await b.maker.ok.allocateBatch(id);
  t.equal(await decrypt(await buffer(await open("ak_dist", targetOf(id)))), await csvOf(id));
  await setKey("B", "pty_dist", null);
  fits(t, await b.distributor.get(targetOf(id)), conflict("NO_PUBLIC_KEY"));
  t.equal(await countExports(id), 2, "a refusal is no export");
});

t.test("A suspended batch can be fetched, a recalled one cannot, whoever asks", async (t) => {
  await setKey("B", "pty_maker", publicKey);
  await setKey("B", "pty_dist", publicKey);
  const { id } = await world.makeBatch(b.maker, b.template, 2);
  const csv = await csvOf(id);
  await b.maker.ok.suspendBatch(id);
  for (const key of ["ak_maker", "ak_dist"]) t.equal(await decrypt(await buffer(await open(key, targetOf(id)))), csv);
  await b.maker.ok.recallBatch(id);
  for (const by of [b.maker, b.distributor]) {
    fits(t, await by.get(targetOf(id)), conflict("BATCH_SUSPENDED"));
    t.equal((await by.head(targetOf(id))).status, 409);
  }
  t.equal(await countExports(id), 2);
  await setKey("B", "pty_dist", null);
});

t.test("Variant A: the call names the party if the maker and the distributor have a key", async (t) => {
  await setKey("A", "pty_far", publicKey);
  await setKey("A", "pty_dist", null);
  await setKey("A", "pty_a", publicKey);
  const { id } = await world.makeBatch(a.maker, a.template, 2, { isReleased: false, distributor: "pty_dist" });
  const read = async (reader?: string) => decrypt(await buffer(await open("ak_a", targetOf(id, reader))));
  const csv = await csvOf(id);
  t.equal(await read(), csv, "only the maker has a key");
  fits(t, await a.maker.get(targetOf(id, "pty_dist")), conflict("COUPON_NOT_RELEASED"));
  await a.maker.ok.allocateBatch(id);
  fits(t, await a.maker.get(targetOf(id, "pty_dist")), conflict("NO_PUBLIC_KEY"));
  await setKey("A", "pty_dist", publicKey);
  fits(t, await a.maker.get(targetOf(id)), needsParty);
  for (const reader of ["pty_a", "pty_dist"]) t.equal(await read(reader), csv, reader);
  for (const other of ["pty_far", "pty_none", "pty_maker"]) fits(t, await a.maker.get(targetOf(id, other)), notFound);
  await setKey("A", "pty_a", null);
  t.equal(await read(), csv, "only the distributor has a key");
  await setKey("A", "pty_dist", null);
  fits(t, await a.maker.get(targetOf(id)), conflict("NO_PUBLIC_KEY"));
  await setKey("A", "pty_a", publicKey);
});

t.test("A pending batch and destroyed codes are refused, with or without a key", async (t) => {
  for (const key of [null, publicKey]) {
    await setKey("A", "pty_a", key);
    const { batch } = await a.maker.ok.createBatch(a.template, 1);
    fits(t, await a.maker.get(targetOf(batch.external_id)), conflict("BATCH_NOT_COMPLETED"));
    await world.mint();
    await world.admin.rows("select admin.destroy_codes($1, 'printed')", [batch.external_id]);
    fits(t, await a.maker.get(targetOf(batch.external_id)), conflict("CODES_DESTROYED"));
    t.equal(await countExports(batch.external_id), 0);
  }
});

t.test("An export waits for who is destroying the codes, and then gets none", async (t) => {
  const { id } = await world.makeBatch(a.maker, a.template, 1);
  const psql = await world.openPsql();
  await psql.run("begin");
  await psql.rows("select admin.destroy_codes($1, 'printed')", [id]);
  const reply = a.maker.get(targetOf(id));
  await untilBlocked(world, 1);
  await psql.run("commit");
  fits(t, await reply, conflict("CODES_DESTROYED"));
});

// A gate whose batch has this many coupons. `page` may fail.
function createCodesGate(count: number, page: (after: number) => Promise<void> | void = () => {}) {
  const salt = Buffer.alloc(16, 1);
  const key = batchKey(keys, "1", salt);
  const file: CodesFile = {
    tenant_id: 7,
    batch_id: 1,
    batch: "bat_a",
    salt: salt.toString("hex"),
    key_version: "1",
    total_count: count,
    public_key: publicKey,
  };
  const coupon_id = newId("cpn");
  const pages: number[] = [];
  const gate: Pick<Gate, "perform" | "codesPage"> = {
    perform: async () => ({ ...done, body: JSON.stringify(file) }),
    async codesPage(_, after, limit) {
      pages.push(after);
      await page(after);
      return Array.from({ length: Math.min(limit, count - after) }, (_, index) => {
        const number = after + 1 + index;
        return { number, code_attempt: 0, coupon_id, lookup_hash: lookupHash(keys, makeCode(keys, "1", key, number)) };
      });
    },
  };
  return { gate, file, pages };
}

const openStub = ({ url }: Stub, accessKey = "ak_a") =>
  openDownload({ url, path: targetOf("bat_a"), accessKey, secret });
const errorsOf = ({ log }: Stub) => log.filter(({ level }) => level === 50);

// What arrived, and whether the connection broke before content-length was reached.
async function readCut(response: IncomingMessage) {
  const chunks: Buffer[] = [];
  let isCut = false;
  try {
    for await (const chunk of response) chunks.push(chunk as Buffer);
  } catch {
    isCut = true;
  }
  return { isCut, file: Buffer.concat(chunks) };
}

t.test("An error after the first page cuts the connection, and the part does not decrypt", async (t) => {
  const { gate } = createCodesGate(10_000, (after) => {
    if (after >= 6_000) throw new Error("gone");
  });
  const stub = await startStub(t, gate);
  const response = await openStub(stub);
  const { isCut, file } = await readCut(response);
  t.ok(isCut && file.length > 100_000 && file.length < Number(response.headers["content-length"]), String(file.length));
  await t.rejects(decrypt(file));
  const request_id = response.headers["x-request-id"] as string;
  fits(t, errorsOf(stub), [{ msg: "export cut short", err: { message: "gone" }, request_id }]);
});

t.test("If the first page fails, the answer is an error and not a file", async (t) => {
  const { gate } = createCodesGate(10, () => {
    throw new Error("no such page");
  });
  const stub = await startStub(t, gate);
  fits(t, await stub.asA.get(targetOf("bat_a")), { status: 500, headers: { "content-type": /json/ } });
});

t.test("A tenant has half of the places, and the place of a caller that leaves is free again", async (t) => {
  const stub = await startStub(t, createCodesGate(5_000_000).gate, { exports: 4 });
  const responses = [await openStub(stub), await openStub(stub)];
  fits(t, await stub.asA.get(targetOf("bat_a")), { status: 503, headers: { "retry-after": "1" } });
  fits(t, stub.log.at(-1)!, { reason: "too many exports of the tenant at once" });
  responses.push(await openStub(stub, "ak_b"), await openStub(stub, "ak_b"));
  t.ok(
    responses.every(({ statusCode }) => statusCode === 200),
    "another tenant has the other half",
  );
  fits(t, await stub.asB.get(targetOf("bat_a")), { status: 503 });
  for (const response of responses) response.destroy();
  for (const by of [stub.asA, stub.asB, stub.asA, stub.asB, stub.asA])
    await waitUntil("a place", async () => (await by.head(targetOf("bat_a"))).status === 200);
  t.strictSame(errorsOf(stub), []);
});

t.test("An export reads only a few pages ahead of its caller", async (t) => {
  const { gate, file, pages } = createCodesGate(5_000_000);
  const { logger } = createStubLog();
  const exports = createExports({ gate, keys, log: logger, most: 2 });
  const { body } = await exports.open(file, { isHead: false, deadline: performance.now() + 3_500 });
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  await reader.read();
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const seen = pages.length;
  t.ok(seen < 30, `${seen} pages`);
  await reader.cancel();
});

// A point of order 1: whatever is encrypted to it, everyone can read.
const zeroKey = "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq5cu47z";

t.test("apply refuses a key that age cannot use", async (t) => {
  const mistyped = publicKey.slice(0, -1) + (publicKey.endsWith("q") ? "p" : "q");
  const wrong = ["", "age1", publicKey.toUpperCase(), `${publicKey} `, mistyped, identity, "ssh-ed25519 AAAA", zeroKey];
  const isRefused = { message: /^tenants\.0\.parties\.0\.public_key: must be an X25519 key of age[^\n]*$/ };
  for (const key of wrong) await t.rejects(setKey("A", "pty_a", key), isRefused);
  const readKey = () => world.owner.rows("select public_key from core.party where external_id = 'pty_a'");
  fits(t, await readKey(), [{ public_key: publicKey }]);
  await world.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", parties: [party("pty_a")] }] });
  fits(t, await readKey(), [{ public_key: publicKey }], "a file without a key keeps it");
});
