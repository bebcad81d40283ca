// Somebody with psql on the same rows at the same moment: patches take turns with the tills, and rows written by
// hand are held to the same laws.
import t from "tap";
import { openSession } from "../../../src/database/connect.ts";
import type { Client } from "../../support/client.ts";
import { findBrokenInvariants, readCouponHistory } from "../../support/inspect.ts";
import { untilBlocked } from "../../support/race.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { beginRequest } from "../../support/sessions.ts";

const merchant = "mch_a";
let service: Running;
let a: Client;
t.before(async () => {
  service = await startService(t);
  a = service.as("ak_a");
});

async function makeCoupon(): Promise<{ code: string; id: string }> {
  const { codes, couponIds } = await service.makeBatch(a, "tpl_fixed", 1);
  return { code: codes[0]!, id: couponIds[0]! };
}
const lock = (coupon: string, request_id: string) => a.post("/v1/coupons/lock", { request_id, coupon, merchant });
const confirm = (coupon: string, lock_request_id: string) =>
  a.post("/v1/coupons/confirm", { request_id: newRequestId(), lock_request_id, coupon, merchant });
const redeem = (coupon: string) => a.post("/v1/coupons/redeem", { request_id: newRequestId(), coupon, merchant });
const openPsql = (role: string) => openSession(service.address, { name: "coupon test", role });

// A patch in a transaction that has not ended yet.
async function patch(call: string, couponId: string): Promise<() => Promise<void>> {
  const psql = openPsql("coupon_admin");
  await psql.run("begin");
  await psql.rows(`select admin.${call}`, [couponId]);
  return async () => {
    await psql.run("commit");
    await psql.end();
  };
}

t.test("a till that meets a patch waits for it, and is told what it finds then", async (t) => {
  const meetings: [string, (code: string, lockId: string) => ReturnType<typeof redeem>, string, string[]][] = [
    ["void_coupon('ten_a', $1, 'lost')", redeem, "COUPON_VOIDED", []],
    ["extend_coupon('ten_a', $1, '2021-01-01', 'recalled')", redeem, "COUPON_EXPIRED", []],
    ["release_lock('ten_a', $1, 'till broke down')", confirm, "LOCK_CANCELLED", ["CANCELLED"]],
  ];
  for (const [call, act, code, redemptions] of meetings) {
    const coupon = await makeCoupon();
    const lockId = newRequestId();
    if (act === confirm) await lock(coupon.code, lockId);
    const commit = await patch(call, coupon.id);
    const answer = act(coupon.code, lockId);
    await untilBlocked(service, 1).finally(commit);
    t.match(await answer, { status: 409, json: { code } });
    t.match(await readCouponHistory(service.owner, coupon.id), { redemptions, amounts: [] });
  }
  t.strictSame(await findBrokenInvariants(service.owner), []);
});

t.test("a patch that meets a till waits for it, and is refused when there is nothing left to patch", async (t) => {
  const { code, id } = await makeCoupon();
  const end = await beginRequest(service, "ak_a", "redeem", { request_id: newRequestId(), coupon: code, merchant });
  const patches = [
    "void_coupon('ten_a', $1, 'lost')",
    "extend_coupon('ten_a', $1, '2098-01-01', 'asked for')",
    "release_lock('ten_a', $1, 'asked for')",
  ];
  const attempts = patches.map((call) =>
    t.rejects(service.admin.rows(`select admin.${call}`, [id]), { code: "CP409" }),
  );
  await untilBlocked(service, patches.length).finally(() => end("commit"));
  await Promise.all(attempts);
  t.match(await readCouponHistory(service.owner, id), {
    status: "REDEEMED",
    redemptions: ["REDEEMED"],
    amounts: [500],
    events: [{ type: "coupon.redeemed" }],
  });
  t.strictSame(await findBrokenInvariants(service.owner), []);
});

t.test("of two psql sessions that give one coupon a live lock by hand, the second is refused", async (t) => {
  const { code, id } = await makeCoupon();
  // A cancelled one to copy from.
  const lockId = newRequestId();
  await lock(code, lockId);
  await a.post("/v1/coupons/cancel", { request_id: newRequestId(), lock_request_id: lockId, coupon: code });
  const [coupon] = await service.owner.rows<{ key: string }>("select rules.parse_id('cpn', $1)::text as key", [id]);
  const lockByHand = `
    with locked as (
      insert into core.redemption
      select (jsonb_populate_record(r, jsonb_build_object('redemption_id', rules.make_id(), 'status', 'LOCKED', 'ended_at', null))).*
      from core.redemption r where r.coupon_id = '${coupon!.key}' and r.status = 'CANCELLED')
    update core.coupon set status = 'LOCKED' where coupon_id = '${coupon!.key}'`;
  const [first, second] = [openPsql("coupon_owner"), openPsql("coupon_owner")];
  await first.run(`begin; ${lockByHand}`);
  const attempt = second.run(`begin; ${lockByHand}; commit`).then(
    () => "committed",
    (error: { constraint_name: string }) => error.constraint_name,
  );
  await untilBlocked(service, 1).finally(() => first.run("commit"));
  t.equal(await attempt, "coupon_has_one_live_redemption");
  await Promise.all([first.end(), second.end()]);
  t.match(await readCouponHistory(service.owner, id), { status: "LOCKED", redemptions: ["CANCELLED", "LOCKED"] });
});

