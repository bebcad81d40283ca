// The administrator's patches of coupons: void_coupon, void_batch, release_lock and extend_coupon.
import t from "tap";
import { fits } from "../../support/fits.ts";
import { everyFunctionIsCalled, startPatches, type Patches } from "../../support/patches.ts";
import { tenants } from "../../support/tenants.ts";
import { readCouponHistory } from "../../support/inspect.ts";
import { newRequestId, type Running } from "../../support/service.ts";
import { holdCoupon } from "../../support/sessions.ts";
import { waitUntil } from "../../support/wait-until.ts";

const [tenantA, strangerA, tenantB] = structuredClone(tenants) as [any, any, any];
const [template] = tenantA.templates;
tenantA.templates.push({ ...template, id: "tpl_short", lock_ttl_seconds: 1 });

let patches: Patches;
let service: Running;
t.before(async () => {
  patches = await startPatches(t, [tenantA, strangerA, tenantB]);
  ({ service } = patches);
});

const query = async (code: string) =>
  (await service.as("ak_a").post("/v1/coupons/query", { coupon: code, merchant: "mch_a" })).json.coupon;
// By index of the argument: tenants that do not have the coupon, and IDs that no coupon has.
const unknown = { 0: ["ten_none", "ten_a2", "ten_b"], 1: ["cpn_none", "", `cpn_${"0".repeat(26)}`] };

// As an administrator's voiding is shown: without a merchant and a caller.
const byAdmin = (reason: string) => ({ merchant: null, caller: null, reason });
const readVoiding = async (id: string) => ({
  ...(await service.owner.rows("select merchant, caller, reason from report.voiding where coupon = $1", [id]))[0],
});

t.test("void_coupon voids an unused coupon, released or not", async (t) => {
  const { patch, isAudited, isRefused, refusesBadArguments } = patches;
  for (const isReleased of [true, false]) {
    const { code, id } = await patches.makeCoupon("tpl_fixed", { isReleased });
    await refusesBadArguments(t, "void_coupon", ["ten_a", id], unknown);
    await patch("void_coupon", "ten_a", id, " misprinted ");
    await isAudited(t, { action: "void_coupon", target: id, reason: "misprinted", tenant: "ten_a" });
    fits(t, await readCouponHistory(service.owner, id), {
      status: "VOIDED",
      events: [{ type: "coupon.voided", party: "pty_a" }],
      amounts: [],
    });
    t.strictSame(await readVoiding(id), byAdmin("misprinted"));
    t.equal((await query(code)).status, "VOIDED");
    await isRefused(t, "CP409", "void_coupon", "ten_a", id, "again");
  }
});

t.test("void_batch voids the unused coupons of a batch, released or not, and skips the rest", async (t) => {
  const { patch, isAudited, refusesBadArguments } = patches;
  for (const isReleased of [true, false]) {
    const batch = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 5, { isReleased });
    const [redeemed, locked, held, ...unused] = batch.couponIds as [string, string, string, ...string[]];
    await refusesBadArguments(t, "void_batch", ["ten_a", batch.id], { 0: unknown[0], 1: ["bat_none", ""] });
    if (isReleased) {
      await patches.post("/v1/coupons/redeem", { coupon: batch.codes[0] });
      await patches.post("/v1/coupons/lock", { coupon: batch.codes[1] });
    }
    const letGo = await holdCoupon(service, held);
    t.equal(await patch("void_batch", "ten_a", batch.id, "key stolen"), isReleased ? 2 : 4);
    await isAudited(
      t,
      { action: "void_batch", target: batch.id, reason: "key stolen", tenant: "ten_a" },
      { voided: isReleased ? 2 : 4 },
    );
    await letGo();
    t.equal(await patch("void_batch", "ten_a", batch.id, "key stolen"), 1, "the coupon that was held before");
    t.equal(await patch("void_batch", "ten_a", batch.id, "key stolen"), 0);
    for (const id of [held, ...unused]) {
      fits(t, await readCouponHistory(service.owner, id), {
        status: "VOIDED",
        events: [{ type: "coupon.voided", party: "pty_a" }],
      });
      t.strictSame(await readVoiding(id), byAdmin("key stolen"));
    }
    fits(t, await readCouponHistory(service.owner, redeemed), { status: isReleased ? "REDEEMED" : "VOIDED" });
    fits(t, await readCouponHistory(service.owner, locked), { status: isReleased ? "LOCKED" : "VOIDED" });
  }
  const past = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 2, { isOver: true });
  t.equal(await patch("void_batch", "ten_a", past.id, "over"), 0, "expired coupons are skipped");
});

t.test("void_coupon refuses a locked, a redeemed and an expired coupon", async (t) => {
  const { makeCoupon, post, isRefused } = patches;
  const [locked, redeemed, past] = [
    await makeCoupon(),
    await makeCoupon(),
    await makeCoupon("tpl_fixed", { isOver: true }),
  ];
  await post("/v1/coupons/lock", { coupon: locked.code });
  await post("/v1/coupons/redeem", { coupon: redeemed.code });
  for (const { id } of [locked, redeemed, past]) await isRefused(t, "CP409", "void_coupon", "ten_a", id, "why");
});

