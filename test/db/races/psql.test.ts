// psql sessions and calls on the same rows at the same time: patches and calls wait for each other, and rows that are
// inserted in psql obey the same rules.
import t from "tap";
import { openSession } from "../../../src/database/connect.ts";
import { untilLocksExpire } from "../../support/arrange.ts";
import { sendPatiently, type Reply } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import { readCouponHistory } from "../../support/inspect.ts";
import { passWhileWaiting, untilBlocked } from "../../support/race.ts";
import { allAgree, merchant, startRaceFixture, type RaceFixture } from "../../support/race-fixture.ts";
import { newRequestId } from "../../support/service.ts";
import { beginRequest } from "../../support/sessions.ts";

let fixture: RaceFixture;
t.before(async () => {
  fixture = await startRaceFixture(t);
});

const openPsql = (role: string) => openSession(fixture.service.address, { name: "coupon test", role });

// A patch in an open transaction. Returns its commit.
async function patch(call: string, couponId: string): Promise<() => Promise<void>> {
  const psql = openPsql("coupon_admin");
  await psql.run("begin");
  await psql.rows(`select admin.${call}`, [couponId]);
  return async () => {
    await psql.run("commit");
    await psql.end();
  };
}

t.test("A call waits for a patch of the same coupon, and sees its effect", async (t) => {
  type Act = (code: string, lockId: string) => Promise<Reply>;
  const { redeem, confirm } = fixture;
  const meetings: [string, Act, string, string[]][] = [
    ["void_coupon('ten_a', $1, 'lost')", redeem, "COUPON_VOIDED", []],
    ["extend_coupon('ten_a', $1, '2021-01-01', 'recalled')", redeem, "COUPON_EXPIRED", []],
    ["release_lock('ten_a', $1, 'till broke down')", confirm, "LOCK_CANCELLED", ["CANCELLED"]],
  ];
  for (const [call, act, code, redemptions] of meetings) {
    const coupon = await fixture.makeCoupon();
    const lockId = newRequestId();
    if (act === confirm) await fixture.lock(coupon.code, lockId);
    const commit = await patch(call, coupon.id);
    const answer = sendPatiently(() => act(coupon.code, lockId));
    await untilBlocked(fixture.service, 1).finally(commit);
    fits(t, await answer, { status: 409, json: { code } });
    fits(t, await readCouponHistory(fixture.service.owner, coupon.id), { redemptions, amounts: [] });
  }
  await allAgree(t, fixture);
});

t.test("An expired lock stays if a psql session extends it while a call waits for its row", async (t) => {
  await fixture.provision("tpl_short", { lock_ttl_seconds: 1 });
  const { code, id } = await fixture.makeCoupon("tpl_short");
  await fixture.lock(code, newRequestId());
  await untilLocksExpire(fixture.service);
  const ofLock = "where coupon_id = rules.parse_id('cpn', $1) and status = 'LOCKED'";
  const extension = {
    hold: `select from core.redemption ${ofLock} for update`,
    change: `update core.redemption set lock_expires_at = clock_timestamp() + interval '1 hour' ${ofLock}`,
    isFixed: true,
  };
  const { answer } = await passWhileWaiting(fixture.service, extension, id, () => fixture.redeem(code));
  fits(t, answer, { status: 409, json: { code: "COUPON_LOCKED" } });
  fits(t, await readCouponHistory(fixture.service.owner, id), { status: "LOCKED", redemptions: ["LOCKED"] });
  await allAgree(t, fixture);
});

t.test("A patch waits for a call on the same coupon, and is refused when the coupon was redeemed", async (t) => {
  const { code, id } = await fixture.makeCoupon();
  const end = await beginRequest(fixture.service, "ak_a", "redeem", {
    request_id: newRequestId(),
    coupon: code,
    merchant,
  });
  const patches = [
    "void_coupon('ten_a', $1, 'lost')",
    "extend_coupon('ten_a', $1, '2098-01-01', 'asked for')",
    "release_lock('ten_a', $1, 'asked for')",
  ];
  const attempts = patches.map((call) =>
    t.rejects(fixture.service.admin.rows(`select admin.${call}`, [id]), { code: "CP409" }),
  );
  await untilBlocked(fixture.service, patches.length).finally(() => end("commit"));
  await Promise.all(attempts);
  fits(t, await readCouponHistory(fixture.service.owner, id), {
    status: "REDEEMED",
    redemptions: ["REDEEMED"],
    amounts: [500],
    events: [{ type: "coupon.redeemed" }],
  });
  await allAgree(t, fixture);
});

t.test("Of two psql sessions that insert a live lock of one coupon, the second is refused", async (t) => {
  const { code, id } = await fixture.makeCoupon();
  // A cancelled lock to copy.
  const lockId = newRequestId();
  await fixture.lock(code, lockId);
  await fixture.cancel(code, lockId);
  const [coupon] = await fixture.service.owner.rows<{ key: string }>("select rules.parse_id('cpn', $1)::text as key", [
    id,
  ]);
  const lockByHand = `
    with locked as (
      insert into core.redemption
      select (jsonb_populate_record(r, jsonb_build_object(
        'redemption_id', rules.make_id(), 'status', 'LOCKED', 'ended_at', null))).*
      from core.redemption r where r.coupon_id = '${coupon!.key}' and r.status = 'CANCELLED')
    update core.coupon set status = 'LOCKED' where coupon_id = '${coupon!.key}'`;
  const [first, second] = [openPsql("coupon_owner"), openPsql("coupon_owner")];
  await first.run(`begin; ${lockByHand}`);
  const attempt = second.run(`begin; ${lockByHand}; commit`).then(
    () => "committed",
    (error: { constraint_name: string }) => error.constraint_name,
  );
  await untilBlocked(fixture.service, 1).finally(() => first.run("commit"));
  t.equal(await attempt, "coupon_has_one_live_redemption");
  await Promise.all([first.end(), second.end()]);
  fits(t, await readCouponHistory(fixture.service.owner, id), {
    status: "LOCKED",
    redemptions: ["CANCELLED", "LOCKED"],
  });
});

