// The gate groups calls and keeps its deadlines, also when the database is slow, unreachable or broken.
import t, { type Test } from "tap";
import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "../../src/database/types.ts";
import { createGate, type Call } from "../../src/gate/gate.ts";
import { createLog } from "../../src/common/log.ts";
import { Unavailable } from "../../src/common/unavailable.ts";
import { fits } from "../support/fits.ts";
import { openScratchDatabase } from "../support/database.ts";
import { waitFor } from "../support/wait-until.ts";

const call: Call = {
  credential_id: 1,
  nonce: "n",
  operation: "lock",
  request_id: "r-1",
  idempotency_key: null,
  body_hash: "00",
  args: {},
};
const soon = (ms = 60_000) => performance.now() + ms;
const never = () => new Promise<never>(() => {});

type Asked = { calls: Call[]; isAlone: boolean; pipe: object | undefined };
const done = {
  http_status: 200 as number | null,
  code: null as string | null,
  resource: null as string | null,
  body: "{}",
  is_replay: false,
};
type Answered = typeof done;
const handedBack: Answered = { ...done, http_status: null };

// A gate over a fake database. `answer` returns the answer to one call of a group.
function gateOver(answer: (call: Call, isAlone: boolean) => Promise<Answered>) {
  const asked: Asked[] = [];
  const connect = () => {
    const rows = async (_: string, parameters: readonly unknown[] = [], pipe?: object) => {
      const one = { calls: JSON.parse(parameters[1] as string) as Call[], isAlone: parameters[3] as boolean, pipe };
      asked.push(one);
      return Promise.all(
        one.calls.map(async (each, index) => ({ ordinal: index + 1, ...(await answer(each, one.isAlone)) })),
      );
    };
    return { rows, end: async () => {} } as unknown as Database;
  };
  return { gate: createGate({ connect, log: createLog("silent") }), asked };
}

const isUnavailable = (t: Test, promise: Promise<unknown>) => t.rejects(promise, Unavailable);

t.test("spendNonce returns null for a new nonce, and the refusal for a used one", async (t) => {
  const { gate, asked } = gateOver(async () => (asked.length === 1 ? done : { ...done, http_status: 401 }));
  t.equal(await gate.spendNonce(7, call, soon()), null);
  fits(t, await gate.spendNonce(7, call, soon()), { status: 401 });
  fits(t, asked[0]!.calls[0], { operation: "spend_nonce", nonce: "n", body_hash: null });
  t.equal(asked.length, 2, "it never runs alone");
});

t.test("A tenant's long calls take no connection from redemptions, nor all from another tenant's", async (t) => {
  const pulls = Promise.withResolvers<Answered>();
  const { gate, asked } = gateOver(({ request_id }) => (request_id === "slow" ? pulls.promise : Promise.resolve(done)));
  const options = { hasOwnTransaction: true };
  const pull = (tenantId: number, request_id: string) =>
    gate.perform(tenantId, { ...call, operation: "pull_events", request_id }, soon(), options);
  const slow = Array.from({ length: 50 }, () => pull(7, "slow"));
  const others = [gate.perform(8, call, soon()), gate.perform(7, call, soon()), pull(8, "quick")];
  for (const { status } of await waitFor("the others", Promise.all(others), { withinMs: 20_000 })) t.equal(status, 200);
  const started = asked.filter(({ calls }) => calls[0]!.request_id === "slow").map(({ calls }) => calls.length);
  t.strictSame(started, [1, 1], "of three connections, a tenant gets two, and each long call runs alone");
  pulls.resolve(done);
  t.ok((await Promise.all(slow)).every(({ status }) => status === 200));
});

