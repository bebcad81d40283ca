// Where the two variants of the interface differ in writes. For ownership see scope.test.ts, for queries see
// variants-query.test.ts.
import t from "tap";
import { fits } from "../../support/fits.ts";
import { tenants, template } from "../../support/tenants.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { readState } from "../../support/state.ts";
import { variants } from "./variant-callers.ts";

const [tenantA, , tenantB] = structuredClone(tenants) as [any, any, any];
tenantA.parties.push({ id: "pty_shop", name: "s" }, { id: "pty_dist", name: "d" });
tenantA.merchants.push({ id: "mch_shop", name: "s", party: "pty_shop" });
tenantA.templates.push(template("tpl_shop", "pty_shop", { distributor: "pty_dist" }));
tenantB.templates.push(template("tpl_own", "pty_maker"));

let service: Running;
t.before(async () => {
  service = await startService(t, { tenants: [tenantA, tenantB] });
});

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

t.test("A: every credential of the tenant may act for each of its parties", async (t) => {
  const [first, second] = [service.as("ak_a"), service.as("ak_a_second")];
  const { id, codes } = await service.makeBatch(first, "tpl_shop", 2);
  fits(t, (await second.get(`/v1/batches/${id}`)).json, {
    batch: { maker_party_id: "pty_shop", distributor_party_id: "pty_dist", template_id: "tpl_shop" },
  });
  for (const [by, merchant] of [
    [first, "mch_a"],
    [second, "mch_shop"],
  ] as const) {
    const lock = { request_id: newRequestId(), coupon: codes.pop(), merchant };
    t.equal((await by.post("/v1/coupons/lock", lock)).status, 200);
    // The caller is the tenant, so the other credential may confirm this lock.
    const confirm = { request_id: newRequestId(), lock_request_id: lock.request_id, coupon: lock.coupon, merchant };
    t.equal((await (by === first ? second : first).post("/v1/coupons/confirm", confirm)).status, 200);
  }
});

t.test("B: only the party that locked may confirm, not even the merchant's own party", async (t) => {
  const { codes } = await service.makeBatch(service.as("ak_maker"), "tpl_b", 1);
  const lock = { request_id: newRequestId(), coupon: codes[0], merchant: "mch_b" };
  t.equal((await service.as("ak_pos").post("/v1/coupons/lock", lock)).status, 200);
  const confirm = { lock_request_id: lock.request_id, coupon: lock.coupon, merchant: "mch_b" };
  const before = await readState(service.owner);
  fits(t, await service.as("ak_shop").post("/v1/coupons/confirm", { request_id: newRequestId(), ...confirm }), {
    status: 409,
    json: { code: "LOCK_NOT_FOUND" },
  });
  t.strictSame(await readState(service.owner), before);
  t.equal(
    (await service.as("ak_pos").post("/v1/coupons/confirm", { request_id: newRequestId(), ...confirm })).status,
    200,
  );
});

t.test("B: a removed delegate starts nothing new at the merchant, but may still cancel its own lock", async (t) => {
  const { codes } = await service.makeBatch(service.as("ak_maker"), "tpl_b", 2);
  const pos = service.as("ak_pos");
  const lock = { request_id: newRequestId(), coupon: codes[0], merchant: "mch_b" };
  t.equal((await pos.post("/v1/coupons/lock", lock)).status, 200);
  await service.admin.rows("select admin.remove_delegate('ten_b', 'mch_b', 'pty_pos', 'contract ended')");
  t.teardown(() => service.admin.rows("select admin.add_delegate('ten_b', 'mch_b', 'pty_pos', 'back again')"));
  const own = { lock_request_id: lock.request_id, coupon: lock.coupon };
  const refused = [
    await pos.post("/v1/coupons/redeem", { request_id: newRequestId(), coupon: codes[1], merchant: "mch_b" }),
    await pos.post("/v1/coupons/confirm", { request_id: newRequestId(), ...own, merchant: "mch_b" }),
    await pos.post("/v1/coupons/query", { coupon: codes[1], merchant: "mch_b" }),
  ];
  for (const reply of refused) fits(t, reply, { status: 404, json: { details: { resource: "merchant" } } });
  fits(t, await pos.post("/v1/coupons/cancel", { request_id: newRequestId(), ...own }), {
    status: 200,
    json: { status: "CANCELLED" },
  });
});

t.test("B: a reversal names the party that reversed, whoever redeemed", async (t) => {
  const { codes } = await service.makeBatch(service.as("ak_maker"), "tpl_b", 1);
  const redeem = { request_id: newRequestId(), coupon: codes[0], merchant: "mch_b" };
  const { redemption } = (await service.as("ak_pos").post("/v1/coupons/redeem", redeem)).json;
  const reverse = { request_id: newRequestId(), redemption };
  const { reversal } = (await service.as("ak_shop").post("/v1/redemptions/reverse", reverse)).json;
  const rows = await service.owner.rows(
    `select v.external_id as reversed_by, r.external_id as redeemed_by
     from core.reversal x
     join core.redemption m using (tenant_id, redemption_id)
     join core.party v on (v.tenant_id, v.party_id) = (x.tenant_id, x.caller_id)
     join core.party r on (r.tenant_id, r.party_id) = (m.tenant_id, m.caller_id)
     where rules.format_id('rvs', x.reversal_id) = $1`,
    [reversal],
  );
  t.strictSame([...rows], [{ reversed_by: "pty_shop", redeemed_by: "pty_pos" }]);
});

