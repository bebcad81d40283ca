// The health checks: how they are logged, and what they ask of the database.
import t from "tap";
import type { Gate } from "../../src/gate/gate.ts";
import { sendBytes, sendPlain } from "../support/client.ts";
import { stopClock } from "../support/stop-clock.ts";
import { startStub } from "../support/stub.ts";
import { waitUntil } from "../support/wait-until.ts";

t.test("A successful health check is logged at debug level, a failed one at info level", async (t) => {
  let isReady = true;
  const { url, log } = await startStub(t, { readVersion: async () => ({ migration: isReady ? "1" : "0", code: "1" }) });
  const level = async (path: string) => [(await sendPlain(url, "GET", path)).status, log.at(-1)!["level"]];
  t.strictSame(await level("/healthz"), [200, 20]);
  t.strictSame(await level("/readyz"), [200, 20]);
  isReady = false;
  t.strictSame(await level("/readyz"), [503, 30]);
});

t.test("Probes that come together ask the database once", async (t) => {
  const asked: (() => void)[] = [];
  const readVersion = () =>
    new Promise<Awaited<ReturnType<Gate["readVersion"]>>>((resolve) =>
      asked.push(() => resolve({ migration: "1", code: "1" })),
    );
  const { url } = await startStub(t, { readVersion });
  // A check fails after 1.5 s.
  stopClock(t, { hasTimers: true });
  const probes = Array.from({ length: 100 }, () =>
    sendBytes(url, "GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
  );
  await waitUntil("a question", () => asked.length > 0);
  for (let turn = 0; turn < 2; turn += 1) await sendPlain(url, "GET", "/healthz");
  t.equal(asked.length, 1);
  asked.pop()!();
  t.equal((await Promise.all(probes)).join().match(/HTTP\/1.1 200 /g)?.length, 100);
  const next = sendPlain(url, "GET", "/readyz");
  await waitUntil("a second question", () => asked.length > 0);
  asked.pop()!();
  t.equal((await next).status, 200, "a result is not kept");
});
