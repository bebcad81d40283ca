// What an administrator may patch: each function of schema admin, its effect, what the audit says of it, and what it
// refuses. Called as coupon_admin, by hand or by the programs.
import t, { type Test } from "tap";
import { connect, sqlState } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { createDatabase } from "../support/database.ts";
import { readCouponHistory } from "../support/inspect.ts";
import { tenants } from "../support/provisioning.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";
import { holdCoupon } from "../support/sessions.ts";
import { readState } from "../support/state.ts";

const [tenantA, strangerA, tenantB] = structuredClone(tenants) as [any, any, any];
const [template] = tenantA.templates;
tenantA.templates.push(
  { ...template, id: "tpl_short", lock_ttl_seconds: 1 },
  { ...template, id: "tpl_past", valid_to: "2020-01-02T00:00:00Z" },
);
tenantA.parties[0].webhook = {
  url: "https://example.com/hook",
  secret: `whsec_${Buffer.alloc(32, 1).toString("base64")}`,
};

let service: Running;
let admin: Database;
t.before(async () => {
  service = await startService(t, { tenants: [tenantA, strangerA, tenantB] });
  admin = connect(service.address, { name: "psql of Ada", role: "coupon_admin", max: 1 });
  t.teardown(() => admin.end());
});

// Each function that a test has called; at the end that must be all of them.
const called = new Set<string>();
async function patch<T = unknown>(name: string, ...args: unknown[]): Promise<T> {
  called.add(name);
  const [row] = await admin.rows<{ answer: T }>(
    `select admin.${name}(${args.map((_, index) => `$${index + 1}`).join(", ")}) as answer`,
    args,
  );
  return row!.answer;
}

type Audit = { action: string; target: string; reason: string | null; tenant: string };
async function isAudited(t: Test, expected: Audit, details: object = {}): Promise<void> {
  const [last] = await service.owner.rows(
    "select a.*, t.external_id as tenant, session_user as me from core.audit a join core.tenant t using (tenant_id) order by a.audit_id desc limit 1",
  );
  t.match(
    last,
    { ...expected, client: "psql of Ada", login: last!["me"] as string, details },
    "the audit says who, what, why",
  );
}

// By its SQLSTATE, or the name of the rule of a table; and nothing changed, the audit included.
async function isRefused(t: Test, by: string, name: string, ...args: unknown[]): Promise<void> {
  const before = await readState(service.owner, { withRequests: true });
  const error = await patch(name, ...args).then(
    () => null,
    (reason: unknown) => reason,
  );
  t.ok(
    [sqlState(error), (error as { constraint_name?: string } | null)?.constraint_name].includes(by),
    `${name} ${args.join(", ")}: ${(error as Error | null)?.message ?? "not refused"}`,
  );
  t.strictSame(await readState(service.owner, { withRequests: true }), before, "and nothing changed");
}

// The usual refusals of a patch whose last argument is the reason.
async function refusesNonsense(
  t: Test,
  name: string,
  args: string[],
  unknown: Record<number, string[]>,
): Promise<void> {
  for (const reason of [null, "", "  ", "\t\u00a0\n", "x".repeat(1_001)])
    await isRefused(t, "CP400", name, ...args, reason);
  for (const [index, values] of Object.entries(unknown)) {
    for (const value of values) await isRefused(t, "CP404", name, ...args.with(Number(index), value), "why");
  }
}

const a = () => service.as("ak_a");
const made = async (name = "tpl_fixed", options = {}) => {
  const { codes, couponIds } = await service.makeBatch(a(), name, 1, options);
  return { code: codes[0]!, id: couponIds[0]! };
};
const call = (path: string, body: object) => a().post(path, { request_id: newRequestId(), merchant: "mch_a", ...body });
const shown = async (code: string) =>
  (await a().post("/v1/coupons/query", { coupon: code, merchant: "mch_a" })).json.coupon;
