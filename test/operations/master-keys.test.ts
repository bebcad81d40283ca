// Wrong, missing and lost master keys, noticed by every program before it does anything. And the documented rotation,
// which works while programs with the old and the new list run.
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import path from "node:path";
import t, { type Test } from "tap";
import { exportCodes } from "../../src/commands/codes.ts";
import { readConfig } from "../../src/config/config.ts";
import { hashBody } from "../../src/crypto/body-hash.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import { openSession } from "../../src/database/connect.ts";
import { work } from "../../src/work.ts";
import { postOk, sendPlain, type Client } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { environmentOf, runProgram } from "../support/program.ts";
import { startProxy } from "../support/proxy.ts";
import { newRequestId } from "../support/request-id.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { createStubLog } from "../support/stub.ts";
import { waitUntil } from "../support/wait-until.ts";

const newKey = () => randomBytes(32).toString("base64");
const isOther = "COUPON_MASTER_KEY: key 1 is not the one this database was used with";
const isMissing = (version: number) =>
  `COUPON_MASTER_KEY: key ${version} is missing, but codes or secrets in this database were made with it`;
const readyOf = async (url: string) => (await sendPlain(url, "GET", "/readyz")).status;

const service = await scenario(t, { http: true });
// Starts the HTTP side with these keys.
const serveWith = (t: Test, masterKeyText: string, { address }: Pick<Scenario, "address">) =>
  scenario(t, { http: true, file: null, on: { address, masterKeyText } });

async function workWith(t: Test, masterKeyText: string, { address }: Pick<Scenario, "address">): Promise<void> {
  const { logger: log } = createStubLog();
  const { stop } = await work({ address, keys: parseMasterKeys(masterKeyText), config: readConfig({}), log });
  t.teardown(stop);
}

async function submit(by: Client): Promise<string> {
  const body = { request_id: newRequestId(), template: "tpl_fixed", total_count: 5 };
  return (await postOk(by, "/v1/batches", body)).batch.external_id as string;
}

async function readBatch({ owner }: Scenario, id: string) {
  const text = "select status, key_version, minted_count from core.batch where external_id = $1";
  const [batch] = await owner.rows<{ status: string; key_version: string; minted_count: number }>(text, [id]);
  return batch!;
}

t.test("with another key, no program starts, and nothing is minted or stored", async (t) => {
  const { id } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 2, { isReleased: false });
  const pending = await submit(service.as("ak_a"));
  const file = path.join(t.testdir(), "file.json");
  writeFileSync(file, JSON.stringify({ tenants: [{ id: "ten_new", name: "New", variant: "A" }] }));
  const env = environmentOf({ ...service, masterKeyText: `2:${newKey()},1:${newKey()}` });
  // Every program that uses keys, with arguments that would work.
  for (const [name, ...args] of [
    ["start"],
    ["serve"],
    ["work"],
    ["apply", file],
    ["codes", id, "--unreleased"],
    ["webhooks", "status"],
  ] as const) {
    const { code, stdout, stderr } = await runProgram(name, { args: [...args], env });
    t.strictSame({ code, stderr }, { code: 1, stderr: `${isOther}\n` }, name);
    t.notMatch(stdout, /cpn_|working|serving|Listening/, name);
  }
  fits(t, await readBatch(service, pending), { status: "PENDING", minted_count: 0 });
  t.equal((await service.owner.rows("select from core.tenant where external_id = 'ten_new'")).length, 0);
  t.strictSame([...(await service.owner.rows("select version from core.master_key"))], [{ version: "1" }]);
});

t.test("a program that lacks a key and starts while its database is away is never ready", async (t) => {
  const proxy = await startProxy(service.address);
  t.teardown(() => proxy.stop());
  proxy.set({ cutsConnect: () => true });
  const there = { address: { ...service.address, host: "127.0.0.1", port: proxy.port } };
  const right = await serveWith(t, service.masterKeyText, there);
  const lacking = await serveWith(t, `2:${newKey()}`, there);
  proxy.set({});
  await waitUntil("the program with all keys to be ready", async () => (await readyOf(right.url)) === 200);
  const answers = new Set<number>();
  await waitUntil("the missing key in the log, several times", async () => {
    answers.add(await readyOf(lacking.url));
    return lacking.log.filter(({ reason }) => reason === isMissing(1)).length >= 3;
  });
  t.strictSame([...answers], [503]);
});

