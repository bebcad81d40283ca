// HTTP and database together: promises that need both.
import t from "tap";
import { fits } from "../support/fits.ts";
import { newRequestId, startService } from "../support/service.ts";
import { untilBlocked } from "../support/race.ts";
import { holdCoupon } from "../support/sessions.ts";
import { waitUntil } from "../support/wait-until.ts";
import { sendPlain } from "../support/client.ts";
import { secretOf, tenants } from "../support/tenants.ts";
import { createClient } from "../support/signing-client.ts";
import { connect, openSession } from "../../src/database/connect.ts";

const lockPath = "/v1/coupons/lock";
const redeemPath = "/v1/coupons/redeem";

t.test(
  "A coupon goes through its life over signed HTTP in both variants; no answer or log line contains its code",
  async (t) => {
    const service = await startService(t);
    const a = service.as("ak_a");
    const lives = [
      {
        maker: a,
        pos: a,
        template: "tpl_fixed",
        merchant: "mch_a",
        more: {
          store: " Main ",
          terminal: "till 2",
          redemption_context: { items: [{ sku: "x", quantity: 1, amount: 20 }] },
        },
      },
      {
        maker: service.as("ak_maker"),
        pos: service.as("ak_pos"),
        template: "tpl_b",
        merchant: "mch_b",
        more: { store: "S1", terminal: "T1" },
      },
    ];
    for (const { maker, pos, template, merchant, more } of lives) {
      const { codes, couponIds } = await service.makeBatch(maker, template, 3);
      const [first, second, third] = codes as [string, string, string];
      const lockId = newRequestId();
      const answers = [
        await pos.post("/v1/coupons/query", { coupon: first, merchant }),
        await pos.post(lockPath, { request_id: lockId, coupon: first, merchant, order_amount: 20, ...more }),
        await pos.post("/v1/coupons/confirm", {
          request_id: newRequestId(),
          lock_request_id: lockId,
          coupon: first.toLowerCase(),
          merchant,
        }),
        await pos.post(redeemPath, { request_id: newRequestId(), coupon: second, merchant }),
        await pos.get(`/v1/requests/${lockId}`),
      ];
      const { redemption } = answers[3]!.json;
      answers.push(
        await pos.post("/v1/redemptions/reverse", { request_id: newRequestId(), redemption, reason: "returned" }),
      );
      answers.push(await pos.post("/v1/coupons/void", { request_id: newRequestId(), coupon: third, merchant }));
      for (const answer of answers) {
        t.equal(answer.status, 200, answer.text);
        t.ok(answer.json.ok);
        t.notMatch(answer.text, new RegExp(codes.join("|"), "i"));
      }
      t.equal(answers[0]!.json.coupon.coupon_id, couponIds[0]);
      t.equal(answers[1]!.json.discount_amount, 5);
      for (const code of codes) t.notMatch(JSON.stringify(service.log), new RegExp(code, "i"));
    }
    for (const hidden of ["signature", "nonce", secretOf("ak_a"), "Main"])
      t.notMatch(JSON.stringify(service.log), hidden);
  },
);

t.test("A retry by request_id or by idempotency-key gets the first answer byte for byte", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  const { codes } = await service.makeBatch(a, "tpl_fixed", 2);
  const body = { request_id: newRequestId(), coupon: codes[0], merchant: "mch_a", order_amount: 20 };
  const first = await a.post(redeemPath, body, { idempotencyKey: "key-1" });
  t.equal(first.headers["idempotent-replayed"], undefined);
  const retries = [
    await a.post(redeemPath, body),
    await a.post(redeemPath, { merchant: "mch_a", order_amount: 20.0, coupon: codes[0], request_id: body.request_id }),
    await a.post(redeemPath, { ...body, request_id: newRequestId() }, { idempotencyKey: "key-1" }),
    await service.as("ak_a_second").post(redeemPath, body),
  ];
  for (const retry of retries)
    t.strictSame([retry.status, retry.text, retry.headers["idempotent-replayed"]], [200, first.text, "true"]);
  fits(t, (await a.post(redeemPath, { ...body, order_amount: 21 })).json, { code: "IDEMPOTENCY_KEY_REUSED" });
  fits(t, (await a.post(lockPath, body)).json, { code: "IDEMPOTENCY_KEY_REUSED" });
  t.equal((await service.owner.rows("select from core.redemption")).length, 1);
});

t.test("A request that is refused before it is decided leaves no record, so its ID can be used again", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  const { codes } = await service.makeBatch(a, "tpl_fixed", 1);
  const body = { request_id: newRequestId(), coupon: codes[0], merchant: "mch_a" };
  t.equal((await a.post(redeemPath, { ...body, extra: 1 })).status, 400);
  t.equal((await a.post(redeemPath, { ...body, coupon: "0000000000000000" })).status, 422);
  fits(t, (await a.post(redeemPath, { ...body, order_amount: 1.234 })).json, {
    code: "INVALID_REQUEST",
    details: { issues: [{ path: "order_amount" }] },
  });
  t.equal((await a.get(`/v1/requests/${body.request_id}`)).status, 404);
  t.equal((await a.post(redeemPath, body)).status, 200);
});

