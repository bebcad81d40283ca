// A program that cannot ask for the fingerprints of the master keys when it starts asks later, and just as strictly.
import { randomBytes } from "node:crypto";
import t from "tap";
import { defaultLimits } from "../../src/common/config.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import { listen } from "../../src/http/listener.ts";
import { serve } from "../../src/serve.ts";
import { sendPlain } from "../support/client.ts";
import { startProxy } from "../support/proxy.ts";
import { startService } from "../support/service.ts";
import { createStubLog } from "../support/stub.ts";
import { waitUntil } from "../support/wait-until.ts";

t.test("a program that lacks a key and starts while its database is away is never ready", async (t) => {
  const service = await startService(t);
  const proxy = await startProxy(service.address);
  t.teardown(() => proxy.stop());
  proxy.set({ cutsConnect: () => true });
  const { logger, log } = createStubLog();
  const address = { ...service.address, host: "127.0.0.1", port: proxy.port };
  const limits = defaultLimits;
  const startWith = async (masterKeyText: string) => {
    const listening = await listen({ host: "127.0.0.1", port: 0, limits }, logger);
    const keys = parseMasterKeys(masterKeyText);
    const { url, stop } = await serve({ address, keys, limits, listening, log: logger });
    t.teardown(stop);
    return url;
  };
  const [right, lacking] = [
    await startWith(service.masterKeyText),
    await startWith(`2:${randomBytes(32).toString("base64")}`),
  ];
  proxy.set({});
  const askReady = async (url: string) => (await sendPlain(url, "GET", "/readyz")).status;
  await waitUntil("the program with all keys to be ready", async () => (await askReady(right)) === 200);
  const reason = "COUPON_MASTER_KEY: key 1 is missing, but codes or secrets in this database were made with it";
  const answers = new Set<number>();
  await waitUntil("the missing key in the log, several times", async () => {
    answers.add(await askReady(lacking));
    return log.filter((line) => line["reason"] === reason).length >= 3;
  });
  t.strictSame([...answers], [503]);
});
