// One coupon's life, with clients/typescript. In the root of the project: npm exec -c 'node docs/examples/coupon.ts'
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
// In your project: from "coupon-client".
import { createClient, newRequestId } from "../../clients/typescript/src/index.ts";

const url = process.env["SERVICE"] ?? `http://127.0.0.1:${process.env["PORT"] ?? 8080}`;
const secrets = JSON.parse(readFileSync(`${process.env["DATA_DIR"] ?? ".data"}/demo.json`, "utf8"));
const actAs = (accessKey: string) => createClient<"B">({ url, accessKey, secret: secrets[accessKey] });
const maker = actAs("ak_demo_maker");
const till = actAs("ak_demo_pos");
const distributor = actAs("ak_demo_dist");

// The maker orders a coupon, waits until it is minted, and releases it to the distributor.
let { batch } = await maker.createBatch({ request_id: newRequestId(), template: "tpl_fiveoff", total_count: 1 });
console.log("create_batch", batch.status);
for (let attempt = 1; attempt <= 60 && batch.status === "PENDING"; attempt += 1) {
  await sleep(500);
  ({ batch } = await maker.getBatch({ batch: batch.external_id }));
}
console.log("get_batch", batch.status);
const released = await maker.allocateBatch({ request_id: newRequestId(), batch: batch.external_id });
console.log("allocate_batch", released.batch.status);
const { batches } = await maker.listBatches({ template: "tpl_fiveoff", limit: 1 });
console.log("list_batches", batches[0]!.status);

// The operator's command hands over the code. A maker with a public key can also fetch it, encrypted: export_codes.
const csv = execFileSync("npm", ["run", "-s", "codes", "--", batch.external_id], { encoding: "utf8" });
const code = csv.split("\n")[1]!.split(",")[1]!.trim();

// A list of codes is missing: the maker suspends the batch, and the till sees it. Then the list is found.
const sale = { coupon: code, merchant: "mch_corner" };
const question = { ...sale, order_amount: 45.5 };
const suspended = await maker.suspendBatch({ request_id: newRequestId(), batch: batch.external_id });
console.log("suspend_batch", suspended.batch.status);
console.log("query", (await till.query(question)).quote!.code);
const resumed = await maker.resumeBatch({ request_id: newRequestId(), batch: batch.external_id });
console.log("resume_batch", resumed.batch.status);

// The till shows the discount while goods are scanned.
console.log("query", (await till.query(question)).quote!.discount_amount!.toFixed(2));

// It locks the coupon, takes the discount off the order, and confirms when the customer has paid.
const place = { store: "S1", terminal: "T1" };
const lock = { request_id: newRequestId(), ...sale, ...place, order_id: "4711", order_amount: 45.5 };
console.log("lock", (await till.lock(lock)).discount_amount.toFixed(2));
const confirm = { request_id: newRequestId(), lock_request_id: lock.request_id, ...sale };
console.log("confirm", (await till.confirm(confirm)).status);

// The customer returns the goods. The returns desk knows the number of the order. The newest redemption comes first.
const { redemptions } = await till.listRedemptions({ merchant: "mch_corner", order_id: "4711" });
const { redemption, status } = redemptions[0]!;
console.log("list_redemptions", status);

// The template says "reissued": the coupon can be used again.
const reverse = { request_id: newRequestId(), redemption, reason: "goods returned" };
console.log("reverse", (await till.reverse(reverse)).status);
console.log("get_redemption", (await till.getRedemption({ redemption })).redemption.status);

// The next order redeems it in one step, and is returned too.
const order = { request_id: newRequestId(), ...sale, ...place, order_id: "4712", order_amount: 24.9 };
const redeemed = await till.redeem(order);
console.log("redeem", redeemed.discount_amount.toFixed(2));
const reverseAgain = { request_id: newRequestId(), redemption: redeemed.redemption, reason: "goods returned" };
console.log("reverse", (await till.reverse(reverseAgain)).status);

// The customer of the third order leaves without paying: the till gives up its lock.
const lastLock = { request_id: newRequestId(), ...sale, ...place, order_id: "4713", order_amount: 60 };
console.log("lock", (await till.lock(lastLock)).discount_amount.toFixed(2));
const cancel = { request_id: newRequestId(), lock_request_id: lastLock.request_id, coupon: code };
console.log("cancel", (await till.cancel(cancel)).status);

// The till voids the unused coupon, and looks at it.
console.log("void", (await till.void({ request_id: newRequestId(), ...sale, reason: "printed twice" })).status);
const { coupon } = await till.query(sale);
console.log("query", coupon.status);

// The distributor pulls the events of this coupon; they arrive within seconds.
let events: string[] = [];
for (let attempt = 1; attempt <= 60 && events.at(-1) !== "coupon.voided"; attempt += 1) {
  await sleep(500);
  events = [];
  for await (const page of distributor.eventPages())
    for (const event of page.events) if (event.coupon_id === coupon.coupon_id) events.push(event.event_type);
}
console.log("pull_events", ...events);

// It downloads the newest statement. The first one comes after midnight.
const days = [];
for await (const page of distributor.reconciliationPages()) days.push(...page.reconciliations);
const newest = days.at(-1);
console.log("list_reconciliations", newest?.business_date ?? "none");
for (const file of newest?.files ?? [])
  if (file.kind === "summary") {
    const lines = await text((await distributor.getReconciliation(file)).body);
    for (const line of lines.trim().split("\r\n").slice(1)) console.log("get_reconciliation", line);
  }

// It asks how the deliveries to its webhook go.
console.log("get_webhook", (await distributor.getWebhook()).webhook.status);

for (const client of [maker, till, distributor]) client.close();
