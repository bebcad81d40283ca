// npm run demo: the whole life of a few coupons, over signed HTTP, against the service that `npm start` runs.
// Prints each call and its answer, and fails when one is not what it should be. Codes are printed masked.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, type Client, type Reply } from "./client.ts";
import { exportCodes } from "./codes.ts";
import { readConfig, type Config } from "../common/config.ts";
import { withAdminDatabase } from "./admin-database.ts";
import { findAddress } from "../embedded/find-address.ts";
import { demoFile, readDemoSecrets } from "./demo-tenants.ts";
import { loadMasterKeys } from "../crypto/keys.ts";
import { runProgram } from "../common/program.ts";

type Body = Record<string, unknown>;
type Life = { maker: Client; pos: Client; template: string; merchant: string; place: Body; afterReversal: string };

await runProgram(async () => {
  const config = readConfig();
  const secrets = await readDemoSecrets(config.dataDir);
  if (secrets === null)
    throw new Error(`no ${demoFile(config.dataDir)}: start the service with npm start and this DATA_DIR first`);
  const url = `http://${config.host === "0.0.0.0" ? "127.0.0.1" : config.host}:${config.port}`;
  const as = (accessKey: string) => createClient({ url, accessKey, secret: secrets[accessKey]! });
  await fetch(`${url}/healthz`).catch(() => {
    throw new Error(`no service at ${url}: start it with npm start, or set HOST and PORT as there`);
  });

  heading("Variant A: the credential is the tenant. 10 percent off, at most 8.00 EUR");
  const tenant = as("ak_demo_a");
  await live(config, {
    maker: tenant,
    pos: tenant,
    template: "tpl_tenpercent",
    merchant: "mch_bakery",
    place: { store: "Main Street", terminal: "till 2" },
    afterReversal: "REDEEMED",
  });

  heading("Variant B: the credential is a party. 5.00 EUR off, reversed coupons may be used again");
  await live(config, {
    maker: as("ak_demo_maker"),
    pos: as("ak_demo_pos"),
    template: "tpl_fiveoff",
    merchant: "mch_corner",
    place: { store: "S1", terminal: "T1" },
    afterReversal: "ISSUED",
  });
});

async function live(config: Config, { maker, pos, template, merchant, place, afterReversal }: Life): Promise<void> {
  const created = await post("Submit a batch", maker, "/v1/batches", {
    request_id: newRequest(),
    template,
    total_count: 3,
  });
  const batch = String((created["batch"] as Body)["external_id"]);
  await waitUntilMinted(maker, batch);
  const [first, second, third] = await readCodes(config, batch);

  const order = { merchant, ...place, order_amount: 64.5, currency: "EUR", order_id: "4711" };
  const tooEarly = { request_id: newRequest(), coupon: first, ...order };
  await post(
    "Redeem before the batch is released: refused",
    pos,
    "/v1/coupons/redeem",
    tooEarly,
    409,
    "COUPON_NOT_RELEASED",
  );
  await post("Release the batch to its distributor", maker, "/v1/batches/allocate", {
    request_id: newRequest(),
    batch,
  });

  await expectStatus("Look at the first coupon", pos, merchant, first, "ISSUED");
  const lock = { request_id: newRequest(), coupon: first, ...order };
  const lockAnswer = await post("Lock it: the service computes the discount", pos, "/v1/coupons/lock", lock);
  await post(
    "Send the same lock again: its first answer comes back",
    pos,
    "/v1/coupons/lock",
    lock,
    200,
    undefined,
    true,
  );
  const secondLock = { ...lock, request_id: newRequest() };
  await post("Lock it from another till: refused", pos, "/v1/coupons/lock", secondLock, 409, "COUPON_LOCKED");
  const confirm = { request_id: newRequest(), lock_request_id: lock.request_id, coupon: first, merchant };
  await post("Confirm the lock", pos, "/v1/coupons/confirm", confirm);
  const lateLock = { ...lock, request_id: newRequest() };
  await post("Lock it once more: refused", pos, "/v1/coupons/lock", lateLock, 409, "COUPON_REDEEMED");
  await get("Ask for the outcome of the confirm, as after a lost answer", pos, `/v1/requests/${confirm.request_id}`);
  const reverse = { request_id: newRequest(), redemption: lockAnswer["redemption"], reason: "goods returned" };
  await post("Reverse the redemption", pos, "/v1/redemptions/reverse", reverse);
  await expectStatus("Look at the coupon again", pos, merchant, first, afterReversal);

  const redeem = { request_id: newRequest(), coupon: second, ...order };
  await post("Redeem the second coupon in one step", pos, "/v1/coupons/redeem", redeem);
  const otherBody = { ...redeem, order_amount: 99 };
  await post(
    "Reuse that request_id with another amount: refused",
    pos,
    "/v1/coupons/redeem",
    otherBody,
    422,
    "IDEMPOTENCY_KEY_REUSED",
  );

  const thirdLock = { request_id: newRequest(), coupon: third, ...order };
  await post("Lock the third coupon", pos, "/v1/coupons/lock", thirdLock);
  const cancel = { request_id: newRequest(), lock_request_id: thirdLock.request_id, coupon: third };
  await post("Cancel that lock", pos, "/v1/coupons/cancel", cancel);
  await post("Void the coupon", pos, "/v1/coupons/void", {
    request_id: newRequest(),
    coupon: third,
    merchant,
    reason: "printed twice",
  });
  await expectStatus("Look at it", pos, merchant, third, "VOIDED");
}