t.test("release_lock cancels a live lock: its confirm is refused, and the coupon is free", async (t) => {
  const { post, patch, isAudited, isRefused, refusesBadArguments } = patches;
  const { code, id } = await patches.makeCoupon();
  await isRefused(t, "CP409", "release_lock", "ten_a", id, "no lock");
  const lock_request_id = newRequestId();
  const { json } = await post("/v1/coupons/lock", { request_id: lock_request_id, coupon: code });
  await refusesBadArguments(t, "release_lock", ["ten_a", id], unknown);
  t.equal(await patch("release_lock", "ten_a", id, "till broke"), json.redemption);
  await isAudited(
    t,
    { action: "release_lock", target: id, reason: "till broke", tenant: "ten_a" },
    { redemption: json.redemption },
  );
  fits(t, await readCouponHistory(service.owner, id), { status: "ISSUED", redemptions: ["CANCELLED"], events: [] });
  fits(t, (await post("/v1/coupons/confirm", { coupon: code, lock_request_id })).json, { code: "LOCK_CANCELLED" });
  t.equal((await post("/v1/coupons/redeem", { coupon: code })).status, 200);
  await isRefused(t, "CP409", "release_lock", "ten_a", id, "redeemed");
});

t.test(
  "An expired lock counts as gone for the administrator too: release_lock refuses, void_coupon works",
  async (t) => {
    const { post, patch, isRefused } = patches;
    const { code, id } = await patches.makeCoupon("tpl_short");
    const lockFor = async (seconds: number) => {
      const setTime = "update core.template set lock_ttl_seconds = $1 where external_id = 'tpl_short'";
      await service.owner.rows(setTime, [seconds]);
      const request_id = newRequestId();
      fits(t, await post("/v1/coupons/lock", { request_id, coupon: code }), { status: 200 });
      return request_id;
    };
    // An older lock that would still be live.
    await lockFor(900);
    await patch("release_lock", "ten_a", id, "till broke");
    const lock_request_id = await lockFor(1);
    await service.owner.rows(
      "select pg_sleep_until(max(lock_expires_at)) from core.redemption where lock_request_id = $1",
      [lock_request_id],
    );
    await isRefused(t, "CP409", "release_lock", "ten_a", id, "too late");
    fits(t, (await post("/v1/coupons/confirm", { coupon: code, lock_request_id })).json, { code: "LOCK_EXPIRED" });
    await patch("void_coupon", "ten_a", id, "unused");
    fits(t, await readCouponHistory(service.owner, id), { status: "VOIDED", redemptions: ["CANCELLED", "LAPSED"] });
  },
);

t.test("extend_coupon moves the end of a coupon forward and back", async (t) => {
  const { post, patch, isAudited, isRefused, refusesBadArguments } = patches;
  const { code, id } = await patches.makeCoupon();
  await refusesBadArguments(t, "extend_coupon", ["ten_a", id, "2098-01-01"], unknown);
  await patch("extend_coupon", "ten_a", id, "2098-01-01", "goodwill");
  await isAudited(
    t,
    { action: "extend_coupon", target: id, reason: "goodwill", tenant: "ten_a" },
    { status: "ISSUED", valid_to: /^2098-01-01/, valid_to_before: /^2099-01-01/ },
  );
  fits(t, await query(code), { status: "ISSUED", valid_to: "2098-01-01T00:00:00.000Z" });
  await patch("extend_coupon", "ten_a", id, "2021-01-01", "ended");
  fits(t, await query(code), { status: "EXPIRED", valid_to: "2021-01-01T00:00:00.000Z" });
  fits(t, (await post("/v1/coupons/redeem", { coupon: code })).json, { code: "COUPON_EXPIRED" });
  await patch("extend_coupon", "ten_a", id, "2098-01-01", "and again");
  t.equal((await post("/v1/coupons/redeem", { coupon: code })).status, 200);
  await isRefused(t, "CP409", "extend_coupon", "ten_a", id, "2099-01-01", "redeemed");
});

t.test(
  "extend_coupon revives an expired coupon, and refuses an end that is missing, too early or infinite",
  async (t) => {
    const { patch, isRefused } = patches;
    const { code, id } = await patches.makeCoupon("tpl_fixed", { isOver: true });
    const expire = async () =>
      (await service.owner.rows<{ seen: number }>("select jobs.expire_coupons(1000) as seen"))[0]!.seen;
    await waitUntil("all coupons to expire", async () => (await expire()) === 0, { everyMs: 0 });
    fits(t, await readCouponHistory(service.owner, id), { status: "EXPIRED" });
    await isRefused(t, "CP400", "extend_coupon", "ten_a", id, null, "no end");
    await isRefused(t, "CP400", "extend_coupon", "ten_a", id, "2019-01-01", "before its beginning");
    const early = "valid_to must be later than the coupon's valid_from, 2020-01-01T00:00:00.000Z";
    for (const [validTo, message] of [
      ["2019-01-01", early],
      ["2020-01-01 00:00+00", early],
      ["-infinity", early],
      ["infinity", "valid_to must be before the year 10000"],
      ["10000-01-01 00:00+00", "valid_to must be before the year 10000"],
    ] as const) {
      // Cast from text: the driver cannot send infinity as a time.
      const error = await patches.admin
        .rows("select admin.extend_coupon('ten_a', $1, $2::text::timestamptz, 'why')", [id, validTo])
        .catch((reason: unknown) => reason);
      fits(t, error, { code: "CP400", message }, validTo);
      t.notMatch(error, { detail: /./ }, "no row is shown");
    }
    fits(t, await readCouponHistory(service.owner, id), { status: "EXPIRED" });
    await patch("extend_coupon", "ten_a", id, "2098-01-01", "goodwill");
    fits(t, await readCouponHistory(service.owner, id), { status: "ISSUED" });
    t.equal((await patches.post("/v1/coupons/redeem", { coupon: code })).status, 200);
  },
);

t.test("Every function of this file was called", (t) => everyFunctionIsCalled(t, patches, "coupons"));
