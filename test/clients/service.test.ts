// The TypeScript client against the service: every operation of both variants, lists and files, and lost answers.
import { createHash } from "node:crypto";
import { Agent } from "node:http";
import { buffer, text } from "node:stream/consumers";
import { Decrypter, generateX25519Identity, identityToRecipient } from "age-encryption";
import t from "tap";
import {
  createClient,
  isRefused,
  newRequestId,
  type Client,
  type ClientOptions,
  type ReplyInfo,
} from "../../clients/typescript/src/index.ts";
import { exportCodes } from "../../src/commands/codes.ts";
import { moveToNoon } from "../support/business-days.ts";
import { fits } from "../support/fits.ts";
import { startProxy } from "../support/proxy.ts";
import { scenario } from "../support/scenario.ts";
import { party, secretOf } from "../support/tenants.ts";

const service = await scenario(t, { http: true });
const proxy = await startProxy({ host: "127.0.0.1", port: Number(new URL(service.url).port) });
t.teardown(() => proxy.stop());
const proxyUrl = `http://127.0.0.1:${proxy.port}`;

function open<V extends "A" | "B">(accessKey: string, more: Partial<ClientOptions> = {}) {
  const client = createClient<V>({ url: service.url, accessKey, secret: secretOf(accessKey), ...more });
  t.teardown(() => client.close());
  return client;
}
const a = open<"A">("ak_a");

// Orders, mints and releases a batch with the client alone.
async function order(maker: Client, template: string, count: number): Promise<string[]> {
  const { batch } = await maker.createBatch({ request_id: newRequestId(), template, total_count: count });
  await service.mint();
  const coupons = (await Array.fromAsync(exportCodes(service.admin, service.keys, batch.external_id, true))).flat();
  fits(t, await maker.getBatch({ batch: batch.external_id }), { batch: { status: "COMPLETED", minted_count: count } });
  await maker.allocateBatch({ request_id: newRequestId(), batch: batch.external_id });
  return coupons.map(({ code }) => code);
}

t.test("Variant A: each operation, with its own fields", async (t) => {
  const [first, second, third] = (await order(a, "tpl_percent", 3)) as [string, string, string];
  const place = { merchant: "mch_a", store: "Main Street", terminal: "till 2" };
  const id = () => ({ request_id: newRequestId() });

  const lock = { ...id(), coupon: first, ...place, order_amount: 45.5, currency: "EUR" };
  const locked = await a.lock(lock);
  t.equal(locked.discount_amount, 4.55);
  t.ok(Date.parse(locked.lock_expires_at) > Date.now());
  t.strictSame(await a.lock(lock), locked, "a repeat has the same answer");
  const confirm = { ...id(), lock_request_id: lock.request_id, coupon: first, merchant: "mch_a" };
  const { redemption, status } = await a.confirm(confirm);
  t.equal(status, "REDEEMED");
  const { coupon } = await a.query({ coupon: first, merchant: "mch_a" });
  fits(t, coupon, { status: "REDEEMED", redemption: { merchant_id: "mch_a", discount_amount: 4.55, currency: "EUR" } });
  const { request } = await a.getRequest({ request_id: confirm.request_id });
  fits(t, request, { operation: "confirm", http_status: 200, response: { redemption } });
  t.equal((await a.reverse({ ...id(), redemption })).status, "REVERSED");

  const other = { ...id(), coupon: second, merchant: "mch_a", order_amount: 10 };
  await a.lock(other);
  const cancel = { ...id(), lock_request_id: other.request_id, coupon: second };
  t.equal((await a.cancel(cancel)).status, "CANCELLED");
  const redeem = { ...id(), coupon: second, merchant: "mch_a", order_amount: 20 };
  t.equal((await a.redeem(redeem)).discount_amount, 2);
  const voiding = { ...id(), coupon: third, merchant: "mch_a", reason: "printed twice" };
  t.equal((await a.void(voiding)).status, "VOIDED");

  const refused = await a.redeem({ ...lock, ...id() }).catch((error: unknown) => error);
  t.ok(isRefused(refused, "COUPON_REDEEMED"));
  const missing = await a.getRequest({ request_id: "never-sent" }).catch((error: unknown) => error);
  t.equal(isRefused(missing, "NOT_FOUND") && missing.details.resource, "request");
});