t.test("The distributor is taken from the request, else from the template; else it is the maker", async (t) => {
  const expected = [
    ["ak_maker", { template: "tpl_own" }, "pty_maker"],
    ["ak_maker", { template: "tpl_b" }, "pty_dist"],
    ["ak_maker", { template: "tpl_b", distributor: "pty_other" }, "pty_other"],
    ["ak_a", { template: "tpl_fixed" }, "pty_a"],
    ["ak_a", { template: "tpl_shop" }, "pty_dist"],
    ["ak_a", { template: "tpl_shop", distributor: "pty_a" }, "pty_a"],
  ] as const;
  for (const [caller, body, distributor] of expected) {
    const created = await service
      .as(caller)
      .post("/v1/batches", { request_id: newRequestId(), total_count: 1, ...body });
    fits(t, created.json.batch, {
      distributor_party_id: distributor,
      status: "PENDING",
      minted_count: 0,
      total_count: 1,
      external_id: /^bat_[0-9a-z]{26}$/,
      created_at: iso,
    });
  }
});

t.test("A: store and terminal are trimmed and normalised, then recorded without a look-up", async (t) => {
  const a = service.as("ak_a");
  const { codes } = await service.makeBatch(a, "tpl_fixed", 8);
  const long = "ä".repeat(64);
  const given: [Record<string, string>, unknown[]][] = [
    [{ store: "  Store 1\t", terminal: " till " }, ["Store 1", "till"]],
    [{ store: "Cafe\u0301" }, ["Caf\u00e9", null]],
    [{ terminal: "alone" }, [null, "alone"]],
    [{ store: "   ", terminal: "" }, [null, null]],
    [{ store: ` ${"a\u0308".repeat(64)} ` }, [long, null]],
    [
      { store: "'; drop table core.coupon; --", terminal: "😀".repeat(64) },
      ["'; drop table core.coupon; --", "😀".repeat(64)],
    ],
  ];
  for (const [place, [store, terminal]] of given) {
    const reply = await a.post("/v1/coupons/redeem", {
      request_id: newRequestId(),
      coupon: codes.pop(),
      merchant: "mch_a",
      ...place,
    });
    t.equal(reply.status, 200, reply.text);
    const [row] = await service.owner.rows(
      "select store, terminal from core.redemption where rules.format_id('red', redemption_id) = $1",
      [reply.json.redemption],
    );
    t.strictSame(row, { store, terminal });
  }
  for (const field of ["store", "terminal"]) {
    for (const value of [`${long}b`, "😀".repeat(65), 7, null]) {
      const reply = await a.post("/v1/coupons/redeem", {
        request_id: newRequestId(),
        coupon: codes[0],
        merchant: "mch_a",
        [field]: value,
      });
      fits(t, reply, { status: 400, json: { code: "INVALID_REQUEST", details: { issues: [{ path: field }] } } });
    }
  }
});

t.test("B: store and terminal must be registered, and a terminal needs its store", async (t) => {
  const shop = service.as("ak_shop");
  const { codes } = await service.makeBatch(service.as("ak_maker"), "tpl_b", 4);
  const redeem = (place: object) =>
    shop.post("/v1/coupons/redeem", { request_id: newRequestId(), coupon: codes.at(-1), merchant: "mch_b", ...place });
  for (const place of [{}, { store: "S2" }, { store: "S1", terminal: "T1" }]) {
    const reply = await redeem(place);
    t.equal(reply.status, 200, reply.text);
    const [row] = await service.owner.rows(
      "select store, terminal from core.redemption where rules.format_id('red', redemption_id) = $1",
      [reply.json.redemption],
    );
    t.strictSame(row, { store: null, terminal: null, ...place });
    codes.pop();
  }
  const before = await readState(service.owner, { withRequests: true });
  fits(t, await redeem({ terminal: "T1" }), { status: 400, json: { details: { issues: [{ path: "terminal" }] } } });
  t.strictSame(await readState(service.owner, { withRequests: true }), before, "400 is not recorded");
  fits(t, await redeem({ store: " S1" }), { status: 404, json: { details: { resource: "store" } } });
  fits(t, await redeem({ store: "S2", terminal: "T1" }), { status: 404, json: { details: { resource: "terminal" } } });
});

t.test("redemption_context is a field of A and an unknown field in B", async (t) => {
  const context = { redemption_context: { items: [{ sku: "x", quantity: 2, amount: 1.5 }] } };
  for (const { variant, makerKey, shopKey, template, merchant } of variants) {
    const { codes } = await service.makeBatch(service.as(makerKey), template, 2);
    for (const operation of ["lock", "redeem"]) {
      const reply = await service
        .as(shopKey)
        .post(`/v1/coupons/${operation}`, { request_id: newRequestId(), coupon: codes.pop(), merchant, ...context });
      if (variant === "A") t.equal(reply.status, 200);
      else
        fits(t, reply, {
          status: 400,
          json: { code: "INVALID_REQUEST", details: { issues: [{ path: "redemption_context" }] } },
        });
    }
  }
});
