// HTTP and database together: promises that need both.
import { setImmediate as nextTurn } from "node:timers/promises";
import t from "tap";
import { defaultLimits } from "../../src/config/config.ts";
import { listen } from "../../src/http/listener.ts";
import { serve } from "../../src/serve.ts";
import type { Coupon } from "../support/caller.ts";
import { createClient } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { startProxy } from "../support/proxy.ts";
import { untilBlocked } from "../support/race.ts";
import { newRequestId } from "../support/request-id.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { holdCoupon } from "../support/sessions.ts";
import { stopClock } from "../support/stop-clock.ts";
import { createStubLog } from "../support/stub.ts";
import { secretOf, tenants } from "../support/tenants.ts";
import { waitUntil } from "../support/wait-until.ts";

const lockPath = "/v1/coupons/lock";
const redeemPath = "/v1/coupons/redeem";

t.test("A retry by request_id or by idempotency-key gets the first answer byte for byte", async (t) => {
  const world = await scenario(t, { http: true });
  const { till, otherTill, makeCoupons } = world.a;
  const [coupon] = (await makeCoupons(1)) as [Coupon];
  const body = {
    request_id: newRequestId(),
    coupon: coupon.code,
    merchant: "mch_a",
    order_amount: 20,
    store: " Main ",
  };
  const first = await till.post(redeemPath, body, { idempotencyKey: "key-1" });
  t.equal(first.headers["idempotent-replayed"], undefined);
  const retries = [
    await till.post(redeemPath, body),
    await till.post(redeemPath, Object.fromEntries(Object.entries(body).toReversed())),
    await till.post(redeemPath, { ...body, request_id: newRequestId() }, { idempotencyKey: "key-1" }),
    await otherTill.post(redeemPath, body),
  ];
  for (const retry of retries)
    t.strictSame([retry.status, retry.text, retry.headers["idempotent-replayed"]], [200, first.text, "true"]);
  fits(t, world.log.at(-1), {
    operation: "redeem",
    status: 200,
    access_key: "ak_a_second",
    tenant_id: Number,
    is_replay: true,
    duration_ms: Number,
  });
  fits(t, (await till.post(redeemPath, { ...body, order_amount: 21 })).json, { code: "IDEMPOTENCY_KEY_REUSED" });
  fits(t, (await till.post(lockPath, body)).json, { code: "IDEMPOTENCY_KEY_REUSED" });
  t.equal((await world.owner.rows("select from core.redemption")).length, 1);
  for (const hidden of ["signature", "nonce", secretOf("ak_a"), "Main"])
    t.notMatch(JSON.stringify(world.log), hidden, "the log");
});

t.test("A request that is refused before it is decided leaves no record, so its ID can be used again", async (t) => {
  const world = await scenario(t, { http: true });
  const { till, makeCoupons } = world.a;
  const [coupon] = (await makeCoupons(1)) as [Coupon];
  const request_id = newRequestId();
  const redeem = (more: object) => till.redeem(coupon, { request_id, ...more });
  t.equal((await redeem({ extra: 1 })).status, 400);
  t.equal((await redeem({ coupon: "0000000000000000" })).status, 422);
  fits(t, (await redeem({ order_amount: 1.234 })).json, {
    code: "INVALID_REQUEST",
    details: { issues: [{ path: "order_amount" }] },
  });
  t.equal((await till.get(`/v1/requests/${request_id}`)).status, 404);
  t.equal((await redeem({})).status, 200);
});

t.test("A nonce is accepted once, whatever the outcome of its request, and on any connection", async (t) => {
  const { till, otherTill } = (await scenario(t, { http: true })).a;
  const wrongCode = { request_id: "r-1", coupon: "0000000000000000", merchant: "mch_a" };
  for (const [body, status] of [
    [{}, 400],
    [wrongCode, 422],
  ] as const) {
    const nonce = `the-nonce-of-a-${status}`;
    t.equal((await till.post(lockPath, body, { nonce })).status, status);
    fits(t, (await till.get("/v1/batches/bat_x", { nonce })).json, { code: "NONCE_REUSED" });
    const other = await otherTill.get("/v1/batches/bat_x", { nonce });
    t.equal(other.status, 404, "each access key has its own nonces");
  }
  const nonce = "fedcba9876543210";
  const together = await Promise.all(Array.from({ length: 20 }, () => till.get("/v1/batches/bat_x", { nonce })));
  t.strictSame(together.map(({ status }) => status).toSorted(), [...Array<number>(19).fill(401), 404].toSorted());
});