t.test("Variant B: party and place are those of the credential, and query shows the template", async (t) => {
  const [maker, pos] = [open<"B">("ak_maker"), open<"B">("ak_pos")];
  const [code] = (await order(maker, "tpl_b", 1)) as [string];
  const place = { merchant: "mch_b", store: "S1", terminal: "T1" };
  const { discount_amount } = await pos.redeem({ request_id: newRequestId(), coupon: code, ...place });
  t.equal(discount_amount, 5);
  const { coupon } = await pos.query({ coupon: code, merchant: "mch_b" });
  fits(t, coupon, { status: "REDEEMED", template_id: "tpl_b" });
  const stop = () => ({ request_id: newRequestId(), batch: coupon.batch_id, reason: "leaked" });
  t.ok((await maker.suspendBatch(stop())).batch.suspended_at);
  t.equal((await maker.resumeBatch(stop())).batch.suspended_at, null);
  t.equal((await maker.recallBatch(stop())).batch.recall?.voided_count, 0);
  const closing = maker.closeDay({ request_id: newRequestId() });
  t.ok(isRefused(await closing.catch((error: unknown) => error), "NOT_A_SANDBOX"));
  t.ok(isRefused(await maker.resumeBatch(stop()).catch((error: unknown) => error), "BATCH_SUSPENDED"));
});

t.test("A company sees, quotes and fetches its own things in both variants", async (t) => {
  const identity = await generateX25519Identity();
  const key = { public_key: await identityToRecipient(identity) };
  const [maker, pos] = [open<"B">("ak_maker"), open<"B">("ak_pos")];
  await service.apply({
    tenants: [
      { id: "ten_a", name: "A", variant: "A", parties: [party("pty_a", key)] },
      { id: "ten_b", name: "B", variant: "B", parties: [party("pty_maker", key)] },
    ],
  });
  const sides = [
    { owner: a, till: a, template: "tpl_percent", merchant: "mch_a", discount: 2 },
    { owner: maker, till: pos, template: "tpl_b", merchant: "mch_b", discount: 5 },
  ] as { owner: Client; till: Client; template: string; merchant: string; discount: number }[];
  for (const { owner, till, template, merchant, discount } of sides) {
    const codes = await order(owner, template, 2);
    const asked = await till.query({ coupon: codes[0]!, merchant, order_amount: 20 });
    fits(t, asked.quote, { redeemable: true, discount_amount: discount, code: null });
    const order_id = newRequestId();
    for (const coupon of codes)
      await till.redeem({ request_id: newRequestId(), coupon, merchant, order_amount: 20, order_id });
    const { redemptions } = await till.listRedemptions({ merchant, order_id });
    t.equal(redemptions.length, 2);
    const { redemption, batch_id: batch } = redemptions[0]!;
    fits(t, await till.getRedemption({ redemption }), { redemption: { order_id, batch_id: batch } });
    await service.steps.sequence();
    const changes = (await Array.fromAsync(till.redemptionPages({ merchant, limit: 1 }))).flatMap(
      (page) => page.redemptions,
    );
    t.strictSame(new Set(changes.slice(-2).map((one) => one.order_id)), new Set([order_id]));

    await owner.createBatch({ request_id: newRequestId(), template, total_count: 1 });
    const pages = await Array.fromAsync(owner.batchPages({ template, limit: 1 }));
    const listed = pages.flatMap(({ batches }) => batches.map(({ external_id }) => external_id));
    t.strictSame([listed.indexOf(batch), listed.length, new Set(listed).size], [1, pages.length, pages.length]);

    const file = await owner.exportCodes({ batch });
    const bytes = await buffer(file.body);
    t.strictSame([file.fileName, file.bytes], [`codes-${batch}.csv.age`, bytes.length]);
    const decrypter = new Decrypter();
    decrypter.addIdentity(identity);
    const rows = (await decrypter.decrypt(bytes, "text")).trim().split("\n").slice(1);
    t.strictSame(rows.map((row) => row.split(",")[1]).sort(), codes.toSorted());
  }
  const [page] = await Array.fromAsync(a.eventPages({ expand: true, limit: 1000 }));
  t.ok(page!.events.every(({ data }) => data !== undefined));
});