t.test("A nonce is accepted once, whatever the outcome of its request, and on any connection", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  const nonce = "0123456789abcdef";
  t.equal((await a.post(lockPath, {}, { nonce })).status, 400);
  fits(t, (await a.get("/v1/batches/bat_x", { nonce })).json, { code: "NONCE_REUSED" });
  t.equal(
    (await service.as("ak_a_second").get("/v1/batches/bat_x", { nonce })).status,
    404,
    "each access key has its own nonces",
  );
  const together = await Promise.all(
    Array.from({ length: 20 }, () => a.get("/v1/batches/bat_x", { nonce: "fedcba9876543210" })),
  );
  t.strictSame(together.map(({ status }) => status).toSorted(), [...Array<number>(19).fill(401), 404].toSorted());
});

t.test(
  "A changed secret works at once; a revoked credential gets the same answer as an unknown one at once",
  async (t) => {
    const service = await startService(t);
    const a = service.as("ak_a");
    t.equal((await a.get("/v1/batches/bat_x")).status, 404);
    const changed = structuredClone(tenants.slice(0, 1));
    changed[0]!.credentials[1]!.secret = "another secret of forty characters ......";
    await service.apply({ tenants: changed });
    const second = createClient({
      url: service.url,
      accessKey: "ak_a_second",
      secret: "another secret of forty characters ......",
    });
    t.equal((await second.get("/v1/batches/bat_x")).status, 404);
    t.equal((await service.as("ak_a_second").get("/v1/batches/bat_x")).status, 401);

    await service.owner.rows("update core.credential set revoked_at = now() where access_key = $1", ["ak_a"]);
    const body = { request_id: "r-1", template: "tpl_fixed", total_count: 1 };
    const revoked = await a.post("/v1/batches", body);
    const unknown = await sendPlain(
      service.url,
      "POST",
      "/v1/batches",
      { "content-type": "application/json" },
      JSON.stringify(body),
    );
    t.strictSame([revoked.status, revoked.text], [401, unknown.text]);
  },
);

t.test("A call that waits for a locked row delays no other coupon, and ends in time", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  const { codes, couponIds } = await service.makeBatch(a, "tpl_fixed", 2);
  const lock = (coupon: string, request_id: string) => a.post(lockPath, { request_id, coupon, merchant: "mch_a" });
  const ids = Array.from({ length: 10 }, newRequestId);
  const release = await holdCoupon(service, couponIds[0]!);
  let ended = 0;
  const waiting = Promise.all(ids.map((id) => lock(codes[0]!, id).finally(() => (ended += 1))));
  await untilBlocked(service, 1);
  const other = await lock(codes[1]!, newRequestId());
  t.equal(other.status, 200);
  t.equal(ended, 0, "another coupon is not delayed");
  // While the row is still locked: the answers wait for their deadlines, not for the row.
  for (const { status, json, headers } of await waiting)
    fits(t, [status, json.code, headers["retry-after"]], [503, "UNAVAILABLE", "1"]);
  await release();
  // A 503 may come while the statement still waits, so its outcome is unknown until a retry with the same request_id.
  const outcomes: number[] = [];
  for (const id of ids) outcomes.push((await lock(codes[0]!, id)).status);
  t.strictSame(outcomes.toSorted(), [200, ...Array<number>(9).fill(409)], "one of them gets the coupon");
});

t.test("A statement of a call may run for 3 s, and wait for a lock for 2 s", async (t) => {
  const service = await startService(t);
  const psql = openSession(service.address, { name: "psql" });
  t.teardown(() => psql.end());
  await psql.run(
    `create table public.seen (statement text, lock text);
     create function public.note_limits() returns trigger language plpgsql security definer as $$
     begin
       insert into public.seen values (current_setting('statement_timeout'), current_setting('lock_timeout'));
       return null;
     end $$;
     create trigger limits after insert on core.request execute function public.note_limits()`,
  );
  await service.makeBatch(service.as("ak_a"), "tpl_fixed", 1, { isReleased: false });
  const [seen] = await psql.rows("select * from public.seen");
  t.strictSame({ ...seen }, { statement: "3s", lock: "2s" });
});

t.test("Without its database the service answers 503 in time, and it recovers when the database is back", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  t.equal((await sendPlain(service.url, "GET", "/readyz")).status, 200);
  t.equal((await a.get("/v1/batches/bat_x")).status, 404);
  // No role of ours may end connections, so this session keeps the role of its login.
  const login = connect(service.address, { name: "coupon test", max: 1 });
  t.teardown(() => login.end());
  const kill = `
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name = 'coupon serve'`;
  const calls = Array.from({ length: 40 }, () => a.get("/v1/batches/bat_x"));
  t.ok((await login.rows(kill)).length > 0);
  const results = await Promise.all(calls);
  t.ok(results.every(({ status }) => [404, 503].includes(status)));
  // Idle connections may notice the loss only now.
  const answers = async () => (await a.get("/v1/batches/bat_x")).status === 404;
  await waitUntil("the database to be back", answers, { withinMs: 20_000 });
});