t.test(
  "A changed secret works at once; a revoked credential gets the same answer as an unknown one at once",
  async (t) => {
    const world = await scenario(t, { http: true });
    const { till, otherTill } = world.a;
    t.equal((await till.get("/v1/batches/bat_x")).status, 404);
    const changed = structuredClone(tenants.slice(0, 1));
    const secret = "another secret of forty characters ......";
    changed[0]!.credentials[1]!.secret = secret;
    await world.apply({ tenants: changed });
    const second = createClient({ url: world.url, accessKey: "ak_a_second", secret });
    t.equal((await second.get("/v1/batches/bat_x")).status, 404);
    t.equal((await otherTill.get("/v1/batches/bat_x")).status, 401);

    await world.owner.rows("update core.credential set revoked_at = now() where access_key = $1", ["ak_a"]);
    const body = { request_id: "r-1", template: "tpl_fixed", total_count: 1 };
    const revoked = await till.post("/v1/batches", body);
    fits(t, world.log.at(-1), { status: 401, reason: "revoked", access_key: "ak_a" });
    const unknown = await createClient({ url: world.url, accessKey: "ak_nobody", secret }).post("/v1/batches", body);
    t.strictSame([revoked.status, revoked.text], [401, unknown.text]);
  },
);

t.test("A call that waits for a locked row delays no other coupon, and ends in time", async (t) => {
  const world = await scenario(t, { http: true });
  const { till, makeCoupons } = world.a;
  const [held, free] = (await makeCoupons(2)) as [Coupon, Coupon];
  const ids = Array.from({ length: 10 }, newRequestId);
  const release = await holdCoupon(world, held.id);
  let ended = 0;
  const lock = (request_id: string) => till.lock(held, { request_id });
  const waiting = Promise.all(ids.map((id) => lock(id).finally(() => (ended += 1))));
  await untilBlocked(world, 1);
  t.equal((await till.lock(free)).status, 200);
  t.equal(ended, 0, "another coupon is not delayed");
  // While the row is still locked: the answers wait for their deadlines, not for the row.
  for (const { status, json, headers } of await waiting)
    fits(t, [status, json.code, headers["retry-after"]], [503, "UNAVAILABLE", "1"]);
  await release();
  // A 503 may come while the statement still waits, so its outcome is unknown until a retry with the same request_id.
  const outcomes: number[] = [];
  for (const id of ids) outcomes.push((await lock(id)).status);
  t.strictSame(outcomes.toSorted(), [200, ...Array<number>(9).fill(409)], "one of them gets the coupon");
});

t.test("A statement of a call may run for 3 s, and wait for a lock for 2 s", async (t) => {
  const world = await scenario(t, { http: true });
  const psql = await world.openPsql();
  await psql.run(
    `create table public.seen (statement text, lock text);
     create function public.note_limits() returns trigger language plpgsql security definer as $$
     begin
       insert into public.seen values (current_setting('statement_timeout'), current_setting('lock_timeout'));
       return null;
     end $$;
     create trigger limits after insert on core.request execute function public.note_limits()`,
  );
  await world.a.maker.ok.createBatch("tpl_fixed", 1);
  const [seen] = await psql.rows("select * from public.seen");
  t.strictSame({ ...seen }, { statement: "3s", lock: "2s" });
});

// A start of `serve` behind a proxy: all database connections can vanish silently, as when a firewall forgets them.
async function openBehindProxy(world: Scenario) {
  const proxy = await startProxy(world.address);
  const { logger, log } = createStubLog();
  const limits = defaultLimits;
  const listening = await listen({ host: "127.0.0.1", port: 0, limits }, logger);
  const address = { ...world.address, host: "127.0.0.1", port: proxy.port };
  return { proxy, log, start: () => serve({ address, keys: world.keys, limits, listening, log: logger }) };
}

const severalTurns = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await nextTurn();
};

t.test("A start waits 2 s for a silent database, then serves, and the log says so", async (t) => {
  const { proxy, log, start } = await openBehindProxy(await scenario(t));
  proxy.set({ isStalled: true });
  // After the clock goes on.
  t.teardown(async () => {
    await proxy.stop();
    await (await starting).stop();
  });
  const clock = stopClock(t, { hasTimers: true });
  t.teardown(() => clock.pass(60_000));
  const starting = start();
  let isServing = false;
  void starting.then(() => (isServing = true));
  for (const expected of [
    { isServing: false, said: [] },
    { isServing: true, said: ["the database cannot be checked yet; /readyz tries again"] },
  ]) {
    // The call that asks begins, or gives up, in a few turns of the event loop.
    await severalTurns();
    clock.pass(1_000);
    await severalTurns();
    t.strictSame({ isServing, said: log.map(({ msg }) => msg) }, expected);
  }
});

t.test(
  "Lost connections are replaced within 5 s, three times in a row, and a hanging call gets 503 before its deadline",
  async (t) => {
    const { proxy, log, start } = await openBehindProxy(await scenario(t));
    const { url, stop } = await start();
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
      const replaced = "the database connections hang; opening new ones";
      await waitUntil("new connections", () => log.some(({ msg }) => msg === replaced));
    }
    // heartbeat.test.ts adds up the limits that promise the 5 s. If the machine stalls, the deadline may come first.
    t.ok(countGivenUp() >= 2, String(reasons));
  },
);
