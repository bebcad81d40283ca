// npm run demo: the whole life of a few coupons, over signed HTTP, against the service that `npm start` runs.
// Prints each call and its answer, and fails when an answer is not the expected one. Codes are printed masked.
import { isIPv6 } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, newRequestId, type Input, type ReplyInfo } from "../../clients/typescript/src/index.ts";
import { defineCommand } from "../command-line/command.ts";
import { readConfig, type Config } from "../config/config.ts";
import { withProgress } from "../command-line/progress.ts";
import { keySettings } from "../config/settings.ts";
import { findAddress } from "../embedded/find-address.ts";
import { loadMasterKeys } from "../embedded/load-keys.ts";
import { withAdminDatabase } from "./admin-database.ts";
import { exportCodes } from "./codes.ts";
import { expectStatus, mask, perform, printHeading, refuse, type Actor } from "./demo-steps.ts";
import { demoFile, readDemoSecrets } from "./demo-tenants.ts";

// equivalent mutant (literal): only the time until the demo gives up changes
const mintedWithinMs = 60_000;

// The data of the demo in one variant.
type Cast = {
  maker: Actor;
  pos: Actor;
  template: string;
  merchant: string;
  place: { store: string; terminal: string };
  afterReversal: string;
};
type Order = Omit<Input<"redeem">, "request_id" | "coupon">;
type Codes = [string, string, string];

async function playAll(): Promise<void> {
  const config = readConfig();
  const secrets = readDemoSecrets(config.dataDir);
  if (secrets === null)
    throw new Error(`${demoFile(config.dataDir)} does not exist: run npm start with this DATA_DIR first`);
  // A service that listens on all addresses is also on loopback.
  const host = { "0.0.0.0": "127.0.0.1", "::": "::1" }[config.host] ?? config.host;
  const url = `http://${isIPv6(host) ? `[${host}]` : host}:${config.port}`;
  const as = (accessKey: string): Actor => {
    const onReply = (reply: ReplyInfo) => (actor.reply = reply);
    const actor: Actor = {
      client: createClient({ url, accessKey, secret: secrets[accessKey]!, onReply }),
      reply: null,
    };
    return actor;
  };
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
  const order_id = `4711-${newRequestId().slice(1, 5)}`;
  const order = { merchant, ...place, order_amount: 64.5, currency: "EUR", order_id };
  const codes = await makeCoupons(config, cast, order);
  await lockAndConfirm(cast, codes[0], order);
  await returnGoods(cast, codes[0], order_id);
  await redeem(cast, codes[1], order);
  await cancelAndVoid(cast, codes[2], order);
}

async function makeCoupons(config: Config, cast: Cast, order: Order): Promise<Codes> {
  const { maker, pos, template } = cast;
  const submit = { request_id: newRequestId(), template, total_count: 3 };
  const created = await perform("Submit a batch", maker, "createBatch", submit);
  const batch = created.batch.external_id;
  await waitUntilMinted(maker, batch);
  const codes = await readCodes(config, batch);
  const early = { request_id: newRequestId(), coupon: codes[0], ...order };
  await refuse("Redeem before the batch is released: refused", pos, "redeem", early, "COUPON_NOT_RELEASED");
  const allocate = { request_id: newRequestId(), batch };
  await perform("Release the batch to its distributor", maker, "allocateBatch", allocate);
  await stopAndGoOn(cast, batch, { ...early, request_id: newRequestId() });
  return codes;
}

async function stopAndGoOn({ maker, pos, template }: Cast, batch: string, redeem: Input<"redeem">): Promise<void> {
  await perform("Look at the newest batch of the template", maker, "listBatches", { template, limit: 1 });
  const suspend = { request_id: newRequestId(), batch, reason: "a list of codes is missing" };
  await perform("Suspend it", maker, "suspendBatch", suspend);
  await refuse("Redeem while it is suspended: refused", pos, "redeem", redeem, "BATCH_SUSPENDED");
  const resume = { request_id: newRequestId(), batch, reason: "the list was found" };
  await perform("Resume it", maker, "resumeBatch", resume);
}

