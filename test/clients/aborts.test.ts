// A signal ends a call of the TypeScript client.
import t from "tap";
import type { CallOptions } from "../../clients/typescript/src/index.ts";
import { waitUntil } from "../support/wait-until.ts";
import { fail, hang, refusal, start } from "./scripted-service.ts";

const body = { request_id: "r-1", coupon: "0123456789ABCDEF", merchant: "mch_1" };
const reason = new Error("the cashier gave up");

t.test("An aborted call ends with the reason of its signal, in an answer and between attempts", async (t) => {
  const whileWaiting = new AbortController();
  const waiting = await start(t, [hang]);
  const unanswered = fail(waiting.client.redeem(body, { signal: whileWaiting.signal }));
  await waitUntil("the request", () => waiting.received.length === 1);
  whileWaiting.abort(reason);
  t.equal(await unanswered, reason);
  const betweenAttempts = new AbortController();
  const busy = await start(t, [refusal(503, "UNAVAILABLE", null, { "retry-after": "20" })], {
    onReply: () => setImmediate(() => betweenAttempts.abort(reason)),
  });
  t.equal(await fail(busy.client.redeem(body, { signal: betweenAttempts.signal })), reason);
  t.equal(busy.received.length, 1);
});

t.test("The signal of the caller also ends the pages of a list, and a download", async (t) => {
  const { client, received } = await start(t, [hang], { attempts: 1 });
  const calls: [string, (options: CallOptions) => Promise<unknown>][] = [
    ["/v1/events", (options) => client.eventPages({}, options).next()],
    ["/v1/reconciliations", (options) => client.reconciliationPages({}, options).next()],
    ["/v1/reconciliations/a/detail", (options) => client.getReconciliation({ date: "a", kind: "detail" }, options)],
    ["/file", (options) => client.getReconciliation({ href: "/file" }, options)],
  ];
  for (const [target, call] of calls) {
    const abort = new AbortController();
    const error = fail(call({ signal: abort.signal }));
    await waitUntil(target, () => received.at(-1)?.target === target);
    abort.abort(reason);
    t.equal(await error, reason, target);
  }
});
