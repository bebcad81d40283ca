// psql sessions and jobs at work on the rows of calls at the same time: patches and calls wait for each other, jobs
// wait for nobody, and rows that are inserted in psql obey the same rules.
import t from "tap";
import { connect } from "../../../src/database/connect.ts";
import type { Coupon } from "../../support/caller.ts";
import { fits } from "../../support/fits.ts";
import { readCouponHistory } from "../../support/inspect.ts";
import { passWhileWaiting, untilBlocked } from "../../support/race.ts";
import { newRequestId } from "../../support/request-id.ts";
import { scenario } from "../../support/scenario.ts";
import { beginRequest, holdCoupon } from "../../support/sessions.ts";
import { waitUntil } from "../../support/wait-until.ts";
import type { State } from "../api/states.ts";

const world = await scenario(t);
const [first, second] = [await world.openPsql(), await world.openPsql()];
// A test that fails lets go of its rows.
t.afterEach(() => Promise.all([first.run("rollback"), second.run("rollback")]));
// A job must not wait for a row that a test holds: with this timeout it fails, and the test with it.
const worker = connect(world.address, { name: "coupon test", role: "coupon_worker", max: 1, lockTimeoutMs: 1_500 });
t.teardown(() => worker.end());

const makeCoupon = async (state?: State) => (await world.a.makeCoupons(1, state))[0]!;
const readHistory = ({ id }: Coupon) => readCouponHistory(world.owner, id);
const typesOf = async (coupon: Coupon) => (await readHistory(coupon)).events.map(({ type }) => type);
const ofCoupon = ({ id }: Coupon) => `where coupon_id = rules.parse_id('cpn', '${id}')`;
const constraintOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => "done",
    (error: { constraint_name: string }) => error.constraint_name,
  );

/** The first session does something in a transaction, which commits once the second session waits. */
async function meet(one: string, other: string): Promise<string> {
  await first.run(`begin; ${one}`);
  const attempt = constraintOf(second.run(other));
  await untilBlocked(world, 1).finally(() => first.run("commit"));
  return attempt;
}

t.test("An expired lock stays if a psql session extends it while a call waits for its row", async (t) => {
  const coupon = await makeCoupon("ISSUED, its lock lapsed");
  const ofLock = `${ofCoupon(coupon)} and status = 'LOCKED' and $1::text is not null`;
  const extension = {
    hold: `select from core.redemption ${ofLock} for update`,
    change: `update core.redemption set lock_expires_at = clock_timestamp() + interval '1 hour' ${ofLock}`,
    isFixed: true,
  };
  const { answer } = await passWhileWaiting(world, extension, "", () => world.a.till.redeem(coupon));
  fits(t, answer, { status: 409, json: { code: "COUPON_LOCKED" } });
  fits(t, await readHistory(coupon), { status: "LOCKED", redemptions: ["LOCKED"] });
});

t.test("A patch waits for a call on the same coupon, and is refused when the coupon was redeemed", async (t) => {
  const coupon = await makeCoupon();
  const body = { request_id: newRequestId(), coupon: coupon.code, merchant: "mch_a" };
  const end = await beginRequest(world, "ak_a", "redeem", body);
  const patches = [
    "void_coupon('ten_a', $1, 'lost')",
    "extend_coupon('ten_a', $1, '2098-01-01', 'asked for')",
    "release_lock('ten_a', $1, 'asked for')",
  ];
  const attempts = patches.map((patch) =>
    t.rejects(world.admin.rows(`select admin.${patch}`, [coupon.id]), { code: "CP409" }),
  );
  await untilBlocked(world, patches.length).finally(() => end("commit"));
  await Promise.all(attempts);
  fits(t, await readHistory(coupon), {
    status: "REDEEMED",
    redemptions: ["REDEEMED"],
    amounts: [500],
    events: [{ type: "coupon.redeemed" }],
  });
});

