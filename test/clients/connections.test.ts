// Connections of the TypeScript client: they are kept, bounded and given back. An argument is the number of calls.
import { getEventListeners } from "node:events";
import { Agent } from "node:http";
import t from "tap";
import { createClient, type ReplyInfo } from "../../clients/typescript/src/index.ts";
import { fits } from "../support/fits.ts";
import { secretOf } from "../support/tenants.ts";
import { lacksIpv6 } from "../support/listen.ts";
import { startProxy } from "../support/proxy.ts";
import { startService } from "../support/service.ts";
import { waitUntil } from "../support/wait-until.ts";
import { accessKey, answer, refusal, secret, startScripted } from "./scripted-service.ts";

const calls = Number(process.argv[2] ?? 1_000);
const atOnce = 64;
const body = { request_id: "r-1", coupon: "0123456789ABCDEF", merchant: "mch_1" };

const countTimers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;

t.test("Many calls, 64 at once, leave no socket, listener or timer behind", async (t) => {
  // Every tenth call is refused, every hundredth is repeated.
  const scripts = Array.from({ length: 100 }, (_, index) => {
    if (index === 50) return refusal(503, "UNAVAILABLE");
    return index % 10 === 0 ? refusal(409, "COUPON_REDEEMED") : answer(200, { ok: true });
  });
  const { url, received, sockets } = await startScripted(t, scripts, { isRepeating: true });
  const agent = new Agent({ keepAlive: true });
  // A repeat after a time-out would take a new connection.
  const client = createClient<"A">({ url, accessKey, secret, agent, timeoutMs: 120_000 });
  const { signal } = new AbortController();
  const warnings: Error[] = [];
  process.on("warning", (warning) => warnings.push(warning));
  const timers = countTimers();
  const results = { done: 0, refused: 0 };
  let started = 0;
  const work = async () => {
    while (started < calls) {
      started += 1;
      await client.redeem(body, { signal }).then(
        () => (results.done += 1),
        () => (results.refused += 1),
      );
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));

  t.equal(results.done + results.refused, calls);
  t.ok(results.refused >= calls / 11 && results.refused <= calls / 9, `${results.refused} refused`);
  t.ok(received.length > calls, "some were repeated");
  t.ok(sockets.opened <= atOnce, `${sockets.opened} connections in all`);
  const free = Object.values(agent.freeSockets).flat();
  t.equal(free.length, sockets.opened, "every connection is free again");
  for (const socket of free)
    for (const event of socket!.eventNames())
      if (socket!.listenerCount(event) > 3) t.fail(`listeners of ${String(event)}`);
  t.strictSame(getEventListeners(signal, "abort"), []);
  t.strictSame(warnings, []);
  t.ok(countTimers() <= timers + 1, "the server has one");
  agent.destroy();
  await waitUntil("the server to lose all connections", () => sockets.open === 0);
});

t.test("A URL may have an IPv6 address in brackets", { skip: lacksIpv6 }, async (t) => {
  const { url, received } = await startScripted(t, [answer(200, { ok: true })], { host: "::1" });
  const client = createClient<"A">({ url, accessKey, secret, attempts: 1 });
  t.teardown(() => client.close());
  t.strictSame(await client.redeem(body), { ok: true });
  t.strictSame(
    received.map(({ headers }) => `http://${headers.host}`),
    [url],
  );
});

t.test("close() ends the connections of the client's own agent", async (t) => {
  const { url, sockets } = await startScripted(t, [answer(200, { ok: true })]);
  const client = createClient({ url, accessKey, secret });
  await client.redeem(body);
  await client.redeem(body);
  t.strictSame(sockets, { opened: 1, open: 1 });
  client.close();
  await waitUntil("the server to lose the connection", () => sockets.open === 0);
});

t.test("After a lost connection the repeat takes a new one: every idle connection may be dead too", async (t) => {
  const service = await startService(t);
  const { codes, couponIds } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 1);
  const proxy = await startProxy({ host: "127.0.0.1", port: Number(new URL(service.url).port) });
  t.teardown(() => proxy.stop());
  const replies: ReplyInfo[] = [];
  const agents = { "its own agent": undefined, "an agent of the caller": new Agent({ keepAlive: true }) };
  for (const [name, agent] of Object.entries(agents)) {
    const client = createClient<"A">({
      url: `http://127.0.0.1:${proxy.port}`,
      accessKey: "ak_a",
      secret: secretOf("ak_a"),
      timeoutMs: 120_000,
      onReply: (reply) => replies.push(reply),
      ...(agent !== undefined && { agent }),
    });
    t.teardown(() => {
      client.close();
      agent?.destroy();
    });
    proxy.set({});
    await Promise.all(Array.from({ length: 6 }, () => client.pullEvents()));
    replies.length = 0;
    // The connections of before lose their next answer, and new ones work.
    proxy.set({ cutsConnect: () => false, cutsAnswer: () => true });
    const request = { request_id: "r-idle", coupon: codes[0]!, merchant: "mch_a" };
    fits(t, await client.redeem(request), { ok: true }, name);
    fits(t, replies, [{ operation: "redeem", attempt: 2, status: 200, isReplay: true }], name);
    t.equal(replies.length, 1, name);
  }
  const [ledger] = await service.owner.rows<{ count: number }>(
    "select count(*)::int as count from report.ledger where coupon = any ($1)",
    [couponIds],
  );
  t.equal(ledger!.count, 1);
});