t.test("A redemption inserted in psql locks its coupon, even if the coupon is REDEEMED already", async (t) => {
  const { code, id } = await fixture.makeCoupon();
  const redeemed = await fixture.redeem(code);
  await fixture.reverse(redeemed.json.redemption);
  const [coupon] = await fixture.service.owner.rows<{ key: string }>("select rules.parse_id('cpn', $1)::text as key", [
    id,
  ]);
  const redeemByHand = `
    with written as (
      insert into core.redemption
      select (jsonb_populate_record(r, jsonb_build_object(
        'redemption_id', rules.make_id(), 'status', 'REDEEMED', 'ended_at', null))).*
      from core.redemption r where r.coupon_id = '${coupon!.key}' returning *),
    concerned as (
      select w.*, b.distributor_id from written w
      join core.coupon c using (tenant_id, coupon_id) join core.batch b using (tenant_id, batch_id))
    insert into core.ledger_entry
      (tenant_id, entry_id, entry_type, distributor_id, coupon_id, amount_minor, currency, occurred_at, recorded_at)
    select tenant_id, redemption_id, 'REDEMPTION', distributor_id, coupon_id, discount_minor, currency, redeemed_at,
           now()
    from concerned`;
  const [first, second] = [openPsql("coupon_owner"), openPsql("coupon_owner")];
  await first.run(`begin; ${redeemByHand}`);
  const attempt = second.run(`update core.coupon set status = 'ISSUED' where coupon_id = '${coupon!.key}'`).then(
    () => "done",
    (error: { constraint_name: string }) => error.constraint_name,
  );
  await untilBlocked(fixture.service, 1).finally(() => first.run("commit"));
  t.equal(await attempt, "coupon_transition_is_legal");
  await Promise.all([first.end(), second.end()]);
  fits(t, await readCouponHistory(fixture.service.owner, id), {
    status: "REDEEMED",
    redemptions: ["REVERSED", "REDEEMED"],
  });
  await allAgree(t, fixture);
});

t.test("A coupon that its template reissues is not REDEEMED without a redemption", async (t) => {
  await fixture.provision("tpl_again", { after_reversal: "reissued" });
  const { code, id } = await fixture.makeCoupon("tpl_again");
  const redeemed = await fixture.redeem(code);
  await fixture.reverse(redeemed.json.redemption);
  const psql = openPsql("coupon_owner");
  const use = `update core.coupon set status = 'REDEEMED' where coupon_id = rules.parse_id('cpn', '${id}')`;
  const refused = await psql.run(use).catch((error: unknown) => error);
  fits(t, refused, { constraint_name: "coupon_agrees_with_its_redemptions" });
  const superuser = openSession(fixture.service.address, { name: "coupon test" });
  await superuser.run(`begin; set local session_replication_role = replica; ${use}`);
  t.strictSame(
    [...(await superuser.rows("select law, subject from report.invariants"))],
    [{ law: "coupon status matches redemptions", subject: id }],
  );
  await superuser.run("rollback");
  await Promise.all([psql.end(), superuser.end()]);
});

t.test("A change of terms that are fixed in use waits for a first use in progress", async (t) => {
  await fixture.provision("tpl_new", {});
  await fixture.service.apply({ tenants: [{ id: "ten_new", name: "new", variant: "A" }] });
  const uses: [string, string, string][] = [
    [
      "template_with_batches_keeps_its_terms",
      "update core.template set discount_minor = 9900 where external_id = 'tpl_new'",
      `insert into core.batch
         (tenant_id, external_id, template_id, maker_id, distributor_id, total_count, valid_from, valid_to,
          key_version, salt, caller_id, request_id, body_hash, created_at)
       select tenant_id, 'bat_new', template_id, maker_id, maker_id, 1, valid_from, valid_to,
              '1', 'salt', 0, 'new', 'hash', now()
       from core.template where external_id = 'tpl_new'`,
    ],
    [
      "variant_and_unit_are_fixed_in_use",
      "update core.tenant set amount_unit = 'minor' where external_id = 'ten_new'",
      `insert into core.credential (tenant_id, access_key, sealed_secret, secret_hash)
       select tenant_id, 'ak_new', 'sealed', 'hash' from core.tenant where external_id = 'ten_new'`,
    ],
  ];
  for (const [by, change, use] of uses) {
    const [first, second] = [openPsql("coupon_owner"), openPsql("coupon_owner")];
    await first.run(`begin; ${use}`);
    const attempt = second.run(change).then(
      () => "done",
      (error: { constraint_name: string }) => error.constraint_name,
    );
    await untilBlocked(fixture.service, 1).finally(() => first.run("commit"));
    t.equal(await attempt, by);
    await Promise.all([first.end(), second.end()]);
  }
});