// As `npm run codes -- BATCH --unreleased` does it: a maker prints its coupons before it releases them.
async function readCodes(config: Config, batch: string): Promise<[string, string, string]> {
  return withAdminDatabase(findAddress(config), "coupon demo", async (database) => {
    const codes: string[] = [];
    for await (const page of exportCodes(database, loadMasterKeys(config), batch, true))
      codes.push(...page.map(({ code }) => code));
    const [first = "", second = "", third = ""] = codes;
    console.log(`\nHand over the codes (npm run codes -- ${batch} --unreleased)\n  ${codes.map(mask).join(", ")}`);
    return [first, second, third];
  });
}

async function waitUntilMinted(maker: Client, batch: string): Promise<void> {
  for (const end = Date.now() + 60_000; Date.now() < end; await sleep(200)) {
    const answer = await maker.get(`/v1/batches/${batch}`);
    if (answer.json?.batch?.status === "PENDING") continue;
    show("Wait until it is minted", `GET /v1/batches/${batch}`, answer);
    return check(answer, 200);
  }
  throw new Error(`${batch} was not minted within a minute: does a worker run?`);
}

async function post(
  title: string,
  by: Client,
  path: string,
  body: Body,
  status = 200,
  code?: string,
  isReplay = false,
): Promise<Body> {
  const answer = await by.post(path, body);
  show(
    title,
    `POST ${path} ${JSON.stringify({ ...body, ...("coupon" in body && { coupon: mask(String(body["coupon"])) }) })}`,
    answer,
    isReplay,
  );
  check(answer, status, code);
  if (isReplay && answer.headers["idempotent-replayed"] !== "true")
    throw new Error("the last answer should be a replay");
  return answer.json;
}

async function get(title: string, by: Client, path: string): Promise<void> {
  const answer = await by.get(path);
  show(title, `GET ${path}`, answer);
  check(answer, 200);
}

async function expectStatus(
  title: string,
  by: Client,
  merchant: string,
  coupon: string,
  expected: string,
): Promise<void> {
  const answer = await post(title, by, "/v1/coupons/query", { coupon, merchant });
  const { status } = answer["coupon"] as Body;
  if (status !== expected) throw new Error(`the coupon should be ${expected}`);
}

function check(answer: Reply, status: number, code?: string): void {
  const found = answer.json?.code;
  if (answer.status !== status || found !== code) throw new Error(`the last answer should be ${status} ${code ?? ""}`);
}

function heading(text: string): void {
  console.log(`\n=== ${text} ===`);
}

function show(title: string, request: string, answer: Reply, isReplay = false): void {
  console.log(`\n${title}\n  ${request}\n  ${answer.status}${isReplay ? " (Idempotent-Replayed)" : ""} ${answer.text}`);
}

function mask(code: string): string {
  return `${code.slice(0, 4)}············`;
}

function newRequest(): string {
  return `demo-${randomBytes(6).toString("hex")}`;
}
