// The way to the database with a database that is slow, away or broken.
import t, { type Test } from "tap";
import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "../../src/database/types.ts";
import { createGate, type Call, type Gate } from "../../src/gate/gate.ts";
import { beforeDeadline } from "../../src/common/deadline.ts";
import { createLane } from "../../src/gate/lane.ts";
import { routes } from "../../src/http/routes/table.ts";
import { createLog } from "../../src/common/log.ts";
import { Unavailable } from "../../src/common/unavailable.ts";
import { sendPlain } from "../support/client.ts";
import { startService } from "../support/service.ts";
import { bodies, startStub } from "../support/stub.ts";

const call: Call = {
  credential_id: 1,
  nonce: "n",
  operation: "lock",
  request_id: "r-1",
  idempotency_key: null,
  body_hash: "00",
  args: {},
};
const soon = (ms = 1_000) => performance.now() + ms;
const lockPath = "/v1/coupons/lock";
const never = () => new Promise<never>(() => {});

type Asked = { calls: Call[]; isAlone: boolean };
type Answered = {
  http_status: number | null;
  code: string | null;
  resource: string | null;
  body: string;
  is_replay: boolean;
};
const done: Answered = { http_status: 200, code: null, resource: null, body: "{}", is_replay: false };
const handedBack: Answered = { ...done, http_status: null };

// `answer` gives the answer to one call of a group.
function gateOver(
  answer: (call: Call, isAlone: boolean) => Promise<Answered>,
  hungAfterMs = 7_000,
): { gate: Gate; asked: Asked[]; opened: () => number } {
  const asked: Asked[] = [];
  let count = 0;
  const connect = () => {
    count += 1;
    const rows = async (_: string, parameters: readonly unknown[] = []) => {
      const one = { calls: JSON.parse(parameters[1] as string) as Call[], isAlone: parameters[2] as boolean };
      asked.push(one);
      return Promise.all(
        one.calls.map(async (each, index) => ({ ordinal: index + 1, ...(await answer(each, one.isAlone)) })),
      );
    };
    return { rows, end: async () => {} } as unknown as Database;
  };
  return { gate: createGate({ connect, log: createLog("silent"), hungAfterMs }), asked, opened: () => count };
}

const isUnavailable = (t: Test, promise: Promise<unknown>) => t.rejects(promise, Unavailable);

t.test("an answer passes through as it is", async (t) => {
  const { gate, asked } = gateOver(async () => ({
    http_status: 409,
    code: "X",
    resource: "y",
    body: '{"code" : "X"}',
    is_replay: true,
  }));
  t.strictSame(await gate.perform(7, call, soon()), {
    status: 409,
    code: "X",
    resource: "y",
    body: '{"code" : "X"}',
    isReplay: true,
  });
  t.strictSame(asked, [{ calls: [call], isAlone: false }]);
});

t.test("a call that is handed back runs again alone, its nonce spent already", async (t) => {
  const { gate, asked } = gateOver(async (_, isAlone) => (isAlone ? done : handedBack));
  t.match(await gate.perform(7, call, soon()), { status: 200 });
  t.strictSame(asked, [
    { calls: [call], isAlone: false },
    { calls: [{ ...call, nonce: null }], isAlone: true },
  ]);
});

t.test("spendNonce returns null for a new nonce, else the refusal", async (t) => {
  const { gate, asked } = gateOver(async () => (asked.length === 1 ? done : { ...done, http_status: 401 }));
  t.equal(await gate.spendNonce(7, call, soon()), null);
  t.match(await gate.spendNonce(7, call, soon()), { status: 401 });
  t.match(asked[0]!.calls[0], { operation: "spend_nonce", nonce: "n", body_hash: null });
  t.equal(asked.length, 2, "never alone");
});

t.test("no connection is 503, a bug is a bug", async (t) => {
  const failing = (error: unknown) => gateOver(async () => Promise.reject(error)).gate.perform(7, call, soon());
  for (const code of ["ECONNREFUSED", "ENOENT", "CONNECTION_CLOSED", "CONNECT_TIMEOUT"])
    await isUnavailable(t, failing(Object.assign(new Error(code), { code })));
  const bug = new TypeError("bug");
  await t.rejects(failing(bug), bug);
});

