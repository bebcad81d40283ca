// How long the TypeScript client waits. No time passes: the waits are recorded, and end at once.
import { mock } from "node:test";
import t, { type Test } from "tap";
import { RefusedError } from "../../clients/typescript/src/index.ts";
import { fits } from "../support/fits.ts";
import { recordWaits } from "../support/record-delays.ts";
import { answer, fail, refusal, start } from "./scripted-service.ts";

// Returns the waits between attempts.
function recordRetries(t: Test, random: number): number[] {
  const { mock: fixed } = mock.method(Math, "random", () => random);
  t.teardown(() => fixed.restore());
  return recordWaits(t);
}

const busy = refusal(503, "UNAVAILABLE");

t.test("The wait is a random part of a time that doubles from 200 ms up to 5 seconds", async (t) => {
  for (const [random, expected] of [
    [0.5, [100, 200, 400, 800, 1_600, 2_500, 2_500]],
    [0.25, [50, 100, 200, 400, 800, 1_250, 1_250]],
  ] as const)
    await t.test(`the part is ${random}`, async (t) => {
      const { client } = await start(t, [busy], { attempts: 8, timeoutMs: 60_000 });
      const waits = recordRetries(t, random);
      fits(t, await fail(client.getBatch({ batch: "b" })), { code: "UNAVAILABLE" });
      t.strictSame(waits, expected);
    });
});

t.test("A call has 5 attempts by default, and waits up to 30 seconds if the service asks for that", async (t) => {
  const asks = (seconds: number) => refusal(503, "UNAVAILABLE", null, { "retry-after": String(seconds) });
  const waits = recordRetries(t, 0.5);
  const often = await start(t, [busy], { timeoutMs: 60_000 });
  fits(t, await fail(often.client.getBatch({ batch: "b" })), { code: "UNAVAILABLE" });
  t.equal(often.received.length, 5);
  t.strictSame(waits.splice(0), [100, 200, 400, 800]);
  const long = await start(t, [asks(30), asks(31), busy], { timeoutMs: 60_000 });
  t.equal(((await fail(long.client.getBatch({ batch: "b" }))) as RefusedError).retryAfterMs, 31_000);
  t.strictSame(waits, [30_100]);
});

t.test("An answer has 10 seconds by default, and a download as long for each wait for bytes", async (t) => {
  const content = answer(200, {}, { etag: `"${"0".repeat(64)}"`, "content-length": "2" });
  const { client } = await start(t, [answer(200, {}), content]);
  const started = mock.method(globalThis, "setTimeout");
  t.teardown(() => started.mock.restore());
  const limits = () => [...new Set(started.mock.calls.map((call) => call.arguments[1]))];
  await client.getBatch({ batch: "b" });
  t.strictSame(limits(), [10_000]);
  started.mock.resetCalls();
  const { body } = await client.getReconciliation({ href: "/file" });
  await fail(body.toArray());
  t.strictSame(limits(), [10_000]);
});