const strangers = { 0: ["ten_none", "ten_a2", "ten_b"], 1: ["cpn_none", "", `cpn_${"0".repeat(26)}`] };

t.test("void_coupon voids an unused coupon, released or not, on behalf of nobody at a till", async (t) => {
  for (const isReleased of [true, false]) {
    const { code, id } = await made("tpl_fixed", { isReleased });
    await refusesNonsense(t, "void_coupon", ["ten_a", id], strangers);
    await patch("void_coupon", "ten_a", id, " misprinted ");
    await isAudited(t, { action: "void_coupon", target: id, reason: "misprinted", tenant: "ten_a" });
    t.match(await readCouponHistory(service.owner, id), {
      status: "VOIDED",
      events: [{ type: "coupon.voided", party: "pty_a" }],
      amounts: [],
    });
    t.equal((await shown(code)).status, "VOIDED");
    await isRefused(t, "CP409", "void_coupon", "ten_a", id, "again");
  }
});

t.test("void_batch voids what is unused, released or not, and passes over the rest", async (t) => {
  for (const isReleased of [true, false]) {
    const batch = await service.makeBatch(a(), "tpl_fixed", 5, { isReleased });
    const [redeemed, locked, held, ...unused] = batch.couponIds as [string, string, string, ...string[]];
    await refusesNonsense(t, "void_batch", ["ten_a", batch.id], { 0: strangers[0], 1: ["bat_none", ""] });
    if (isReleased) {
      await call("/v1/coupons/redeem", { coupon: batch.codes[0] });
      await call("/v1/coupons/lock", { coupon: batch.codes[1] });
    }
    const letGo = await holdCoupon(service, held);
    t.equal(await patch("void_batch", "ten_a", batch.id, "key stolen"), isReleased ? 2 : 4);
    await isAudited(
      t,
      { action: "void_batch", target: batch.id, reason: "key stolen", tenant: "ten_a" },
      { voided: isReleased ? 2 : 4 },
    );
    await letGo();
    t.equal(await patch("void_batch", "ten_a", batch.id, "key stolen"), 1, "the one that was held");
    t.equal(await patch("void_batch", "ten_a", batch.id, "key stolen"), 0);
    for (const id of [held, ...unused])
      t.match(await readCouponHistory(service.owner, id), {
        status: "VOIDED",
        events: [{ type: "coupon.voided", party: "pty_a" }],
      });
    t.match(await readCouponHistory(service.owner, redeemed), { status: isReleased ? "REDEEMED" : "VOIDED" });
    t.match(await readCouponHistory(service.owner, locked), { status: isReleased ? "LOCKED" : "VOIDED" });
  }
  t.equal(await patch("void_batch", "ten_a", (await service.makeBatch(a(), "tpl_past", 2)).id, "over"), 0);
});

t.test("void_coupon leaves what is in use or over", async (t) => {
  const [locked, redeemed, past] = [await made(), await made(), await made("tpl_past")];
  await call("/v1/coupons/lock", { coupon: locked.code });
  await call("/v1/coupons/redeem", { coupon: redeemed.code });
  for (const { id } of [locked, redeemed, past]) await isRefused(t, "CP409", "void_coupon", "ten_a", id, "why");
});

t.test("release_lock ends a live lock: the till is told, the coupon is free", async (t) => {
  const { code, id } = await made();
  await isRefused(t, "CP409", "release_lock", "ten_a", id, "no lock");
  const lock_request_id = newRequestId();
  const { json } = await call("/v1/coupons/lock", { request_id: lock_request_id, coupon: code });
  await refusesNonsense(t, "release_lock", ["ten_a", id], strangers);
  t.equal(await patch("release_lock", "ten_a", id, "till broke"), json.redemption);
  await isAudited(
    t,
    { action: "release_lock", target: id, reason: "till broke", tenant: "ten_a" },
    { redemption: json.redemption },
  );
  t.match(await readCouponHistory(service.owner, id), { status: "ISSUED", redemptions: ["CANCELLED"], events: [] });
  t.match((await call("/v1/coupons/confirm", { coupon: code, lock_request_id })).json, { code: "LOCK_CANCELLED" });
  t.equal((await call("/v1/coupons/redeem", { coupon: code })).status, 200);
  await isRefused(t, "CP409", "release_lock", "ten_a", id, "redeemed");
});

