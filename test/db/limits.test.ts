// The limits that the database keeps, one step inside and one step outside, whoever calls it.
import { randomUUID } from "node:crypto";
import t from "tap";
import { ApplyError } from "../../src/commands/apply.ts";
import { lookupHash } from "../../src/crypto/coupon-code.ts";
import { openSession, sqlState } from "../../src/database/connect.ts";
import { startService, type Running } from "../support/service.ts";
import { template } from "../support/tenants.ts";
import { openTill } from "../support/writers.ts";

let service: Running;
t.before(async () => {
  service = await startService(t);
});

const provision = (id: string, more: object) =>
  service.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", templates: [template(id, "pty_a", more)] }] });

t.test("A nonce is refused for 11 minutes, and accepted afterwards", async (t) => {
  const a = service.as("ak_a");
  const useAfter = async (age: string) => {
    const nonce = randomUUID();
    t.equal((await a.get("/v1/batches/bat_none", { nonce })).json.code, "NOT_FOUND");
    await service.owner.rows(
      "update core.nonce set seen_at = clock_timestamp() - $2::text::interval where nonce = $1",
      [nonce, age],
    );
    return (await a.get("/v1/batches/bat_none", { nonce })).json.code as string;
  };
  t.equal(await useAfter("0"), "NONCE_REUSED");
  t.equal(await useAfter("10 minutes 1 second"), "NONCE_REUSED");
  t.equal(await useAfter("11 minutes 1 millisecond"), "NOT_FOUND");
});

t.test("In a group, each access key has its own nonces, and uses each once", async (t) => {
  const [found] = await service.owner.rows<{ tenant_id: number; keys: number[] }>(
    `select tenant_id, array_agg(credential_id order by access_key) as keys
     from core.credential where access_key in ('ak_a', 'ak_a_second') group by tenant_id`,
  );
  const { tenant_id, keys } = found!;
  const nonce = randomUUID();
  const use = async (...credentials: number[]): Promise<(string | null)[]> => {
    const calls = credentials.map((credential_id) => ({
      credential_id,
      nonce,
      operation: "spend_nonce",
      request_id: "none",
      idempotency_key: null,
      body_hash: null,
      args: {},
    }));
    const answers = await service.owner.rows<{ code: string | null }>(
      "select code from gate.perform($1, $2::text::jsonb, false) order by ordinal",
      [tenant_id, JSON.stringify(calls)],
    );
    return answers.map(({ code }) => code);
  };
  const [first, second] = keys as [number, number];
  t.strictSame(await use(first, second, first), [null, null, "NONCE_REUSED"]);

  await service.owner.rows(
    "update core.nonce set seen_at = clock_timestamp() - interval '12 minutes' where nonce = $1",
    [nonce],
  );
  t.strictSame(await use(first, first), [null, "NONCE_REUSED"], "an old one can be used again, once");
  const isRecent = "nonce = $1 and seen_at > clock_timestamp() - interval '11 minutes'";
  const renewed = await service.owner.rows<{ credential_id: number }>(
    `select credential_id from core.nonce where ${isRecent}`,
    [nonce],
  );
  t.strictSame(
    renewed.map(({ credential_id }) => credential_id),
    [first],
    "that of the other key stays old",
  );
});

t.test("A lock lasts 900 s, or 1 to 604,800 s if its template says so", async (t) => {
  const secondsOf = async (id: string) => {
    const { codes } = await service.makeBatch(service.as("ak_a"), id, 1);
    await service
      .as("ak_a")
      .post("/v1/coupons/lock", { request_id: randomUUID(), coupon: codes[0], merchant: "mch_a" });
    const [lock] = await service.owner.rows<{ seconds: number }>(
      `select extract(epoch from lock_expires_at - started_at)::int as seconds
       from core.redemption
       where coupon_id = (select coupon_id from core.coupon where lookup_hash = $1)`,
      [lookupHash(service.keys, codes[0]!)],
    );
    return lock!.seconds;
  };
  await provision("tpl_usual", {});
  t.equal(await secondsOf("tpl_usual"), 900);
  for (const lock_ttl_seconds of [1, 604_800]) {
    await provision("tpl_ttl", { lock_ttl_seconds });
    t.equal(await secondsOf("tpl_ttl"), lock_ttl_seconds);
  }
  for (const lock_ttl_seconds of [0, 604_801]) {
    const refusal = await provision("tpl_ttl", { lock_ttl_seconds }).catch((error: unknown) => error);
    t.ok(refusal instanceof ApplyError, `${lock_ttl_seconds}`);
    const update = service.owner.rows("update core.template set lock_ttl_seconds = $1 where external_id = 'tpl_ttl'", [
      lock_ttl_seconds,
    ]);
    t.equal(await update.catch(sqlState), "23514", "in psql too");
  }
});