t.test("/readyz of a running program is 503 while the database has another key, and the log names it", async (t) => {
  const { url } = service;
  // Not ready either while the database is slow.
  await waitUntil("the program to be ready", async () => (await readyOf(url)) === 200);
  // As after a restore of another environment's backup into this database.
  const superuser = openSession(service.address, { name: "coupon test" });
  t.teardown(() => superuser.end());
  const flip = () =>
    superuser.run(`begin; set local session_replication_role = replica;
      update core.master_key set fingerprint = set_byte(fingerprint, 0, 255 - get_byte(fingerprint, 0)); commit`);
  await flip();
  fits(t, await sendPlain(url, "GET", "/readyz"), { status: 503, json: { code: "UNAVAILABLE" } });
  await waitUntil("the reason in the log", () => service.log.some(({ reason }) => reason === isOther));
  t.equal((await sendPlain(url, "GET", "/healthz")).status, 200);
  await flip();
  await waitUntil("the program to be ready again", async () => (await readyOf(url)) === 200);
});

t.test("a rotation: programs with the old list keep working beside programs with both keys", async (t) => {
  const rotating = await scenario(t);
  const [former, next] = [`1:${rotating.masterKeyText}`, `2:${newKey()}`];
  const envWith = (masterKeyText: string) => environmentOf({ ...rotating, masterKeyText });
  const start = async (list: string) => {
    const { url, as } = await serveWith(t, list, rotating);
    return { url, by: as("ak_a") };
  };
  const old = await start(former);
  await workWith(t, former, rotating);
  const known = await start(`${former},${next}`);
  const current = await start(`${next},${former}`);
  const status = await runProgram("webhooks", { args: ["status"], env: envWith(former) });
  fits(t, status, { code: 0 }, "nothing is made with key 2 yet: old lists start");
  await workWith(t, `${next},${former}`, rotating);

  const [first, ...later] = [await submit(old.by), await submit(current.by), await submit(current.by)];
  for (const id of [first!, ...later])
    await waitUntil(`the coupons of ${id}`, async () => (await readBatch(rotating, id)).status === "COMPLETED");
  t.equal((await readBatch(rotating, first!)).key_version, "1");
  for (const id of later) t.equal((await readBatch(rotating, id)).key_version, "2", "minted by the worker with key 2");
  for (const { url } of [old, known, current]) t.equal(await readyOf(url), 200, "all are ready");
  const [printed] = (
    await Array.fromAsync(exportCodes(rotating.admin, parseMasterKeys(`${next},${former}`), later[0]!, true))
  ).flat();
  t.match(printed!.code, /^2/);
  const refused = await runProgram("codes", { args: [first!, "--unreleased"], env: envWith(former) });
  t.strictSame(refused, { code: 1, stdout: "", stderr: `${isMissing(2)}\n` });

  const coupons = await rotating.a.makeCoupons(3);
  for (const [index, [one, others]] of [
    [old, [known, current]] as const,
    [known, [old, current]] as const,
    [current, [known]] as const,
  ].entries()) {
    const body = { request_id: newRequestId(), coupon: coupons[index]!.code, merchant: "mch_a", order_amount: 40 };
    const answer = await one.by.post("/v1/coupons/redeem", body);
    t.equal(answer.status, 200, `case ${index}`);
    for (const { by } of others) {
      const replay = { status: 200, text: answer.text, headers: { "idempotent-replayed": "true" } };
      fits(t, await by.post("/v1/coupons/redeem", body), replay, `case ${index}: an equal retry is a replay`);
      const changed = await by.post("/v1/coupons/redeem", { ...body, order_amount: 41 });
      fits(t, changed, { status: 422, json: { code: "IDEMPOTENCY_KEY_REUSED" } });
    }
  }
  const body = { request_id: newRequestId(), template: "tpl_fixed", total_count: 3 };
  const made = await old.by.post("/v1/batches", body);
  await rotating.owner.rows("delete from core.request where request_id = $1", [body.request_id]);
  const again = await current.by.post("/v1/batches", body);
  t.equal(again.json.batch.external_id, made.json.batch.external_id, "its record was pruned");

  const last = { ...body, request_id: newRequestId() };
  t.equal((await current.by.post("/v1/batches", last)).status, 200);
  const text = "select encode(body_hash, 'hex') as hash from core.request where request_id = $1";
  const [row] = await rotating.owner.rows<{ hash: string }>(text, [last.request_id]);
  t.equal(row!.hash, hashBody(parseMasterKeys(next), last), "what is new does not need the former key");
});