t.test("Jobs pass by the rows that another session holds, and take them later", async (t) => {
  const expire = async () => (await worker.rows<{ done: number }>("select jobs.expire_coupons(100) as done"))[0]!.done;
  const lapse = async () => (await worker.rows<{ done: number }>("select jobs.lapse_locks(100) as done"))[0]!.done;
  await waitUntil("earlier coupons to expire", async () => (await expire()) === 0, { everyMs: 0 });
  const [held, free] = (await world.a.makeCoupons(2, "ISSUED, its lock lapsed")) as [Coupon, Coupon];
  const release = await holdCoupon(world, held.id);
  t.equal(await lapse(), 1, "only the lock that no session holds");
  fits(t, await readHistory(held), { status: "LOCKED", redemptions: ["LOCKED"] });
  fits(t, await readHistory(free), { status: "ISSUED", redemptions: ["LAPSED"] });
  await release();
  t.equal(await lapse(), 1);

  const make = () => world.makeBatch(world.a.maker, "tpl_fixed", 2, { isOver: true });
  const [heldBatch, freeBatch] = [await make(), await make()];
  await first.run("begin");
  await first.rows("select from core.batch where external_id = $1 for update", [heldBatch.id]);
  t.strictSame([await expire(), await expire()], [2, 0]);
  t.strictSame(await Promise.all(heldBatch.coupons.map(typesOf)), [[], []]);
  t.strictSame(await Promise.all(freeBatch.coupons.map(typesOf)), [["coupon.expired"], ["coupon.expired"]]);
  await first.run("commit");
  t.equal(await expire(), 2);
});

t.test("A coupon that is extended while the expiry job runs does not expire", async (t) => {
  // More coupons than the job takes in its first step.
  const coupons = await world.a.makeCoupons(14);
  const extend = (index: number, validTo: string) =>
    world.admin.rows("select admin.extend_coupon('ten_a', $1, $2, 'asked for')", [coupons.at(index)!.id, validTo]);
  for (const index of coupons.keys()) await extend(index, new Date(Date.UTC(2021, 0, 1, 0, 0, index)).toISOString());
  // The job blocks when it writes its first event.
  await first.run("begin; lock table core.event in share mode");
  const done = world.worker.rows("select jobs.expire_coupons(100)");
  await untilBlocked(world, 1)
    .then(() => extend(-1, "2098-01-01T00:00:00Z"))
    .finally(() => first.run("commit"));
  await done;
  fits(t, await readHistory(coupons[0]!), { status: "EXPIRED" });
  fits(t, await readHistory(coupons.at(-1)!), { status: "ISSUED", events: [] });
  await extend(-1, "2021-01-01T00:00:00Z");
  await world.worker.rows("select jobs.expire_coupons(100)");
  fits(t, await readHistory(coupons.at(-1)!), { status: "EXPIRED" }, "the job sees the new end");
});

t.test("A coupon that its template reissues is not REDEEMED without a redemption", async (t) => {
  const coupon = await makeCoupon("REVERSED, reissued");
  const use = first.run(`update core.coupon set status = 'REDEEMED' ${ofCoupon(coupon)}`);
  t.equal(await constraintOf(use), "coupon_agrees_with_its_redemptions");
});

t.test("A change of terms that are fixed in use waits for a first use in progress", async (t) => {
  const unused = await world.a.addTemplate({});
  await world.apply({ tenants: [{ id: "ten_new", name: "new", variant: "A" }] });
  const useTemplate = `
    insert into core.batch
      (tenant_id, external_id, template_id, maker_id, distributor_id, total_count, valid_from, valid_to,
       key_version, salt, caller_id, request_id, body_hash, created_at)
    select tenant_id, 'bat_new', template_id, maker_id, maker_id, 1, valid_from, valid_to,
           '1', 'salt', 0, 'new', 'hash', now()
    from core.template where external_id = '${unused}'`;
  const changeTemplate = `update core.template set discount_minor = 9900 where external_id = '${unused}'`;
  t.equal(await meet(useTemplate, changeTemplate), "template_with_batches_keeps_its_terms");
  const useTenant = `
    insert into core.credential (tenant_id, access_key, sealed_secret, secret_hash)
    select tenant_id, 'ak_new', 'sealed', 'hash' from core.tenant where external_id = 'ten_new'`;
  const changeTenant = "update core.tenant set amount_unit = 'minor' where external_id = 'ten_new'";
  t.equal(await meet(useTenant, changeTenant), "variant_and_unit_are_fixed_in_use");
});
