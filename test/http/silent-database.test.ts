// All database connections vanish silently, as when a firewall forgets them: no packet and no reset arrives.
import { mock } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { defaultLimits } from "../../src/common/config.ts";
import { createLog } from "../../src/common/log.ts";
import { listen } from "../../src/http/listener.ts";
import { serve } from "../../src/serve.ts";
import { createClient } from "../support/signing-client.ts";
import { secretOf } from "../support/provisioning.ts";
import { startProxy } from "../support/proxy.ts";
import { startService } from "../support/service.ts";
import { createStubLog } from "../support/stub.ts";
import { waitUntil } from "../support/wait-until.ts";

const servedWithinMs = 5_000;

t.test("a start waits 2 s for a silent database, then serves, and the log says so", async (t) => {
  const service = await startService(t);
  const proxy = await startProxy(service.address);
  proxy.set({ isStalled: true });
  const { logger, log } = createStubLog();
  const limits = defaultLimits;
  const listening = await listen({ host: "127.0.0.1", port: 0, limits }, logger);
  const address = { ...service.address, host: "127.0.0.1", port: proxy.port };
  mock.timers.enable({ apis: ["setTimeout"] });
  const starting = serve({ address, keys: service.keys, limits, listening, log: logger });
  let isServing = false;
  void starting.then(() => (isServing = true));
  t.teardown(async () => {
    mock.timers.tick(60_000);
    mock.timers.reset();
    await proxy.stop();
    await (await starting).stop();
  });
  for (const expected of [
    { isServing: false, said: [] },
    { isServing: true, said: ["the database cannot be asked for its master keys yet; /readyz asks again"] },
  ]) {
    // The call that asks begins, or gives up, in a few turns of the event loop.
    await sleep(100);
    mock.timers.tick(1_000);
    await sleep(100);
    t.strictSame({ isServing, said: log.map(({ msg }) => msg) }, expected);
  }
});

t.test("calls are served again within 5 s, three times in a row, and a hanging call gets 503", async (t) => {
  const service = await startService(t);
  const proxy = await startProxy(service.address);
  const log = createLog("silent");
  const limits = defaultLimits;
  const listening = await listen({ host: "127.0.0.1", port: 0, limits }, log);
  const address = { ...service.address, host: "127.0.0.1", port: proxy.port };
  const { url, stop } = await serve({ address, keys: service.keys, limits, listening, log });
  t.teardown(async () => {
    await stop();
    await proxy.stop();
  });
  const till = createClient({ url, accessKey: "ak_a", secret: secretOf("ak_a") });
  const call = async () => (await till.get("/v1/batches/bat_none")).status;
  for (let times = 0; times < 3; times += 1) {
    t.equal(await call(), 404);
    proxy.loseAll();
    const since = performance.now();
    const hanging = call().then((status) => ({ status, afterMs: performance.now() - since }));
    await waitUntil("a served call", async () => (await call()) === 404, { everyMs: 50 });
    const afterMs = Math.round(performance.now() - since);
    t.ok(afterMs <= servedWithinMs, `served again after ${afterMs} ms, at most ${servedWithinMs} ms`);
    const { status, afterMs: hungMs } = await hanging;
    t.equal(status, 503);
    t.ok(hungMs < 3_400, `the hanging call is answered after ${Math.round(hungMs)} ms, before its deadline of 3.5 s`);
  }
});