t.test("An amount is 0 or more and below 10^12, whatever the HTTP layer lets through", async (t) => {
  const { codes } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 6);
  const till = await openTill(service);
  const amounts: [string, number][] = [
    ["0", 200],
    ["999999999999.99", 200],
    ["1000000000000", 400],
    ["-0.01", 400],
    ['"NaN"', 400],
    ['"Infinity"', 400],
  ];
  for (const [amount, status] of amounts) {
    const args = {
      coupon: lookupHash(service.keys, codes.pop()!),
      merchant: "mch_a",
      order_amount: JSON.parse(amount),
    };
    const [answer] = await till.send([{ operation: "lock", args }], true);
    t.equal(answer!.http_status, status, amount);
  }
  await till.session.end();
});

t.test("The longest texts of a redemption and its reversal are stored, and no longer ones", async (t) => {
  const { codes } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 8);
  const till = await openTill(service);
  t.teardown(() => till.session.end());
  const coupon = () => ({ coupon: lookupHash(service.keys, codes.pop()!), merchant: "mch_a", order_amount: 10 });
  const perform = (operation: string, args: object) =>
    till.send([{ operation, args }], true).then(([answer]) => answer!.http_status, sqlState);
  for (const [field, longest] of Object.entries({ store: 64, terminal: 64, order_id: 128 })) {
    const lock = (length: number) => perform("lock", { ...coupon(), [field]: "x".repeat(length) });
    t.strictSame([await lock(longest), await lock(longest + 1)], [200, "23514"], field);
  }
  const redeemed = { request_id: randomUUID(), coupon: codes.pop(), merchant: "mch_a", order_amount: 10 };
  const { redemption } = (await service.as("ak_a").post("/v1/coupons/redeem", redeemed)).json;
  const reverse = (length: number) => perform("reverse", { redemption, reason: "x".repeat(length) });
  t.strictSame([await reverse(501), await reverse(500)], ["23514", 200], "reason");
});

t.test("A batch in psql has 1 to 10,000,000 coupons too", async (t) => {
  const { id } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 1, { isReleased: false });
  const psql = openSession(service.address, { name: "psql", role: "coupon_owner" });
  t.teardown(() => psql.end());
  const copy = async (count: number) => {
    await psql.run("begin");
    const outcome = await psql
      .rows(
        `with copied as (
           insert into core.batch (tenant_id, external_id, template_id, maker_id, distributor_id, total_count,
             valid_from, valid_to, key_version, salt, caller_id, request_id, body_hash, created_at)
           select tenant_id, 'bat_' || $2::int, template_id, maker_id, distributor_id, $2::int, valid_from, valid_to,
             key_version, salt, caller_id, 'copy ' || $2::int, body_hash, clock_timestamp()
           from core.batch where external_id = $1
           returning 1)
         select count(*)::int from copied`,
        [id, count],
      )
      .then(() => "accepted", sqlState);
    await psql.run("rollback");
    return outcome;
  };
  t.strictSame(
    [await copy(0), await copy(1), await copy(10_000_000), await copy(10_000_001)],
    ["23514", "accepted", "accepted", "23514"],
  );
});

t.test("One call of void_batch voids 10,000 coupons", async (t) => {
  const { id } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 10_001);
  const voidBatch = async () =>
    (await service.admin.rows<{ count: number }>("select admin.void_batch('ten_a', $1, 'recalled') as count", [id]))[0]!
      .count;
  t.strictSame([await voidBatch(), await voidBatch(), await voidBatch()], [10_000, 1, 0]);
});
