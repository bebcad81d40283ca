// The TypeScript client against the service, in both variants.
import t from "tap";
import { createClient, isRefused, newRequestId, type Client } from "../../clients/typescript/src/index.ts";
import { fits } from "../support/fits.ts";
import { startProxy } from "../support/proxy.ts";
import { secretOf } from "../support/tenants.ts";
import { startService, type Running } from "../support/service.ts";

const service = await startService(t);
const clientOf = (accessKey: string, url = service.url, more = {}) => ({
  url,
  accessKey,
  secret: secretOf(accessKey),
  ...more,
});

// Orders, mints and releases a batch with the client alone.
async function order(
  maker: Client,
  template: string,
  count: number,
  { mint, admin, keys }: Running,
): Promise<string[]> {
  const { batch } = await maker.createBatch({ request_id: newRequestId(), template, total_count: count });
  await mint();
  const { exportCodes } = await import("../../src/commands/codes.ts");
  const coupons = (await Array.fromAsync(exportCodes(admin, keys, batch.external_id, true))).flat();
  fits(t, await maker.getBatch({ batch: batch.external_id }), { batch: { status: "COMPLETED", minted_count: count } });
  await maker.allocateBatch({ request_id: newRequestId(), batch: batch.external_id });
  return coupons.map(({ code }) => code);
}

t.test("Variant A: each operation, with its own fields", async (t) => {
  const client = createClient<"A">(clientOf("ak_a"));
  t.teardown(() => client.close());
  const [first, second, third] = (await order(client, "tpl_percent", 3, service)) as [string, string, string];
  const place = { merchant: "mch_a", store: "Main Street", terminal: "till 2" };

  const lock = { request_id: newRequestId(), coupon: first, ...place, order_amount: 45.5, currency: "EUR" };
  const locked = await client.lock(lock);
  t.equal(locked.discount_amount, 4.55);
  t.ok(Date.parse(locked.lock_expires_at) > Date.now());
  t.strictSame(await client.lock(lock), locked, "a repeat has the same answer");
  const confirm = { request_id: newRequestId(), lock_request_id: lock.request_id, coupon: first, merchant: "mch_a" };
  const { redemption, status } = await client.confirm(confirm);
  t.equal(status, "REDEEMED");
  const { coupon } = await client.query({ coupon: first, merchant: "mch_a" });
  fits(t, coupon, { status: "REDEEMED", redemption: { merchant_id: "mch_a", discount_amount: 4.55, currency: "EUR" } });
  const { request } = await client.getRequest({ request_id: confirm.request_id });
  fits(t, request, { operation: "confirm", http_status: 200, response: { redemption } });
  t.equal((await client.reverse({ request_id: newRequestId(), redemption })).status, "REVERSED");

  const second_lock = { request_id: newRequestId(), coupon: second, merchant: "mch_a", order_amount: 10 };
  await client.lock(second_lock);
  const cancel = { request_id: newRequestId(), lock_request_id: second_lock.request_id, coupon: second };
  t.equal((await client.cancel(cancel)).status, "CANCELLED");
  const redeemed = await client.redeem({
    request_id: newRequestId(),
    coupon: second,
    merchant: "mch_a",
    order_amount: 20,
  });
  t.equal(redeemed.discount_amount, 2);
  const voiding = { request_id: newRequestId(), coupon: third, merchant: "mch_a", reason: "printed twice" };
  t.equal((await client.void(voiding)).status, "VOIDED");

  const refused = await client.redeem({ ...lock, request_id: newRequestId() }).catch((error: unknown) => error);
  t.ok(isRefused(refused, "COUPON_REDEEMED"));
  const missing = await client.getRequest({ request_id: "never-sent" }).catch((error: unknown) => error);
  t.equal(isRefused(missing, "NOT_FOUND") && missing.details.resource, "request");
});

t.test("Variant B: party and place are those of the credential, and query shows the template", async (t) => {
  const [maker, pos] = [createClient<"B">(clientOf("ak_maker")), createClient<"B">(clientOf("ak_pos"))];
  t.teardown(() => [maker, pos].forEach((one) => one.close()));
  const [code] = (await order(maker, "tpl_b", 1, service)) as [string];
  const place = { merchant: "mch_b", store: "S1", terminal: "T1" };
  const { discount_amount } = await pos.redeem({ request_id: newRequestId(), coupon: code, ...place });
  t.equal(discount_amount, 5);
  const { coupon } = await pos.query({ coupon: code, merchant: "mch_b" });
  fits(t, coupon, { status: "REDEEMED", template_id: "tpl_b" });
});

t.test("A lost answer never redeems twice: a proxy cuts two of three answers", async (t) => {
  const { hostname, port } = new URL(service.url);
  const proxy = await startProxy({ host: hostname, port: Number(port) });
  t.teardown(() => proxy.stop());
  const direct = createClient<"A">(clientOf("ak_a"));
  const replays: string[] = [];
  const onReply = ({ isReplay, requestId }: { isReplay: boolean; requestId: string | null }) =>
    isReplay ? replays.push(requestId!) : undefined;
  const url = `http://127.0.0.1:${proxy.port}`;
  const client = createClient<"A">(clientOf("ak_a", url, { attempts: 50, onReply }));
  t.teardown(() => [direct, client].forEach((one) => one.close()));
  const codes = await order(direct, "tpl_fixed", 30, service);
  let answers = 0;
  proxy.set({ cutsAnswer: () => (answers += 1) % 3 !== 0 });

  const calls = codes.map((coupon, index) => ({ request_id: `cut-${index}`, coupon, merchant: "mch_a" }));
  const given = await Promise.all(calls.map((call) => client.redeem(call)));

  t.ok(answers >= 60, `${answers} answers, most of them cut`);
  t.ok(replays.length >= 15, `${replays.length} answers that arrived were repeats`);
  const rows = await service.owner.rows<{ request: string; redemption: string }>(
    `select r.lock_request_id as request, r.redemption from report.redemption r
     where r.lock_request_id like 'cut-%'`,
  );
  const expected = calls.map(({ request_id }, index) => [request_id, given[index]!.redemption]);
  t.strictSame(rows.map(({ request, redemption }) => [request, redemption]).sort(), expected.sort());
});