t.test("a live redemption written by hand holds its coupon, also where the coupon is REDEEMED already", async (t) => {
  const { code, id } = await makeCoupon();
  const redeemed = await redeem(code);
  await a.post("/v1/redemptions/reverse", { request_id: newRequestId(), redemption: redeemed.json.redemption });
  const [coupon] = await service.owner.rows<{ key: string }>("select rules.parse_id('cpn', $1)::text as key", [id]);
  const redeemByHand = `
    with written as (
      insert into core.redemption
      select (jsonb_populate_record(r, jsonb_build_object('redemption_id', rules.make_id(), 'status', 'REDEEMED', 'ended_at', null))).*
      from core.redemption r where r.coupon_id = '${coupon!.key}' returning *),
    concerned as (
      select w.*, b.distributor_id from written w join core.coupon c using (tenant_id, coupon_id) join core.batch b using (tenant_id, batch_id)),
    told as (
      insert into core.event (tenant_id, event_id, event_type, party_id, coupon_id, occurred_at, recorded_at)
      select tenant_id, redemption_id, 'coupon.redeemed', distributor_id, coupon_id, now(), now() from concerned)
    insert into core.ledger_entry (tenant_id, entry_id, entry_type, distributor_id, amount_minor, currency, recorded_at)
    select tenant_id, redemption_id, 'REDEMPTION', distributor_id, discount_minor, currency, now() from concerned`;
  const [first, second] = [openPsql("coupon_owner"), openPsql("coupon_owner")];
  await first.run(`begin; ${redeemByHand}`);
  const attempt = second.run(`update core.coupon set status = 'ISSUED' where coupon_id = '${coupon!.key}'`).then(
    () => "done",
    (error: { constraint_name: string }) => error.constraint_name,
  );
  await untilBlocked(service, 1).finally(() => first.run("commit"));
  t.equal(await attempt, "coupon_agrees_with_its_redemptions");
  await Promise.all([first.end(), second.end()]);
  t.match(await readCouponHistory(service.owner, id), { status: "REDEEMED", redemptions: ["REVERSED", "REDEEMED"] });
  t.strictSame(await findBrokenInvariants(service.owner), []);
});

t.test("what is fixed in use waits for a first use that is under way", async (t) => {
  await service.apply({
    tenants: [
      {
        id: "ten_a",
        name: "A",
        variant: "A",
        templates: [
          {
            id: "tpl_new",
            name: "new",
            maker: "pty_a",
            currency: "EUR",
            discount: { type: "fixed", amount: 5 },
            valid_from: "2020-01-01T00:00:00Z",
            valid_to: "2099-01-01T00:00:00Z",
          },
        ],
      },
      { id: "ten_new", name: "new", variant: "A" },
    ],
  });
  const uses: [string, string, string][] = [
    [
      "template_with_batches_keeps_its_terms",
      "update core.template set discount_minor = 9900 where external_id = 'tpl_new'",
      `insert into core.batch (tenant_id, external_id, template_id, maker_id, distributor_id, total_count, valid_from, valid_to, key_version, salt, caller_id, request_id, body_hash, created_at)
       select tenant_id, 'bat_new', template_id, maker_id, maker_id, 1, valid_from, valid_to, '1', 'salt', 0, 'new', 'hash', now() from core.template where external_id = 'tpl_new'`,
    ],
    [
      "variant_and_unit_are_fixed_in_use",
      "update core.tenant set amount_unit = 'minor' where external_id = 'ten_new'",
      "insert into core.credential (tenant_id, access_key, sealed_secret, secret_hash) select tenant_id, 'ak_new', 'sealed', 'hash' from core.tenant where external_id = 'ten_new'",
    ],
  ];
  for (const [by, change, use] of uses) {
    const [first, second] = [openPsql("coupon_owner"), openPsql("coupon_owner")];
    await first.run(`begin; ${use}`);
    const attempt = second.run(change).then(
      () => "done",
      (error: { constraint_name: string }) => error.constraint_name,
    );
    await untilBlocked(service, 1).finally(() => first.run("commit"));
    t.equal(await attempt, by);
    await Promise.all([first.end(), second.end()]);
  }
});