t.test("a lost answer never redeems twice: a proxy cuts two of three answers", async (t) => {
  const replays: string[] = [];
  const onReply = ({ isReplay, requestId }: ReplyInfo) => {
    if (isReplay) replays.push(requestId!);
  };
  const client = open<"A">("ak_a", { url: proxyUrl, attempts: 50, onReply });
  const codes = await order(a, "tpl_fixed", 30);
  let answers = 0;
  proxy.set({ cutsAnswer: () => (answers += 1) % 3 !== 0 });

  const calls = codes.map((coupon, index) => ({ request_id: `cut-${index}`, coupon, merchant: "mch_a" }));
  const given = await Promise.all(calls.map((call) => client.redeem(call)));

  t.ok(answers >= 60, `${answers} answers, most of them cut`);
  t.ok(replays.length >= 15, `${replays.length} answers that arrived were repeats`);
  const rows = await service.owner.rows<{ request: string; redemption: string }>(
    "select lock_request_id as request, redemption from report.redemption where lock_request_id like 'cut-%'",
  );
  const expected = calls.map(({ request_id }, index) => [request_id, given[index]!.redemption]);
  t.strictSame(rows.map(({ request, redemption }) => [request, redemption]).sort(), expected.sort());
});

t.test("after a lost connection the repeat takes a new one: every idle connection may be dead too", async (t) => {
  const replies: ReplyInfo[] = [];
  const [coupon] = (await order(a, "tpl_fixed", 1)) as [string];
  const agents = { "its own agent": undefined, "an agent of the caller": new Agent({ keepAlive: true }) };
  t.teardown(() => agents["an agent of the caller"].destroy());
  for (const [name, agent] of Object.entries(agents)) {
    const onReply = (reply: ReplyInfo) => void replies.push(reply);
    const client = open<"A">("ak_a", { url: proxyUrl, timeoutMs: 120_000, onReply, ...(agent && { agent }) });
    proxy.set({});
    await Promise.all(Array.from({ length: 6 }, () => client.pullEvents()));
    replies.length = 0;
    // The connections of before lose their next answer, and new ones work.
    proxy.set({ cutsConnect: () => false, cutsAnswer: () => true });
    fits(t, await client.redeem({ request_id: "r-idle", coupon, merchant: "mch_a" }), { ok: true }, name);
    fits(t, replies, [{ operation: "redeem", attempt: 2, status: 200, isReplay: true }], name);
  }
});

t.test("pages reach the end of the list, and files have the announced bytes", async (t) => {
  await moveToNoon(service, "pty_a2");
  const stranger = open<"A">("ak_a_stranger");
  const codes = await order(stranger, "tpl_a2s", 5);
  for (const coupon of codes) await stranger.redeem({ request_id: newRequestId(), coupon, merchant: "mch_a2s" });
  await service.steps.close();
  for (const days of [1, 2]) {
    await moveToNoon(service, "pty_a2", days);
    await service.steps.close();
  }

  const pages = await Array.fromAsync(stranger.eventPages({ limit: 2 }));
  t.strictSame(
    pages.map(({ events }) => events.length),
    [2, 2, 1],
  );
  const rest = await Array.fromAsync(stranger.eventPages({ cursor: pages[0]!.next_cursor }));
  t.strictSame(
    rest.flatMap(({ events }) => events),
    pages.slice(1).flatMap(({ events }) => events),
  );
  t.strictSame(await Array.fromAsync(stranger.eventPages({ cursor: rest[0]!.next_cursor })), []);

  const lists = await Array.fromAsync(stranger.reconciliationPages({ limit: 1 }));
  const [first, second] = lists.map(({ reconciliations }) => reconciliations);
  t.strictSame([lists.length, first!.length], [2, 1]);
  const { business_date: date, files } = first![0]!;
  t.ok(date < second![0]!.business_date);
  for (const file of files) {
    const listed = await stranger.getReconciliation(file);
    fits(t, listed, { fileName: `${file.kind}-${date}-pty_a2.csv`, bytes: file.bytes, sha256: file.sha256 });
    const content = await text(listed.body);
    t.equal(createHash("sha256").update(content).digest("hex"), file.sha256);
    t.equal(content.split("\r\n").length - 2, file.rows);
    const named = await stranger.getReconciliation({ date, kind: file.kind, distributor: "pty_a2" });
    t.equal(await text(named.body), content, "by date and kind too");
  }
});
