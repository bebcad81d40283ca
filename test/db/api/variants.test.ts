// Where the two variants of the interface differ, beyond what the state matrix shows. For ownership see scope.test.ts.
import t from "tap";
import type { Coupon } from "../../support/caller.ts";
import { fits } from "../../support/fits.ts";
import { scenario } from "../../support/scenario.ts";
import { merchant, party, template, tenants } from "../../support/tenants.ts";

const [tenantA, , tenantB] = structuredClone(tenants) as [any, any, any];
tenantA.parties.push(party("pty_shop"), party("pty_dist"));
tenantA.merchants.push(merchant("mch_shop", "pty_shop"));
tenantA.templates.push(template("tpl_shop", "pty_shop", { distributor: "pty_dist" }));
tenantB.templates.push(template("tpl_own", "pty_maker"));

const world = await scenario(t, { file: { tenants: [tenantA, tenantB] } });

const readRow = async (text: string, id: string) => (await world.owner.rows(text, [id]))[0];

t.test("A: every credential of the tenant may act for each of its parties", async (t) => {
  const [first, second] = [world.as("ak_a"), world.as("ak_a_second", "mch_shop")];
  const { coupons } = await world.makeBatch(first, "tpl_shop", 2);
  for (const [by, other, at] of [
    [first, second, "mch_a"],
    [second, first, "mch_shop"],
  ] as const) {
    const coupon = coupons.pop()!;
    await by.ok.lock(coupon);
    // The caller is the tenant, so the other credential may confirm this lock.
    t.equal((await other.confirm(coupon, { merchant: at })).status, 200);
  }
});

t.test("B: a removed delegate starts nothing new at the merchant, but may still cancel its own lock", async (t) => {
  const { till, makeCoupons } = world.b;
  const [locked, other] = (await makeCoupons(2)) as [Coupon, Coupon];
  await till.ok.lock(locked);
  await world.admin.rows("select admin.remove_delegate('ten_b', 'mch_b', 'pty_pos', 'contract ended')");
  for (const reply of [await till.redeem(other), await till.confirm(locked), await till.query(other)])
    fits(t, reply, { status: 404, json: { details: { resource: "merchant" } } });
  fits(t, await till.cancel(locked), { status: 200, json: { status: "CANCELLED" } });
  await world.admin.rows("select admin.add_delegate('ten_b', 'mch_b', 'pty_pos', 'back again')");
});

t.test("B: a reversal names the party that reversed, whoever redeemed", async (t) => {
  const { otherTill, makeCoupons } = world.b;
  const [coupon] = (await makeCoupons(1, "REDEEMED")) as [Coupon];
  const { reversal } = await otherTill.ok.reverse(coupon);
  const names = `select v.external_id as reversed_by, r.external_id as redeemed_by
    from core.reversal x
    join core.redemption m using (tenant_id, redemption_id)
    join core.party v on (v.tenant_id, v.party_id) = (x.tenant_id, x.caller_id)
    join core.party r on (r.tenant_id, r.party_id) = (m.tenant_id, m.caller_id)
    where x.reversal_id = rules.parse_id('rvs', $1)`;
  t.strictSame(await readRow(names, reversal), { reversed_by: "pty_shop", redeemed_by: "pty_pos" });
});

t.test("The distributor is taken from the request, else from the template; else it is the maker", async (t) => {
  for (const [caller, name, more, distributor] of [
    [world.b.maker, "tpl_own", {}, "pty_maker"],
    [world.b.maker, "tpl_b", {}, "pty_dist"],
    [world.b.maker, "tpl_b", { distributor: "pty_other" }, "pty_other"],
    [world.a.maker, "tpl_fixed", {}, "pty_a"],
    [world.a.maker, "tpl_shop", {}, "pty_dist"],
    [world.a.maker, "tpl_shop", { distributor: "pty_a" }, "pty_a"],
  ] as const)
    fits(t, (await caller.ok.createBatch(name, 1, more)).batch, { distributor_party_id: distributor });
});

t.test("A store and a terminal are recorded; in B they must be the merchant's and the store's", async (t) => {
  const places = [
    [world.a, { store: "anywhere" }],
    [world.a, { terminal: "alone" }],
    [world.a, { store: " '; drop table core.coupon; --", terminal: "T" }],
    [world.b, {}],
    [world.b, { store: "S2" }],
    [world.b, { store: "S1", terminal: "T1" }],
  ] as const;
  for (const [{ till, makeCoupons }, place] of places) {
    const [coupon] = (await makeCoupons(1)) as [Coupon];
    const { redemption } = await till.ok.redeem(coupon, place);
    const recorded = "select store, terminal from core.redemption where redemption_id = rules.parse_id('red', $1)";
    const trimmed = "store" in place ? { store: place.store.trim() } : {};
    t.strictSame(await readRow(recorded, redemption), { store: null, terminal: null, ...place, ...trimmed });
  }
  const [coupon] = (await world.b.makeCoupons(1)) as [Coupon];
  for (const [place, resource] of [
    [{ store: " S1" }, "store"],
    [{ store: "S2", terminal: "T1" }, "terminal"],
  ] as const)
    fits(t, await world.b.till.redeem(coupon, place), { status: 404, json: { details: { resource } } });
});

t.test("A query in A shows the newest of several redemptions", async (t) => {
  const { till, makeCoupons } = world.a;
  const [coupon] = (await makeCoupons(1, "REVERSED, reissued")) as [Coupon];
  for (const amount of [3, 1, 2]) {
    await till.ok.redeem(coupon, { order_amount: amount });
    await till.ok.reverse(coupon);
    const redemption = { status: "REVERSED", discount_amount: amount };
    fits(t, (await till.ok.query(coupon)).coupon, { status: "ISSUED", redemption });
  }
});

t.test("A query in A shows the live redemption, also after the clock was set back", async (t) => {
  const { till, makeCoupons } = world.a;
  const [coupon] = (await makeCoupons(1, "REDEEMED, reissuable")) as [Coupon];
  await till.ok.reverse(coupon);
  // As if the first redemption had been made while the clock was an hour ahead.
  const psql = await world.openPsql({ triggers: false });
  const { redemption } = coupon;
  const move = (by: string) =>
    psql.rows(
      `update core.redemption set started_at = started_at + $2::text::interval,
         redeemed_at = redeemed_at + $2::text::interval, ended_at = ended_at + $2::text::interval
       where redemption_id = rules.parse_id('red', $1)`,
      [redemption, by],
    );
  await move("1 hour");
  await till.ok.lock(coupon, { order_amount: 2 });
  const live = { status: "LOCKED", redemption: { status: "LOCKED", discount_amount: 2 } };
  fits(t, (await till.ok.query(coupon)).coupon, live);
  await move("-1 hour");
});

t.test("A coupon whose batch is over is EXPIRED, released or not", async (t) => {
  for (const { maker, till, template } of [world.a, world.b])
    for (const isReleased of [true, false]) {
      const { coupons } = await world.makeBatch(maker, template, 1, { isReleased, isOver: true });
      const coupon = coupons[0]!;
      fits(t, (await till.ok.query(coupon)).coupon, { status: "EXPIRED" });
      fits(t, await till.redeem(coupon), { status: 409, json: { code: "COUPON_EXPIRED" } });
      fits(t, await till.void(coupon), { status: 409, json: { code: "COUPON_NOT_VOIDABLE" } });
    }
});