t.test(
  "a lock past its end is gone for the administrator too: no lock to release, and the coupon can be voided",
  async (t) => {
    const { code, id } = await made("tpl_short");
    const lock_request_id = newRequestId();
    await call("/v1/coupons/lock", { request_id: lock_request_id, coupon: code });
    await service.owner.rows(
      "select pg_sleep_until(max(lock_expires_at)) from core.redemption where lock_request_id = $1",
      [lock_request_id],
    );
    await isRefused(t, "CP409", "release_lock", "ten_a", id, "too late");
    t.match((await call("/v1/coupons/confirm", { coupon: code, lock_request_id })).json, { code: "LOCK_EXPIRED" });
    await patch("void_coupon", "ten_a", id, "unused");
    t.match(await readCouponHistory(service.owner, id), { status: "VOIDED", redemptions: ["LAPSED"] });
  },
);

t.test("extend_coupon moves the end of a coupon, forward and back", async (t) => {
  const { code, id } = await made();
  await refusesNonsense(t, "extend_coupon", ["ten_a", id, "2098-01-01"], strangers);
  await patch("extend_coupon", "ten_a", id, "2098-01-01", "goodwill");
  await isAudited(
    t,
    { action: "extend_coupon", target: id, reason: "goodwill", tenant: "ten_a" },
    { status: "ISSUED", valid_to: /^2098-01-01/, valid_to_before: /^2099-01-01/ },
  );
  t.match(await shown(code), { status: "ISSUED", valid_to: "2098-01-01T00:00:00.000Z" });
  await patch("extend_coupon", "ten_a", id, "2021-01-01", "ended");
  t.match(await shown(code), { status: "EXPIRED", valid_to: "2021-01-01T00:00:00.000Z" });
  t.match((await call("/v1/coupons/redeem", { coupon: code })).json, { code: "COUPON_EXPIRED" });
  await patch("extend_coupon", "ten_a", id, "2098-01-01", "and again");
  t.equal((await call("/v1/coupons/redeem", { coupon: code })).status, 200);
  await isRefused(t, "CP409", "extend_coupon", "ten_a", id, "2099-01-01", "redeemed");
});

t.test("extend_coupon brings an expired coupon back, and refuses an end that is none", async (t) => {
  const { code, id } = await made("tpl_past");
  const step = async () =>
    (await service.owner.rows<{ seen: number }>("select jobs.expire_coupons(1000) as seen"))[0]!.seen;
  while ((await step()) > 0);
  t.match(await readCouponHistory(service.owner, id), { status: "EXPIRED" });
  await isRefused(t, "coupon_validity_is_forward", "extend_coupon", "ten_a", id, "2019-01-01", "before its beginning");
  await isRefused(t, "CP400", "extend_coupon", "ten_a", id, null, "no end");
  // The interface has no way to write it.
  const error = await admin
    .rows("select admin.extend_coupon('ten_a', $1, 'infinity', 'for ever')", [id])
    .catch((reason: unknown) => reason);
  t.match(error, { constraint_name: "time_is_finite" }, "an end that is never");
  await patch("extend_coupon", "ten_a", id, "2098-01-01", "goodwill");
  t.match(await readCouponHistory(service.owner, id), { status: "ISSUED" });
  t.equal((await call("/v1/coupons/redeem", { coupon: code })).status, 200);
});