t.test("A tenant's calls that wait for locks delay neither its other calls nor another tenant's locks", async (t) => {
  const { gate } = gateOver(async ({ operation, request_id }, isAlone) => {
    if (!isAlone) return operation === "lock" ? handedBack : done;
    return request_id === "held" ? never() : done;
  });
  const held = Array.from({ length: 50 }, () =>
    gate.perform(7, { ...call, request_id: "held" }, soon(300)).catch(() => "503"),
  );
  const redeem = { ...call, operation: "redeem" };
  const others = [gate.perform(8, call, soon()), ...Array.from({ length: 50 }, () => gate.perform(7, redeem, soon()))];
  const answers = await waitFor("the others", Promise.all(others), { withinMs: 20_000 });
  t.ok(answers.every(({ status }) => status === 200));
  t.strictSame(new Set(await Promise.all(held)), new Set(["503"]));
});

t.test(
  "Calls of a tenant that arrive together, or during a group, form groups; other tenants do not wait for them",
  async (t) => {
    const { gate, asked } = gateOver(() => sleep(20, done));
    const ended: string[] = [];
    const many = Array.from({ length: 150 }, (_, index) =>
      gate.perform(7, { ...call, request_id: `r-${index}` }, soon()).then(() => ended.push("many")),
    );
    await Promise.all([
      ...many,
      gate.perform(8, { ...call, request_id: "other" }, soon()).then(() => ended.push("other")),
    ]);
    t.strictSame(
      asked.map(({ calls }) => calls.length),
      [16, 16, 1, 64, 54],
    );
    t.ok(ended.indexOf("other") <= 32);
    const sent = asked.flatMap(({ calls }) => calls.map(({ request_id }) => request_id)).filter((id) => id !== "other");
    t.strictSame(
      sent,
      many.map((_, index) => `r-${index}`),
      "each call once, in its order",
    );
  },
);

t.test("A second group is sent on the connection of the first; if it is lost, the calls of both get 503", async (t) => {
  const lost = Promise.withResolvers<Answered>();
  const { gate, asked } = gateOver(() => lost.promise);
  const calls = [gate.perform(7, call, soon())];
  await new Promise(setImmediate);
  calls.push(gate.perform(7, call, soon()), gate.perform(8, call, soon()));
  await new Promise(setImmediate);
  t.strictSame(
    asked.map(({ pipe }) => pipe === asked[0]!.pipe),
    [true, true, false],
  );
  fits(t, gate.load()[0]!.lanes["quick"], { busy: 2 });
  lost.reject(Object.assign(new Error("lost"), { code: "CONNECTION_CLOSED" }));
  await Promise.all(calls.map((one) => isUnavailable(t, one)));
  t.equal(asked.length, 3, "no call is sent again");
});

t.test("An error of one call fails only that call; an unreachable database fails the whole group", async (t) => {
  const session = await openScratchDatabase(t);
  const { gate, asked } = gateOver(async ({ request_id }) => {
    if (request_id === "r-50") await session.run("select 1 / 0");
    return done;
  });
  const all = await Promise.allSettled(
    Array.from({ length: 100 }, (_, index) => gate.perform(7, { ...call, request_id: `r-${index}` }, soon())),
  );
  t.strictSame(
    all.flatMap((result, index) => (result.status === "rejected" ? [[index, result.reason.code]] : [])),
    [[50, "22012"]],
  );
  t.ok(asked.some(({ calls }) => calls.length > 50));

  const away = gateOver(async () => Promise.reject(Object.assign(new Error("away"), { code: "ECONNREFUSED" })));
  await Promise.all(Array.from({ length: 10 }, () => isUnavailable(t, away.gate.perform(7, call, soon()))));
  t.equal(away.asked.length, 1, "no call is retried alone");
});

t.test("Calls beyond the limit of waiting calls are refused at once", async (t) => {
  const free = Promise.withResolvers<Answered>();
  const { gate } = gateOver(() => free.promise);
  let [served, refused] = [0, 0];
  const all = Array.from({ length: 1_100 }, async () =>
    gate.perform(7, call, soon()).then(
      () => (served += 1),
      () => (refused += 1),
    ),
  );
  await new Promise(setImmediate);
  t.strictSame([served, refused], [0, 68], "32 run and 1,000 wait");
  t.equal(gate.load()[0]!.waiting, 1_000, "for metrics");
  free.resolve(done);
  await Promise.all(all);
  t.strictSame([served, refused], [1_032, 68]);
});
