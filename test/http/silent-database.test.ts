// All database connections vanish silently, as when a firewall forgets them: no packet and no reset arrives.
import { setImmediate as nextTurn } from "node:timers/promises";
import t from "tap";
import { defaultLimits } from "../../src/config/config.ts";
import { listen } from "../../src/http/listener.ts";
import { serve } from "../../src/serve.ts";
import { createClient } from "../support/signing-client.ts";
import { secretOf } from "../support/tenants.ts";
import { startProxy } from "../support/proxy.ts";
import { startService } from "../support/service.ts";
import { stopClock } from "../support/stop-clock.ts";
import { createStubLog } from "../support/stub.ts";
import { waitUntil } from "../support/wait-until.ts";

const severalTurns = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await nextTurn();
};

t.test("a start waits 2 s for a silent database, then serves, and the log says so", async (t) => {
  const service = await startService(t);
  const proxy = await startProxy(service.address);
  proxy.set({ isStalled: true });
  const { logger, log } = createStubLog();
  const limits = defaultLimits;
  const listening = await listen({ host: "127.0.0.1", port: 0, limits }, logger);
  const address = { ...service.address, host: "127.0.0.1", port: proxy.port };
  // After the clock goes on.
  t.teardown(async () => {
    await proxy.stop();
    await (await starting).stop();
  });
  const clock = stopClock(t, { hasTimers: true });
  t.teardown(() => clock.pass(60_000));
  const starting = serve({ address, keys: service.keys, limits, listening, log: logger });
  let isServing = false;
  void starting.then(() => (isServing = true));
  for (const expected of [
    { isServing: false, said: [] },
    { isServing: true, said: ["the database cannot be asked for its master keys yet; /readyz asks again"] },
  ]) {
    // The call that asks begins, or gives up, in a few turns of the event loop.
    await severalTurns();
    clock.pass(1_000);
    await severalTurns();
    t.strictSame({ isServing, said: log.map(({ msg }) => msg) }, expected);
  }
});

t.test(
  "calls are served again within 5 s, three times in a row, and a hanging call gets 503 before its deadline",
  async (t) => {
    const service = await startService(t);
    const proxy = await startProxy(service.address);
    const { logger, log } = createStubLog();
    const limits = defaultLimits;
    const listening = await listen({ host: "127.0.0.1", port: 0, limits }, logger);
    const address = { ...service.address, host: "127.0.0.1", port: proxy.port };
    const { url, stop } = await serve({ address, keys: service.keys, limits, listening, log: logger });
    t.teardown(async () => {
      await stop();
      await proxy.stop();
    });
    const till = createClient({ url, accessKey: "ak_a", secret: secretOf("ak_a") });
    const call = async () => (await till.get("/v1/batches/bat_none")).status;
    const reasons: unknown[] = [];
    const countGivenUp = () => reasons.filter((reason) => reason === "the connection was given up").length;
    for (let times = 0; times < 3 || (times < 8 && countGivenUp() < 2); times += 1) {
      t.equal(await call(), 404);
      proxy.loseAll();
      log.length = 0;
      // The first call takes the lost connection, or the one sent beside it does, or both wait for it.
      const answers: number[] = [];
      const ask = async () => {
        const status = await call();
        answers.push(status);
        return status;
      };
      const first = ask();
      await waitUntil("a served call", async () => (await ask()) === 404, { everyMs: 50, withinMs: 20_000 });
      await first;
      t.strictSame([...new Set(answers)].sort(), [404, 503]);
      reasons.push(log.find(({ status }) => status === 503)!["reason"]);
      // Without this wait, the watchdog of a statement of this round could help the calls of the next round.
      const replaced = "the database connections hang, opening new ones";
      await waitUntil("new connections", () => log.some(({ msg }) => msg === replaced));
    }
    // heartbeat.test.ts adds up the limits that promise the 5 s. If the machine stalls, the deadline may come first.
    t.ok(countGivenUp() >= 2, String(reasons));
  },
);
