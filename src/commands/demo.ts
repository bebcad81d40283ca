// npm run demo: the whole life of a few coupons, over signed HTTP, against the service that `npm start` runs.
// Prints each call and its answer, and fails when an answer is not the expected one. Codes are printed masked.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { defineCommand } from "../common/command.ts";
import { readConfig, type Config } from "../common/config.ts";
import { withProgress } from "../common/progress.ts";
import { keySettings } from "../common/settings.ts";
import { findAddress } from "../embedded/find-address.ts";
import { loadMasterKeys } from "../embedded/load-keys.ts";
import { withAdminDatabase } from "./admin-database.ts";
import { createClient, type Client, type Reply } from "./client.ts";
import { exportCodes } from "./codes.ts";
import { demoFile, readDemoSecrets } from "./demo-tenants.ts";

type Body = Record<string, unknown>;
// The data of the demo in one variant.
type Cast = { maker: Client; pos: Client; template: string; merchant: string; place: Body; afterReversal: string };
type Codes = [string, string, string];
type Expected = { status: number; code?: string; isReplay?: boolean };

const success: Expected = { status: 200 };

async function playAll(): Promise<void> {
  const config = readConfig();
  const secrets = await readDemoSecrets(config.dataDir);
  if (secrets === null)
    throw new Error(`${demoFile(config.dataDir)} does not exist: run npm start with this DATA_DIR first`);
  const url = `http://${config.host === "0.0.0.0" ? "127.0.0.1" : config.host}:${config.port}`;
  const as = (accessKey: string) => createClient({ url, accessKey, secret: secrets[accessKey]! });
  await fetch(`${url}/healthz`).catch(() => {
    throw new Error(`no service at ${url}: run npm start, or set HOST and PORT to its values`);
  });

  printHeading("Variant A: the credential identifies the tenant. 10 percent off, at most 8.00 EUR");
  const tenant = as("ak_demo_a");
  await play(config, {
    maker: tenant,
    pos: tenant,
    template: "tpl_tenpercent",
    merchant: "mch_bakery",
    place: { store: "Main Street", terminal: "till 2" },
    afterReversal: "REDEEMED",
  });

  printHeading("Variant B: the credential identifies a party. 5.00 EUR off, reversed coupons may be used again");
  await play(config, {
    maker: as("ak_demo_maker"),
    pos: as("ak_demo_pos"),
    template: "tpl_fiveoff",
    merchant: "mch_corner",
    place: { store: "S1", terminal: "T1" },
    afterReversal: "ISSUED",
  });
}

async function play(config: Config, cast: Cast): Promise<void> {
  const { merchant, place } = cast;
  const order = { merchant, ...place, order_amount: 64.5, currency: "EUR", order_id: "4711" };
  const codes = await makeCoupons(config, cast, order);
  await lockAndConfirm(cast, codes[0], order);
  await redeem(cast, codes[1], order);
  await cancelAndVoid(cast, codes[2], order);
}

async function makeCoupons(config: Config, { maker, pos, template }: Cast, order: Body): Promise<Codes> {
  const submit = { request_id: newRequest(), template, total_count: 3 };
  const created = await post("Submit a batch", maker, "/v1/batches", submit);
  const batch = String((created["batch"] as Body)["external_id"]);
  await waitUntilMinted(maker, batch);
  const codes = await readCodes(config, batch);
  const early = { request_id: newRequest(), coupon: codes[0], ...order };
  const notReleased = { status: 409, code: "COUPON_NOT_RELEASED" };
  await post("Redeem before the batch is released: refused", pos, "/v1/coupons/redeem", early, notReleased);
  const allocate = { request_id: newRequest(), batch };
  await post("Release the batch to its distributor", maker, "/v1/batches/allocate", allocate);
  return codes;
}

async function lockAndConfirm({ pos, merchant, afterReversal }: Cast, coupon: string, order: Body): Promise<void> {
  await expectStatus("Look at the first coupon", pos, merchant, coupon, "ISSUED");
  const lock = { request_id: newRequest(), coupon, ...order };
  const locked = await post("Lock it: the service computes the discount", pos, "/v1/coupons/lock", lock);
  const replay = { status: 200, isReplay: true };
  await post("Send the same lock again: the first answer is repeated", pos, "/v1/coupons/lock", lock, replay);
  const otherLock = { ...lock, request_id: newRequest() };
  const isLocked = { status: 409, code: "COUPON_LOCKED" };
  await post("Lock it from another till: refused", pos, "/v1/coupons/lock", otherLock, isLocked);
  const confirm = { request_id: newRequest(), lock_request_id: lock.request_id, coupon, merchant };
  await post("Confirm the lock", pos, "/v1/coupons/confirm", confirm);
  const lateLock = { ...lock, request_id: newRequest() };
  const isRedeemed = { status: 409, code: "COUPON_REDEEMED" };
  await post("Lock it once more: refused", pos, "/v1/coupons/lock", lateLock, isRedeemed);
  await get("Ask for the outcome of the confirm, as after a lost answer", pos, `/v1/requests/${confirm.request_id}`);
  const reverse = { request_id: newRequest(), redemption: locked["redemption"], reason: "goods returned" };
  await post("Reverse the redemption", pos, "/v1/redemptions/reverse", reverse);
  await expectStatus("Look at the coupon again", pos, merchant, coupon, afterReversal);
}

