// Connections of the TypeScript client: they are kept, bounded and given back. An argument is the number of calls.
import { getEventListeners } from "node:events";
import { Agent } from "node:http";
import t from "tap";
import { createClient } from "../../clients/typescript/src/index.ts";
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

t.test("close() ends the connections of the client's own agent", async (t) => {
  const { url, sockets } = await startScripted(t, [answer(200, { ok: true })]);
  const client = createClient({ url, accessKey, secret });
  await client.redeem(body);
  await client.redeem(body);
  t.strictSame(sockets, { opened: 1, open: 1 });
  client.close();
  await waitUntil("the server to lose the connection", () => sockets.open === 0);
});