async function lockAndConfirm({ pos, merchant }: Cast, coupon: string, order: Order): Promise<void> {
  await expectStatus("Look at the first coupon", pos, merchant, coupon, "ISSUED");
  const { order_id: _, ...question } = { coupon, ...order };
  const { quote } = await perform("Ask what a lock of this order would give", pos, "query", question);
  const lock = { request_id: newRequestId(), coupon, ...order };
  const locked = await perform("Lock it: the service computes the discount", pos, "lock", lock);
  if (quote?.discount_amount !== locked.discount_amount) throw new Error("lock should give what query quoted");
  await perform("Send the same lock again: the first answer is repeated", pos, "lock", lock, true);
  const otherLock = { ...lock, request_id: newRequestId() };
  await refuse("Lock it from another till: refused", pos, "lock", otherLock, "COUPON_LOCKED");
  const confirm = { request_id: newRequestId(), lock_request_id: lock.request_id, coupon, merchant };
  await perform("Confirm the lock", pos, "confirm", confirm);
  const lateLock = { ...lock, request_id: newRequestId() };
  await refuse("Lock it once more: refused", pos, "lock", lateLock, "COUPON_REDEEMED");
  const lost = { request_id: confirm.request_id };
  await perform("Ask for the outcome of the confirm, as after a lost answer", pos, "getRequest", lost);
}

// A returns desk, which knows only the number of the order.
async function returnGoods({ pos, merchant, afterReversal }: Cast, coupon: string, order_id: string): Promise<void> {
  const listed = await perform("Find the redemption by its order", pos, "listRedemptions", { merchant, order_id });
  const { redemption } = listed.redemptions[0]!;
  const reverse = { request_id: newRequestId(), redemption, reason: "goods returned" };
  await perform("Reverse it", pos, "reverse", reverse);
  await perform("Look at the redemption", pos, "getRedemption", { redemption });
  await expectStatus("Look at the coupon again", pos, merchant, coupon, afterReversal);
}

async function redeem({ pos }: Cast, coupon: string, order: Order): Promise<void> {
  const first = { request_id: newRequestId(), coupon, ...order };
  await perform("Redeem the second coupon in one step", pos, "redeem", first);
  const changed = { ...first, order_amount: 99 };
  const title = "Reuse that request_id with another amount: refused";
  await refuse(title, pos, "redeem", changed, "IDEMPOTENCY_KEY_REUSED");
}

async function cancelAndVoid({ pos, merchant }: Cast, coupon: string, order: Order): Promise<void> {
  const lock = { request_id: newRequestId(), coupon, ...order };
  await perform("Lock the third coupon", pos, "lock", lock);
  const cancel = { request_id: newRequestId(), lock_request_id: lock.request_id, coupon };
  await perform("Cancel that lock", pos, "cancel", cancel);
  const voiding = { request_id: newRequestId(), coupon, merchant, reason: "printed twice" };
  await perform("Void the coupon", pos, "void", voiding);
  await expectStatus("Look at it", pos, merchant, coupon, "VOIDED");
}

// Like `npm run codes -- BATCH --unreleased`: a maker prints its coupons before it releases them.
async function readCodes(config: Config, batch: string): Promise<Codes> {
  return withAdminDatabase(findAddress(config), "coupon demo", async (database) => {
    const pages = await Array.fromAsync(exportCodes(database, loadMasterKeys(config), batch, true));
    const codes = pages.flat().map(({ code }) => code);
    const [first = "", second = "", third = ""] = codes;
    console.log(`\nHand over the codes (npm run codes -- ${batch} --unreleased)\n  ${codes.map(mask).join(", ")}`);
    return [first, second, third];
  });
}

async function waitUntilMinted({ client }: Actor, batch: string): Promise<void> {
  const answer = await withProgress(async (progress) => {
    progress.show("waiting for the mint");
    for (const end = Date.now() + mintedWithinMs; Date.now() < end; await sleep(200)) {
      const answer = await client.getBatch({ batch });
      if (answer.batch.status !== "PENDING") return answer;
    }
    throw new Error(`${batch} was not minted within a minute: is a worker running?`);
  });
  console.log(`\nWait until it is minted\n  getBatch ${JSON.stringify({ batch })}\n  200 ${JSON.stringify(answer)}`);
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