t.test("add_delegate and remove_delegate open and close a merchant for a party, from the next call on", async (t) => {
  const query = async () => {
    const { codes } = await service.makeBatch(service.as("ak_maker"), "tpl_b", 1);
    return (await service.as("ak_other").post("/v1/coupons/query", { coupon: codes[0], merchant: "mch_b" })).status;
  };
  const unknown = { 0: ["ten_none", "ten_a"], 1: ["mch_none", "mch_a"], 2: ["pty_none", "pty_a"] };
  t.equal(await query(), 404);
  await refusesNonsense(t, "add_delegate", ["ten_b", "mch_b", "pty_other"], unknown);
  await patch("add_delegate", "ten_b", "mch_b", "pty_other", "new contract");
  await isAudited(
    t,
    { action: "add_delegate", target: "mch_b", reason: "new contract", tenant: "ten_b" },
    { party: "pty_other" },
  );
  t.equal(await query(), 200);
  await t.resolves(patch("add_delegate", "ten_b", "mch_b", "pty_other", "twice is no error"));
  await refusesNonsense(t, "remove_delegate", ["ten_b", "mch_b", "pty_other"], unknown);
  await patch("remove_delegate", "ten_b", "mch_b", "pty_other", "contract ended");
  await isAudited(
    t,
    { action: "remove_delegate", target: "mch_b", reason: "contract ended", tenant: "ten_b" },
    { party: "pty_other" },
  );
  t.equal(await query(), 404);
  await isRefused(t, "CP404", "remove_delegate", "ten_b", "mch_b", "pty_other", "is none any more");
});

t.test("revoke_credential ends a credential for good, with the next call", async (t) => {
  const second = service.as("ak_a_second");
  t.equal((await second.get("/v1/batches/bat_none")).status, 404);
  await refusesNonsense(t, "revoke_credential", ["ak_a_second"], { 0: ["ak_none", ""] });
  const at = await patch<Date>("revoke_credential", "ak_a_second", "leaked");
  await isAudited(t, { action: "revoke_credential", target: "ak_a_second", reason: "leaked", tenant: "ten_a" });
  t.match(await second.get("/v1/batches/bat_none"), { status: 401, json: { code: "UNAUTHENTICATED" } });
  t.strictSame(await patch("revoke_credential", "ak_a_second", "again"), at, "the first time stays");
  await service.apply({ tenants: [tenantA] });
  t.equal((await second.get("/v1/batches/bat_none")).status, 401, "provisioning does not bring it back");
});

t.test("open_export, read_export_page and destroy_codes hand the codes over, until they are destroyed", async (t) => {
  const {
    json: {
      batch: { external_id: pending },
    },
  } = await call("/v1/batches", { merchant: undefined, template: "tpl_fixed", total_count: 5 });
  for (const name of ["open_export", "destroy_codes"]) {
    const rest = name === "open_export" ? [true] : [];
    await isRefused(t, "CP404", name, "bat_none", ...rest);
    await isRefused(t, "CP409", name, pending, ...rest);
  }
  await service.mint();
  await isRefused(t, "CP409", "open_export", pending, false);
  await patch("open_export", pending, true);
  await isAudited(
    t,
    { action: "export_codes", target: pending, reason: null, tenant: "ten_a" },
    { status: "COMPLETED", total_count: 5 },
  );

  called.add("read_export_page");
  const [{ tenant_id, batch_id } = { tenant_id: 0, batch_id: 0 }] = await service.owner.rows<{
    tenant_id: number;
    batch_id: number;
  }>("select tenant_id, batch_id from core.batch where external_id = $1", [pending]);
  const page = async (tenant: number, after: number) =>
    (
      await admin.rows<{ number: number }>("select number from admin.read_export_page($1, $2, $3, 2)", [
        tenant,
        batch_id,
        after,
      ])
    ).map(({ number }) => number);
  t.strictSame(
    [
      await page(tenant_id, 0),
      await page(tenant_id, 2),
      await page(tenant_id, 4),
      await page(tenant_id, 5),
      await page(tenant_id + 1, 0),
    ],
    [[1, 2], [3, 4], [5], [], []],
  );

  const at = await patch<Date>("destroy_codes", pending);
  await isAudited(t, { action: "destroy_codes", target: pending, reason: null, tenant: "ten_a" });
  t.strictSame(await patch("destroy_codes", pending), at, "once is enough");
  t.equal((await service.owner.rows("select from core.audit where action = 'destroy_codes'")).length, 1);
  await isRefused(t, "CP409", "open_export", pending, true);
});