t.test("a query that never ends is 503 at the deadline", async (t) => {
  const { gate } = gateOver(never);
  const startedAt = performance.now();
  await isUnavailable(t, gate.perform(7, call, soon(50)));
  t.ok(performance.now() - startedAt < 500);
});

t.test("connections that hang are replaced, and then it answers again", async (t) => {
  const { gate, opened } = gateOver(async () => (opened() === 1 ? never() : done), 20);
  await isUnavailable(t, gate.perform(7, call, soon(100)));
  t.match(await gate.perform(7, call, soon()), { status: 200 });
  t.equal(opened(), 2);
});

t.test("calls that wait for a lock leave the quick lane free", async (t) => {
  const { gate } = gateOver(async ({ operation }, isAlone) =>
    isAlone ? never() : operation === "lock" ? handedBack : done,
  );
  const waiting = Array.from({ length: 50 }, () => gate.perform(7, call, soon(300)).catch(() => "503"));
  const quick = await Promise.all(
    Array.from({ length: 50 }, () => gate.perform(7, { ...call, operation: "redeem" }, soon(250))),
  );
  t.ok(quick.every(({ status }) => status === 200));
  t.strictSame(new Set(await Promise.all(waiting)), new Set(["503"]));
});

t.test(
  "calls of a tenant that come together or while a group of it is under way gather; another tenant does not wait for them",
  async (t) => {
    const { gate, asked } = gateOver(() => sleep(20, done));
    const ended: string[] = [];
    const many = Array.from({ length: 150 }, (_, index) =>
      gate.perform(7, { ...call, request_id: `r-${index}` }, soon(2_000)).then(() => ended.push("many")),
    );
    await Promise.all([
      ...many,
      gate.perform(8, { ...call, request_id: "other" }, soon(2_000)).then(() => ended.push("other")),
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
      "each once, in their order",
    );
  },
);

t.test("an error of one call of a group harms no other; that the database is away is told to all", async (t) => {
  const service = await startService(t);
  const { gate, asked } = gateOver(async ({ request_id }) => {
    if (request_id === "r-50") await service.owner.rows("select 1 / 0");
    return done;
  });
  const performAll = () =>
    Promise.allSettled(
      Array.from({ length: 100 }, (_, index) => gate.perform(7, { ...call, request_id: `r-${index}` }, soon(2_000))),
    );
  const all = await performAll();
  t.strictSame(
    all.flatMap(({ status }, index) => (status === "rejected" ? [index] : [])),
    [50],
  );
  t.match((all[50] as PromiseRejectedResult).reason, { code: "22012" });
  t.ok(asked.some(({ calls }) => calls.length > 50));

  const away = gateOver(async () => Promise.reject(Object.assign(new Error("away"), { code: "ECONNREFUSED" })));
  await Promise.all(Array.from({ length: 10 }, () => isUnavailable(t, away.gate.perform(7, call, soon()))));
  t.equal(away.asked.length, 1, "no call is tried alone then");
});

t.test("what may take long is never in one transaction with others", async (t) => {
  const { gate, asked } = gateOver(async () => done);
  const operations = ["redeem", "redeem", "redeem", "pull_events", "redeem", "query", "create_batch", "lock"];
  await Promise.all(
    operations.map((operation, index) =>
      gate.perform(
        7,
        { ...call, operation, request_id: `r-${index}` },
        soon(),
        routes.find((route) => route.operation === operation)!,
      ),
    ),
  );
  t.strictSame(
    asked
      .filter(({ calls }) => calls.length > 1)
      .flatMap(({ calls }) => calls.map(({ operation }) => operation))
      .filter((name) => /pull|batch/.test(name)),
    [],
  );
  t.equal(asked.flatMap(({ calls }) => calls).length, operations.length);
});

t.test("too many that wait are refused at once", async (t) => {
  const { gate } = gateOver(never);
  let refused = 0;
  const all = Array.from({ length: 1_100 }, async () =>
    gate.perform(7, call, soon(300)).catch(() => {
      refused += 1;
    }),
  );
  await new Promise(setImmediate);
  t.equal(refused, 68, "32 are under way, 1,000 wait");
  await Promise.all(all);
  t.equal(refused, 1_100);
});

t.test("a lane keeps its width, its order and its limit, and begins nothing that is too late", async (t) => {
  const lane = createLane({ width: 2, maxWaiting: 3, hungAfterMs: 7_000 });
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const work = (number: number) => () =>
    new Promise<number>((resolve) => {
      begun.push(number);
      ends.push(() => resolve(number));
    });
  const run = (number: number, ms: number) => lane.run(soon(ms), work(number), () => {});
  const [first, second, late, third, fourth] = [run(1, 1_000), run(2, 1_000), run(3, 20), run(4, 1_000), run(5, 1_000)];
  await isUnavailable(t, run(6, 1_000));
  await isUnavailable(t, late);
  t.strictSame(begun, [1, 2]);
  ends[0]!();
  t.equal(await first, 1);
  ends[1]!();
  t.equal(await second, 2);
  await new Promise(setImmediate);
  t.strictSame(begun, [1, 2, 4, 5]);
  ends[2]!();
  ends[3]!();
  t.strictSame(await Promise.all([third, fourth]), [4, 5]);
  await t.rejects(
    lane.run(
      soon(),
      () => Promise.reject(new Error("x")),
      () => {},
    ),
    /x/,
  );
  t.equal(await beforeDeadline(Promise.resolve(1), soon()), 1);
});

t.test("503 says when to come back, 500 says nothing of what happened", async (t) => {
  const away = await startStub(t, { perform: async () => Promise.reject(new Unavailable("away")) });
  const answer = await away.asA.post(lockPath, bodies[lockPath]);
  t.match(
    [answer.status, answer.json, answer.headers["retry-after"]],
    [503, { code: "UNAVAILABLE", request_id: "r-1", details: null }, "1"],
  );
  const broken = await startStub(t, { perform: async () => Promise.reject(new Error("secret detail")) });
  const failed = await broken.asA.post(lockPath, bodies[lockPath]);
  t.match([failed.status, failed.json.code], [500, "INTERNAL_ERROR"]);
  t.notMatch(failed.text, /secret detail/);
  t.match(
    broken.log,
    [
      { request_id: "r-1", err: { message: "secret detail" } },
      { status: 500, code: "INTERNAL_ERROR" },
    ],
    "the log has it",
  );
});

t.test("a replay says so", async (t) => {
  const { asA, log } = await startStub(t, {
    perform: async () => ({
      status: 409,
      code: "COUPON_VOIDED",
      resource: null,
      body: '{"code": "COUPON_VOIDED"}',
      isReplay: true,
    }),
  });
  const answer = await asA.post(lockPath, bodies[lockPath]);
  t.match(
    [answer.status, answer.text, answer.headers["idempotent-replayed"]],
    [409, '{"code": "COUPON_VOIDED"}', "true"],
  );
  t.match(log.at(-1), {
    operation: "lock",
    status: 409,
    code: "COUPON_VOIDED",
    access_key: "ak_a",
    tenant_id: 7,
    is_replay: true,
    duration_ms: Number,
  });
});

t.test("healthz asks nobody, readyz asks for the version", async (t) => {
  let migration = "1";
  const { url } = await startStub(t, {
    readVersion: async () => (migration === "" ? never() : { migration, code: "1" }),
  });
  t.match(await sendPlain(url, "GET", "/healthz"), { status: 200, text: '{"ok":true}' });
  t.match(await sendPlain(url, "GET", "/readyz"), { status: 200, text: '{"ok":true}' });
  migration = "0";
  t.match(await sendPlain(url, "GET", "/readyz"), { status: 503, json: { code: "UNAVAILABLE" } });
  migration = "";
  t.match(await sendPlain(url, "GET", "/readyz"), { status: 503 }, "and not for ever");
  t.match(await sendPlain(url, "GET", "/healthz"), { status: 200 });
});

t.test("a secret that changed is known at once, and a credential is looked up once in a while", async (t) => {
  const { asA, asB, lookups, gate } = await startStub(t);
  await Promise.all(Array.from({ length: 20 }, () => asA.get("/v1/batches/bat_1")));
  t.strictSame(lookups, ["ak_a"]);
  const find = gate.findCredential;
  gate.findCredential = async () => null;
  t.equal((await asA.get("/v1/batches/bat_1")).status, 200, "the database judges a revoked one");
  t.equal((await asB.get("/v1/batches/bat_1")).status, 401);
  gate.findCredential = find;
  t.equal((await asB.get("/v1/batches/bat_1")).status, 200);
});