async function redeem({ pos }: Cast, coupon: string, order: Body): Promise<void> {
  const first = { request_id: newRequest(), coupon, ...order };
  await post("Redeem the second coupon in one step", pos, "/v1/coupons/redeem", first);
  const changed = { ...first, order_amount: 99 };
  const isReused = { status: 422, code: "IDEMPOTENCY_KEY_REUSED" };
  await post("Reuse that request_id with another amount: refused", pos, "/v1/coupons/redeem", changed, isReused);
}

async function cancelAndVoid({ pos, merchant }: Cast, coupon: string, order: Body): Promise<void> {
  const lock = { request_id: newRequest(), coupon, ...order };
  await post("Lock the third coupon", pos, "/v1/coupons/lock", lock);
  const cancel = { request_id: newRequest(), lock_request_id: lock.request_id, coupon };
  await post("Cancel that lock", pos, "/v1/coupons/cancel", cancel);
  const voiding = { request_id: newRequest(), coupon, merchant, reason: "printed twice" };
  await post("Void the coupon", pos, "/v1/coupons/void", voiding);
  await expectStatus("Look at it", pos, merchant, coupon, "VOIDED");
}

// Like `npm run codes -- BATCH --unreleased`: a maker prints its coupons before it releases them.
async function readCodes(config: Config, batch: string): Promise<Codes> {
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
  const answer = await withProgress(async (progress) => {
    progress.show("waiting for the mint");
    for (const end = Date.now() + 60_000; Date.now() < end; await sleep(200)) {
      const answer = await maker.get(`/v1/batches/${batch}`);
      if (answer.json?.batch?.status !== "PENDING") return answer;
    }
    throw new Error(`${batch} was not minted within a minute: is a worker running?`);
  });
  print("Wait until it is minted", `GET /v1/batches/${batch}`, answer);
  check(answer, success);
}

async function post(title: string, client: Client, path: string, body: Body, expected = success): Promise<Body> {
  const answer = await client.post(path, body);
  const shown = { ...body, ...("coupon" in body && { coupon: mask(String(body["coupon"])) }) };
  print(title, `POST ${path} ${JSON.stringify(shown)}`, answer);
  check(answer, expected);
  return answer.json;
}

async function get(title: string, client: Client, path: string): Promise<void> {
  const answer = await client.get(path);
  print(title, `GET ${path}`, answer);
  check(answer, success);
}

async function expectStatus(title: string, pos: Client, merchant: string, coupon: string, expected: string) {
  const answer = await post(title, pos, "/v1/coupons/query", { coupon, merchant });
  const { status } = answer["coupon"] as Body;
  if (status !== expected) throw new Error(`the coupon should be ${expected}`);
}

function check(answer: Reply, { status, code, isReplay = false }: Expected): void {
  const found = answer.json?.code;
  if (answer.status !== status || found !== code) throw new Error(`the last answer should be ${status} ${code ?? ""}`);
  if (isReplay !== isReplayed(answer)) throw new Error(`the last answer should ${isReplay ? "" : "not "}be a replay`);
}

function isReplayed({ headers }: Reply): boolean {
  return headers["idempotent-replayed"] === "true";
}

function printHeading(text: string): void {
  console.log(`\n=== ${text} ===`);
}

function print(title: string, request: string, answer: Reply): void {
  const mark = isReplayed(answer) ? " (Idempotent-Replayed)" : "";
  console.log(`\n${title}\n  ${request}\n  ${answer.status}${mark} ${answer.text}`);
}

function mask(code: string): string {
  return `${code.slice(0, 4)}············`;
}

function newRequest(): string {
  return `demo-${randomBytes(6).toString("hex")}`;
}

export const command = defineCommand({
  name: "demo",
  about:
    "Takes coupons of both demo tenants through every operation, over signed HTTP, and prints each call and its " +
    "answer. Run it beside npm start, with the same HOST, PORT and DATA_DIR.",
  settings: ["HOST", "PORT", ...keySettings],
  examples: ["", "PORT=9000"],
  exitCodes: "0 all answers were as expected, 1 failed",
  run: playAll,
});