t.test("has_tenants tells a fresh installation", async (t) => {
  const { address, drop } = await createDatabase();
  const fresh = connect(address, { name: "coupon test", role: "coupon_admin", max: 1 });
  t.match(await fresh.rows("select admin.has_tenants() as answer"), [{ answer: false }]);
  await fresh.end();
  await drop();
  t.equal(await patch("has_tenants"), true);
});

t.test(
  "webhooks: a new secret keeps the old one, disabling parks what waits, a replay makes it due again",
  async (t) => {
    const unknown = { 0: ["ten_none", "ten_b"], 1: ["pty_none", "pty_maker", "pty_dist"] };
    const state = async () => {
      const [row] = await service.owner.rows(
        `select w.sealed_secret, w.sealed_previous_secret, w.secret_hash, w.rotated_at is not null as is_rotated, w.disabled_at is not null as is_disabled,
         count(d.event_id)::int as deliveries, count(d.parked_at)::int as parked
       from core.webhook w left join core.delivery d using (tenant_id, party_id) group by w.tenant_id, w.party_id`,
      );
      return row as {
        sealed_secret: Uint8Array;
        sealed_previous_secret: Uint8Array | null;
        parked: number;
        deliveries: number;
      };
    };
    const [one, two] = [Buffer.from("one"), Buffer.from("two")];
    const first = await state();
    for (const reason of [null, " "])
      await isRefused(t, "CP400", "set_webhook_secret", "ten_a", "pty_a", one, two, reason);
    await isRefused(t, "CP404", "set_webhook_secret", "ten_a", "pty_none", one, two, "why");
    await patch("set_webhook_secret", "ten_a", "pty_a", one, two, "rotation");
    await isAudited(t, { action: "set_webhook_secret", target: "pty_a", reason: "rotation", tenant: "ten_a" });
    t.match(await state(), {
      sealed_secret: one,
      sealed_previous_secret: first.sealed_secret,
      secret_hash: two,
      is_rotated: true,
    });

    const { code } = await made();
    await call("/v1/coupons/redeem", { coupon: code });
    await service.owner.rows("select jobs.sequence_events(10000)");
    const { deliveries } = await state();
    t.ok(deliveries >= 3);
    await refusesNonsense(t, "disable_webhook", ["ten_a", "pty_a"], unknown);
    await patch("disable_webhook", "ten_a", "pty_a", "they asked");
    await isAudited(t, { action: "disable_webhook", target: "pty_a", reason: "they asked", tenant: "ten_a" });
    t.match(await state(), { is_disabled: true, parked: deliveries });
    await refusesNonsense(t, "enable_webhook", ["ten_a", "pty_a"], unknown);
    await patch("enable_webhook", "ten_a", "pty_a", "they are back");
    await isAudited(t, { action: "enable_webhook", target: "pty_a", reason: "they are back", tenant: "ten_a" });
    t.match(await state(), { is_disabled: false, parked: deliveries });
    await refusesNonsense(t, "replay_parked", ["ten_a", "pty_a"], unknown);
    t.equal(await patch("replay_parked", "ten_a", "pty_a", "they missed it"), deliveries);
    await isAudited(
      t,
      { action: "replay_parked", target: "pty_a", reason: "they missed it", tenant: "ten_a" },
      { events: deliveries },
    );
    t.match(await state(), { parked: 0, deliveries });

    await service.owner.rows("delete from core.delivery");
    const [{ id } = { id: "" }] = await service.owner.rows<{ id: string }>(
      "select rules.format_id('evt', event_id) as id from core.event where event_type = 'coupon.redeemed' order by event_seq desc limit 1",
    );
    await refusesNonsense(t, "replay_event", ["ten_a", id], {
      0: ["ten_none", "ten_b"],
      1: ["evt_none", `evt_${"0".repeat(26)}`],
    });
    await patch("replay_event", "ten_a", id, "one is missing");
    await isAudited(t, { action: "replay_event", target: id, reason: "one is missing", tenant: "ten_a" });
    t.match(await state(), { deliveries: 1 });
    for (const reason of [null, " "])
      await isRefused(t, "CP400", "replay_range", "ten_a", "pty_a", "2020-01-01", "2098-01-01", reason);
    await isRefused(t, "CP404", "replay_range", "ten_a", "pty_none", "2020-01-01", "2098-01-01", "why");
    t.equal(await patch("replay_range", "ten_a", "pty_a", "2020-01-01", "2020-01-02", "nothing"), 0);
    // What is not sequenced yet is not addressed: the sequencer will do that, and would wait for an open patch that had.
    await call("/v1/coupons/redeem", { coupon: (await made()).code });
    t.equal(await patch("replay_range", "ten_a", "pty_a", "2020-01-01", "2098-01-01", "all"), deliveries);
    await isAudited(
      t,
      { action: "replay_range", target: "pty_a", reason: "all", tenant: "ten_a" },
      { events: deliveries },
    );
    t.match(await state(), { deliveries });
  },
);

t.test(
  "note_restore: a cursor that was given out after the moment the database was taken back to skips nothing of the new time",
  async (t) => {
    const sequence = () => service.owner.rows("select jobs.sequence_events(10000)");
    const pull = async (accessKey: string, cursor = "") =>
      (await service.as(accessKey).get(`/v1/events?limit=1000${cursor && `&cursor=${cursor}`}`)).json;
    const redeem = async () =>
      (await call("/v1/coupons/redeem", { coupon: (await made()).code })).json.redemption.replace("red", "evt");
    await redeem();
    await sequence();
    // As if these were of the lost time: the tenant's own, and one of a feed that has no event any more.
    const { events, next_cursor: lost } = await pull("ak_a");
    t.match(await pull("ak_a_stranger", lost), { code: "INVALID_REQUEST" });
    await refusesNonsense(t, "note_restore", [], {});
    await patch("note_restore", "taken back to noon");
    const [audited] = await service.owner.rows(
      "select action, target, reason, tenant_id from core.audit order by audit_id desc limit 1",
    );
    t.strictSame(
      { ...audited },
      { action: "note_restore", target: "database", reason: "taken back to noon", tenant_id: null },
    );
    t.strictSame(await pull("ak_a", lost), { events: [], next_cursor: lost });
    t.strictSame(await pull("ak_a_stranger", lost), { events: [], next_cursor: lost });
    const id = await redeem();
    await sequence();
    const after = await pull("ak_a", lost);
    t.strictSame(
      after.events.map(({ event_id }: { event_id: string }) => event_id),
      [id],
    );
    t.strictSame((await pull("ak_a")).events, [...events, ...after.events], "the order is as ever");
    await patch("note_restore", "and again");
    await redeem();
    await sequence();
    t.equal((await pull("ak_a", after.next_cursor)).events.length, 1);
    t.strictSame([...(await service.owner.rows("select law, subject from report.invariants"))], []);
  },
);

t.test(
  "every function that changes something was called here, but for apply, which has tests of its own",
  async (t) => {
    const names = await service.owner.rows<{ name: string }>(
      "select p.proname as name from pg_proc p where p.pronamespace = 'admin'::regnamespace and p.provolatile = 'v'",
    );
    t.strictSame(
      names.map(({ name }) => name).filter((name) => !called.has(name)),
      ["apply"],
    );
  },
);
