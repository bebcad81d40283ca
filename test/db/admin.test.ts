// The functions of schema admin, with which an administrator patches coupons, access, keys, webhooks and feeds.
import { randomBytes } from "node:crypto";
import t, { type Test } from "tap";
import { fingerprintKeys, type KeyProblem } from "../../src/crypto/key-fingerprint.ts";
import { connect, openSession, sqlState } from "../../src/database/connect.ts";
import type { Database, Session } from "../../src/database/types.ts";
import type { Coupon } from "../support/caller.ts";
import { fits } from "../support/fits.ts";
import { findBrokenInvariants, readCouponHistory } from "../support/inspect.ts";
import { untilBlocked } from "../support/race.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { readState } from "../support/state.ts";
import { dropDeliveries } from "../support/subscribers.ts";
import { tenants } from "../support/tenants.ts";

/** What differs from the usual audit entry. */
type Audit = { target: string; action?: string; reason?: null; tenant?: string | null; details: object };

const client = "psql of Ada";
let world: Scenario;
let admin: Database;
t.before(async () => {
  const [tenantA, ...others] = structuredClone(tenants) as any[];
  const secret = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
  tenantA.parties[0].webhook = { url: "https://example.com/hook", secret };
  world = await scenario(t, { file: { tenants: [tenantA, ...others] } });
  admin = connect(world.address, { name: client, role: "coupon_admin", max: 1 });
  t.teardown(() => admin.end());
});

/** The functions called so far. */
const called = new Set<string>();

async function patch<T = unknown>(name: string, ...args: unknown[]): Promise<T> {
  called.add(name);
  const placeholders = args.map((_, index) => `$${index + 1}`).join(", ");
  const [row] = await admin.rows<{ answer: T }>(`select admin.${name}(${placeholders}) as answer`, args);
  return row!.answer;
}

const changed = (name: string, was: unknown, is: unknown) => ({ [name]: { old: was, new: is } });
const time = /^20\d\d-.*\+00:00$/;

/** Calls a patch whose last argument is the reason. The last audit entry says who did what and why. */
async function audited<T = unknown>(t: Test, audit: Audit, name: string, ...args: unknown[]): Promise<T> {
  const answer = await patch<T>(name, ...args);
  const [last] = await world.owner.rows(
    `select a.*, t.external_id as tenant, session_user as me
     from core.audit a left join core.tenant t using (tenant_id) order by a.audit_id desc limit 1`,
  );
  const usual = { action: name, reason: String(args.at(-1)).trim(), tenant: "ten_a" };
  fits(t, last, { ...usual, client, login: last!["me"] as string, ...audit }, `the audit entry of ${name}`);
  return answer;
}

/** Refused with this SQLSTATE or by this rule of a table. Nothing changes, and no audit entry is written. */
async function isRefused(t: Test, by: string, name: string, ...args: unknown[]): Promise<void> {
  const before = await readState(world.owner, { withRequests: true });
  const error = await patch(name, ...args).then(
    () => null,
    (reason: unknown) => reason as { constraint_name?: string; message: string },
  );
  const said = `${name} ${args.join(", ")}: ${error?.message ?? "not refused"}`;
  t.ok([sqlState(error), error?.constraint_name].includes(by), said);
  t.strictSame(await readState(world.owner, { withRequests: true }), before, "nothing changes");
}

/** Refuses each bad reason, and each unknown value of an argument by its index. The last argument is the reason. */
async function refusesBadArguments(t: Test, name: string, args: unknown[], unknown: Record<number, string[]> = {}) {
  for (const reason of [null, "", "  ", "\t\u00a0\n", "x".repeat(1_001)])
    await isRefused(t, "CP400", name, ...args, reason);
  for (const [index, values] of Object.entries(unknown))
    for (const value of values) await isRefused(t, "CP404", name, ...args.with(Number(index), value), "why");
}

const makeCoupon = async (state?: Parameters<Scenario["a"]["makeCoupons"]>[1]): Promise<Coupon> =>
  (await world.a.makeCoupons(1, state))[0]!;
const query = async (coupon: Coupon) => (await world.a.till.ok.query(coupon)).coupon;
const history = ({ id }: Coupon) => readCouponHistory(world.owner, id);

// By index of the argument: tenants that do not have the coupon, and IDs that no coupon has.
const unknown = { 0: ["ten_none", "ten_a2", "ten_b"], 1: ["cpn_none", "", `cpn_${"0".repeat(26)}`] };

/** The coupon was voided by the administrator, which shows as a voiding without a merchant and a caller. */
async function isVoided(t: Test, coupon: Coupon, reason: string): Promise<void> {
  const voided = { status: "VOIDED", events: [{ type: "coupon.voided", party: "pty_a" }], amounts: [] };
  fits(t, await history(coupon), voided);
  const text = "select merchant, caller, reason from report.voiding where coupon = $1";
  const [row] = await world.owner.rows(text, [coupon.id]);
  t.strictSame({ ...row }, { merchant: null, caller: null, reason });
}

t.test("void_coupon voids an unused coupon, released or not", async (t) => {
  for (const state of ["ISSUED", "not released"] as const) {
    const coupon = await makeCoupon(state);
    const { id } = coupon;
    await refusesBadArguments(t, "void_coupon", ["ten_a", id], unknown);
    await audited(
      t,
      { target: id, details: changed("status", "ISSUED", "VOIDED") },
      "void_coupon",
      "ten_a",
      id,
      " misprinted ",
    );
    await isVoided(t, coupon, "misprinted");
    t.equal((await query(coupon)).status, "VOIDED");
    await isRefused(t, "CP409", "void_coupon", "ten_a", id, "again");
  }
});

t.test("void_coupon refuses a locked, a redeemed and an expired coupon", async (t) => {
  for (const state of ["LOCKED by this lock", "REDEEMED", "EXPIRED"] as const)
    await isRefused(t, "CP409", "void_coupon", "ten_a", (await makeCoupon(state)).id, "why");
});

t.test("suspend_batch, resume_batch and recall_batch do what the operations do, and only once", async (t) => {
  const { maker, till } = world.a;
  const { id: batch, coupons } = await world.makeBatch(maker, "tpl_fixed", 2);
  const [first, second] = coupons as [Coupon, Coupon];
  for (const name of ["suspend_batch", "resume_batch", "recall_batch"])
    await refusesBadArguments(t, name, [batch], { 0: ["bat_none", ""] });
  let old = "usable";
  const happens = async (name: string, code: string, state: string) => {
    await audited(t, { target: batch, details: { batch: { old, new: state } } }, name, batch, "key stolen");
    old = state;
    t.equal((await till.redeem({ ...first }, { currency: "USD" })).json.code, code);
    const before = await readState(world.owner);
    await patch(name, batch, "again");
    t.strictSame(await readState(world.owner), before);
  };
  await happens("suspend_batch", "BATCH_SUSPENDED", "suspended");
  await happens("resume_batch", "CURRENCY_MISMATCH", "usable");
  await happens("recall_batch", "BATCH_SUSPENDED", "recalled");
  await isRefused(t, "CP409", "resume_batch", batch, "why");
  await isRefused(t, "CP409", "extend_coupon", "ten_a", first.id, "2098-01-01", "why");
  await world.steps.recall();
  for (const coupon of [first, second]) await isVoided(t, coupon, "key stolen");
});

t.test("release_lock cancels a live lock: its confirm is refused, and the coupon is free", async (t) => {
  const { till } = world.a;
  const coupon = await makeCoupon();
  const { id } = coupon;
  await isRefused(t, "CP409", "release_lock", "ten_a", id, "no lock");
  const { redemption } = await till.ok.lock(coupon);
  await refusesBadArguments(t, "release_lock", ["ten_a", id], unknown);
  const recorded = { target: id, details: { redemption } };
  t.equal(await audited(t, recorded, "release_lock", "ten_a", id, "till broke"), redemption);
  fits(t, await history(coupon), { status: "ISSUED", redemptions: ["CANCELLED"], events: [] });
  fits(t, (await till.confirm(coupon)).json, { code: "LOCK_CANCELLED" });
  await till.ok.redeem(coupon);
  await isRefused(t, "CP409", "release_lock", "ten_a", id, "redeemed");
});

t.test("extend_coupon moves the end of a coupon forward and back", async (t) => {
  const { till } = world.a;
  const coupon = await makeCoupon();
  const { id } = coupon;
  await refusesBadArguments(t, "extend_coupon", ["ten_a", id, "2098-01-01"], unknown);
  const details = { status: "ISSUED", valid_to: /^2098-01-01/, valid_to_before: /^2099-01-01/ };
  await audited(t, { target: id, details }, "extend_coupon", "ten_a", id, "2098-01-01", "goodwill");
  fits(t, await query(coupon), { status: "ISSUED", valid_to: "2098-01-01T00:00:00.000Z" });
  await patch("extend_coupon", "ten_a", id, "2021-01-01", "ended");
  fits(t, await query(coupon), { status: "EXPIRED", valid_to: "2021-01-01T00:00:00.000Z" });
  fits(t, (await till.redeem(coupon)).json, { code: "COUPON_EXPIRED" });
  await patch("extend_coupon", "ten_a", id, "2098-01-01", "and again");
  await till.ok.redeem(coupon);
  await isRefused(t, "CP409", "extend_coupon", "ten_a", id, "2099-01-01", "redeemed");
});

t.test("extend_coupon revives an expired coupon, and refuses an end that is too early or infinite", async (t) => {
  const { coupons } = await world.makeBatch(world.a.maker, "tpl_fixed", 1, { isOver: true });
  const [coupon] = coupons as [Coupon];
  const { id } = coupon;
  await world.steps.expire();
  const early = "valid_to must be later than the coupon's valid_from, 2020-01-01T00:00:00.000Z";
  const late = "valid_to must be before the year 10000";
  for (const [validTo, message] of Object.entries({
    "2020-01-01 00:00+00": early,
    "-infinity": early,
    infinity: late,
    "10000-01-01 00:00+00": late,
  })) {
    // Cast from text: the driver cannot send infinity as a time.
    const error = await admin
      .rows("select admin.extend_coupon('ten_a', $1, $2::text::timestamptz, 'why')", [id, validTo])
      .catch((reason: unknown) => reason);
    fits(t, error, { code: "CP400", message }, validTo);
    t.notMatch(error, { detail: /./ }, "no row is shown");
  }
  await isRefused(t, "CP400", "extend_coupon", "ten_a", id, null, "no end");
  fits(t, await history(coupon), { status: "EXPIRED" });
  await patch("extend_coupon", "ten_a", id, "2098-01-01", "goodwill");
  fits(t, await history(coupon), { status: "ISSUED" });
  await world.a.till.ok.redeem(coupon);
});

t.test("add_delegate and remove_delegate take effect with the next call", async (t) => {
  const [coupon] = (await world.b.makeCoupons(1)) as [Coupon];
  const ask = async () => (await world.as("ak_other", "mch_b").query(coupon)).status;
  const foreign = { 0: ["ten_none", "ten_a"], 1: ["mch_none", "mch_a"], 2: ["pty_none", "pty_a"] };
  const target = ["ten_b", "mch_b", "pty_other"];
  const recorded = { target: "mch_b", tenant: "ten_b", details: { party: "pty_other" } };
  t.equal(await ask(), 404);
  await refusesBadArguments(t, "add_delegate", target, foreign);
  await audited(t, recorded, "add_delegate", ...target, "new contract");
  t.equal(await ask(), 200);
  await t.resolves(patch("add_delegate", ...target, "adding twice is no error"));
  await refusesBadArguments(t, "remove_delegate", target, foreign);
  await audited(t, recorded, "remove_delegate", ...target, "contract ended");
  t.equal(await ask(), 404);
  await isRefused(t, "CP404", "remove_delegate", ...target, "no longer a delegate");
});

t.test("revoke_credential takes effect with the next call and cannot be undone", async (t) => {
  const { till: first, otherTill: second } = world.a;
  const ask = () => second.get("/v1/batches/bat_none");
  const refused = { status: 401, json: { code: "UNAUTHENTICATED" } };
  t.equal((await ask()).status, 404);
  await refusesBadArguments(t, "revoke_credential", ["ak_a_second"], { 0: ["ak_none", ""] });
  const recorded = { target: "ak_a_second", details: changed("status", "in use", "revoked") };
  const at = await audited(t, recorded, "revoke_credential", "ak_a_second", "leaked");
  fits(t, await ask(), refused);
  t.equal((await first.get("/v1/batches/bat_none")).status, 404);
  const again = { ...recorded, details: changed("status", "revoked", "revoked") };
  t.strictSame(await audited(t, again, "revoke_credential", "ak_a_second", "again"), at, "the first time stays");
  await world.apply({ tenants: [tenants[0]] });
  fits(t, await ask(), refused, "provisioning does not bring it back");
});

t.test("The codes of a batch are handed out until destroy_codes destroys them", async (t) => {
  const { batch } = await world.a.maker.ok.createBatch("tpl_fixed", 5);
  const target = batch.external_id as string;
  for (const [name, rest] of [
    ["open_export", true],
    ["destroy_codes", "why"],
  ] as const) {
    await isRefused(t, "CP404", name, "bat_none", rest);
    await isRefused(t, "CP409", name, target, rest);
  }
  await world.mint();
  await isRefused(t, "CP409", "open_export", target, false);
  const exported = { action: "export_codes", target, reason: null, details: { status: "COMPLETED", total_count: 5 } };
  await audited(t, exported, "open_export", target, true);

  await refusesBadArguments(t, "destroy_codes", [target], { 0: ["bat_none", ""] });
  const at = await audited(
    t,
    { target, details: changed("codes", "kept", "destroyed") },
    "destroy_codes",
    target,
    "printed",
  );
  t.strictSame(await patch("destroy_codes", target, "again"), at, "a second call changes nothing");
  t.equal((await world.owner.rows("select from core.audit where action = 'destroy_codes'")).length, 1);
  await isRefused(t, "CP409", "open_export", target, true);

  const { id } = await world.makeBatch(world.a.maker, "tpl_fixed", 1);
  await patch("suspend_batch", id, "stolen");
  await t.resolves(patch("open_export", id, false), "a suspended batch may be printed before it is resumed");
  await patch("recall_batch", id, "stolen");
  await isRefused(t, "CP409", "open_export", id, true);
});

t.test("has_tenants is false on a fresh installation and true once tenants exist", async (t) => {
  const fresh = await scenario(t, { file: null });
  fits(t, await fresh.admin.rows("select admin.has_tenants() as answer"), [{ answer: false }]);
  t.equal(await patch("has_tenants"), true);
});

const newFingerprint = () => randomBytes(16).toString("hex");
const ownKeys = (): Record<string, string> => JSON.parse(fingerprintKeys(world.keys));
const listVersions = async () =>
  (await world.owner.rows("select version from core.master_key order by 1")).map((row) => row["version"]);

async function register(keys: Record<string, string | null>, by: Pick<Session, "rows"> = world.admin) {
  const text = "select version, problem from rules.register_keys($1::text::jsonb)";
  return [...(await by.rows<KeyProblem>(text, [JSON.stringify(keys)]))];
}

t.test("A new version is registered once; another key of that version is refused and changes nothing", async (t) => {
  const [own, second] = [ownKeys(), newFingerprint()];
  t.strictSame(await register({ ...own, 2: second }), []);
  t.strictSame(await register({ ...own, 2: second }), []);
  const differs = [{ version: "2", problem: "DIFFERS" }];
  t.strictSame(await register({ ...own, 2: newFingerprint(), 3: newFingerprint() }), differs);
  t.strictSame(await listVersions(), ["1", "2"], "a program that is refused registers nothing");
  t.strictSame(await register({ ...own, 2: second }), []);
  await patch("forget_key", "2", "end of the test");
  const withoutFingerprint = await register({ 1: null, 5: newFingerprint() });
  t.strictSame(withoutFingerprint, [{ version: "1", problem: "DIFFERS" }]);
  t.strictSame(await listVersions(), ["1"]);
});

t.test("Of two programs that register different keys of one version at once, the second is refused", async (t) => {
  const [first, second] = [1, 2].map(() => openSession(world.address, { name: "coupon test", role: "coupon_admin" }));
  t.teardown(() => Promise.all([first!.end(), second!.end()]));
  await first!.run("begin");
  t.strictSame(await register({ ...ownKeys(), 4: newFingerprint() }, first), []);
  const later = register({ ...ownKeys(), 4: newFingerprint() }, second);
  await untilBlocked(world, 1);
  await first!.run("commit");
  t.strictSame(await later, [{ version: "4", problem: "DIFFERS" }]);
  await patch("forget_key", "4", "end of the test");
});

// Runs `act` in a transaction of a superuser without triggers, and rolls back.
async function pretend(change: string, act: (session: Session) => Promise<void>): Promise<void> {
  const session = await world.openPsql({ triggers: false });
  await session.run(`begin; ${change}`);
  await act(session);
  await session.run("rollback");
}

t.test("A version that nothing needs may be missing; a version is in use through a batch or a secret", async (t) => {
  await world.a.makeCoupons(2);
  const missing = [{ version: "1", problem: "MISSING" }];
  const secret = (version: number) => `overlay(sealed_secret placing '${version}'::bytea from 1)`;
  // A microsecond later, each of them has ended.
  const week = "now() - interval '7 days' + interval '1 microsecond'";
  const day = "now() - interval '1 day' + interval '1 microsecond'";
  const extend = (until: string) => `
    insert into core.coupon_extension select tenant_id, coupon_id, ${until} from core.coupon limit 1`;
  const replace = (at: string) =>
    `insert into core.replaced_secret select tenant_id, party_id, ${at}, '1' from core.webhook`;
  const unused = `
    delete from core.coupon_extension;
    delete from core.replaced_secret;
    update core.batch set valid_to = now() - interval '7 days', valid_from = '2020-01-01';
    ${extend("now() - interval '7 days'")};
    ${replace("now() - interval '1 day'")};
    update core.credential set revoked_at = now();
    update core.webhook set sealed_secret = ${secret(2)}`;
  const uses: Record<string, string> = {
    "a lock that may still be confirmed": `update core.batch set valid_to = ${week}`,
    "an extended coupon": `delete from core.coupon_extension; ${extend(week)}`,
    "a credential": "update core.credential set revoked_at = null",
    "a webhook": `update core.webhook set sealed_secret = ${secret(1)}`,
    "the previous secret of a webhook": `delete from core.replaced_secret; ${replace(day)}`,
  };
  for (const [what, change] of Object.entries({ ...uses, nothing: "" })) {
    await pretend(`${unused}; ${change}`, async (session) => {
      const isInUse = change !== "";
      const shown = await session.rows("select is_in_use from report.master_key where version = '1'");
      t.equal(shown[0]!["is_in_use"], isInUse, what);
      t.strictSame(await register({ 7: newFingerprint() }, session), isInUse ? missing : [], what);
    });
  }
  t.strictSame(await register({ 7: newFingerprint() }), missing);
  t.strictSame(await listVersions(), ["1"]);
});

t.test("forget_key removes a key that nothing was made with, and no other", async (t) => {
  await register({ ...ownKeys(), 5: newFingerprint() });
  await refusesBadArguments(t, "forget_key", ["5"], { 0: ["6", "", "55"] });
  const details = changed("registered_at", time, null);
  await audited(t, { target: "5", tenant: null, details }, "forget_key", "5", "mistyped");
  t.strictSame(await listVersions(), ["1"]);
  await isRefused(t, "CP409", "forget_key", "1", "it made batches");
  await pretend("delete from core.coupon; delete from core.batch", async (session) => {
    const refusal = session.rows("select admin.forget_key('1', 'secrets are sealed with it')");
    await t.rejects(refusal, { message: "codes or secrets were made with key 1, so it stays registered" });
  });
});

const parties = { 0: ["ten_none", "ten_b"], 1: ["pty_none", "pty_maker", "pty_dist"] };
const sequence = () => world.steps.sequence();
const redeem = async () => (await makeCoupon("REDEEMED")).redemption;

type Webhook = { sealed_secret: Uint8Array; deliveries: number };
async function readWebhook(): Promise<Webhook> {
  const [row] = await world.owner.rows<Webhook>(
    `select w.sealed_secret, (select s.sealed_secret from core.replaced_secret s) as replaced, w.secret_hash,
       w.rotated_at is not null as is_rotated,
       w.disabled_at is not null as is_disabled,
       count(d.event_id)::int as deliveries, count(d.parked_at)::int as parked
     from core.webhook w left join core.delivery d using (tenant_id, party_id) group by w.tenant_id, w.party_id`,
  );
  return row!;
}

t.test("A rotation keeps the old secret, disable_webhook parks deliveries, replay_parked makes them due", async (t) => {
  await redeem();
  await sequence();
  const { deliveries, sealed_secret: replaced } = await readWebhook();
  t.ok(deliveries >= 3);
  const [sealed_secret, secret_hash] = [Buffer.from("one"), Buffer.from("two")];
  const rotated = { sealed_secret, replaced, secret_hash, is_rotated: true };
  const enabled = { ...changed("disabled_at", time, null), ...changed("paused_until", null, null) };
  const steps: [name: string, args: unknown[], details: object, then: object, answer?: unknown][] = [
    ["set_webhook_secret", [sealed_secret, secret_hash], { webhook_secret: "replaced" }, rotated],
    ["disable_webhook", [], changed("disabled_at", null, time), { is_disabled: true, parked: deliveries }, ""],
    ["enable_webhook", [], enabled, { is_disabled: false, parked: deliveries }, ""],
    ["replay_parked", [], { events: deliveries }, { parked: 0, deliveries }, deliveries],
  ];
  for (const [name, more, details, then, answer] of steps) {
    const args = ["ten_a", "pty_a", ...more];
    await refusesBadArguments(t, name, args, parties);
    const answered = await audited(t, { target: "pty_a", details }, name, ...args, "they asked");
    if (answer !== undefined) t.equal(answered, answer, name);
    fits(t, await readWebhook(), then, name);
  }
});

t.test("replay_event and replay_range deliver again what was sequenced", async (t) => {
  const { deliveries } = await readWebhook();
  await dropDeliveries(world);
  const [event] = await world.owner.rows<{ id: string }>(
    `select rules.format_id('evt', event_id) as id from rules.event
     where event_type = 'coupon.redeemed' and tenant_id = 1 order by event_seq desc limit 1`,
  );
  const { id } = event!;
  const others = { 0: ["ten_none", "ten_b"], 1: ["evt_none", `evt_${"0".repeat(26)}`] };
  await refusesBadArguments(t, "replay_event", ["ten_a", id], others);
  await audited(t, { target: id, details: { party: "pty_a" } }, "replay_event", "ten_a", id, "one is missing");
  fits(t, await readWebhook(), { deliveries: 1 });

  await refusesBadArguments(t, "replay_range", ["ten_a", "pty_a", "2020-01-01", "2098-01-01"], parties);
  t.equal(await patch("replay_range", "ten_a", "pty_a", "2020-01-01", "2020-01-02", "nothing"), 0);
  const edges = await world.owner.rows(
    `select admin.replay_range('ten_a', 'pty_a', '2020-01-01', at, 'to is exclusive') as before,
       admin.replay_range('ten_a', 'pty_a', at, at + interval '1 microsecond', 'from is inclusive') as at
     from (select max(e.recorded_at) as at from rules.sequenced_event e join core.party using (tenant_id, party_id)
           where external_id = 'pty_a') x`,
  );
  t.strictSame([...edges], [{ before: deliveries - 1, at: 1 }]);
  // The replay skips this event, which is not sequenced yet: the sequencer creates its deliveries, and would have to
  // wait for an open patch that had created them.
  await redeem();
  const [from, to] = ["2020-01-01T00:00:00+00:00", "2098-01-01T00:00:00+00:00"];
  const recorded = { target: "pty_a", details: { from, to, events: deliveries } };
  t.equal(await audited(t, recorded, "replay_range", "ten_a", "pty_a", from, to, "all"), deliveries);
  fits(t, await readWebhook(), { deliveries });
});

const pull = async (accessKey: string, cursor = "") =>
  (await world.as(accessKey).get(`/v1/events?limit=1000${cursor && `&cursor=${cursor}`}`)).json;
const idsOf = ({ events }: { events: { event_id: string }[] }) => events.map(({ event_id }) => event_id);
const redeemAndSequence = async () => {
  const id = (await redeem()).replace("red", "evt");
  await sequence();
  return id;
};

t.test("After note_restore, a cursor from after the restored moment skips no new event", async (t) => {
  await redeemAndSequence();
  // Cursors as from the lost time: one of the tenant's own feed, and one for a feed that is empty after the restore.
  const { events, next_cursor: lost } = await pull("ak_a");
  fits(t, await pull("ak_a_stranger", lost), { code: "INVALID_REQUEST" });
  await refusesBadArguments(t, "note_restore", []);
  const noted = { target: "database", tenant: null, details: { feed_base: /^\d+$/ } };
  await audited(t, noted, "note_restore", "taken back to noon");
  t.strictSame(await findBrokenInvariants(world.owner), [], "a feed may end with skipped positions");
  for (const key of ["ak_a", "ak_a_stranger"])
    t.strictSame(await pull(key, lost), { events: [], next_cursor: lost }, key);
  const id = await redeemAndSequence();
  const after = await pull("ak_a", lost);
  t.strictSame(idsOf(after), [id]);
  t.strictSame((await pull("ak_a")).events, [...events, ...after.events], "the order stays the same");
});

t.test("A step of the sequencer does nothing beside a note_restore, and a note_restore waits for a step", async (t) => {
  await sequence();
  await redeem();
  const psql = openSession(world.address, { name: "coupon test", role: "coupon_admin" });
  const worker = openSession(world.address, { name: "coupon test", role: "coupon_worker" });
  t.teardown(() => Promise.all([psql.end(), worker.end()]));
  const step = async () => ({ ...(await worker.rows("select * from jobs.sequence_events(10)"))[0] });
  await worker.run("set lock_timeout = '20s'");
  await psql.run("begin; select admin.note_restore('still open')");
  t.strictSame(await step(), { sequenced: 0, is_drained: false });
  await psql.run("rollback");
  await worker.run("begin");
  fits(t, await step(), { is_drained: true });
  const note = psql.run("select admin.note_restore('after the step')");
  await untilBlocked(world, 1).finally(() => worker.run("commit"));
  await note;
});

t.test("A second note_restore raises the positions again, even if the clock has been set back", async (t) => {
  // As if the clock had been an hour fast at the first one.
  const hour = "3600000000";
  await world.owner.rows(`update core.sequencer set feed_base = feed_base + ${hour}`);
  await world.owner.rows(
    `update core.feed set last_position = last_position + ${hour}, skipped_count = skipped_count + ${hour}`,
  );
  await redeemAndSequence();
  // Two more events were lost with the second restore, after a reader had pulled them.
  const [lost] = await world.owner.rows<{ cursor: string }>(
    "select rules.format_cursor(max(last_position) + 2) as cursor from core.feed",
  );
  await patch("note_restore", "second, on a right clock");
  t.strictSame(await pull("ak_a", lost!.cursor), { events: [], next_cursor: lost!.cursor });
  const id = await redeemAndSequence();
  t.strictSame(idsOf(await pull("ak_a", lost!.cursor)), [id]);
  t.strictSame(await findBrokenInvariants(world.owner), []);
});

t.test("The end of a lock and the validity of a used coupon that psql moves are in the audit", async (t) => {
  const [coupon] = await world.a.makeCoupons(1, "LOCKED by this lock");
  const [row] = await world.owner.rows<{ before: string; after: string }>(
    `update core.redemption r set lock_expires_at = r.lock_expires_at + interval '1 day'
     from core.redemption o
     where o.redemption_id = r.redemption_id and r.redemption_id = rules.parse_id('red', $1)
     returning to_jsonb(o.lock_expires_at) #>> '{}' as before, to_jsonb(r.lock_expires_at) #>> '{}' as after`,
    [coupon!.redemption],
  );
  const [entry] = await world.owner.rows("select * from report.audit order by audit_id desc limit 1");
  fits(t, entry, { tenant: "ten_a", action: "move_lock_end", target: coupon!.redemption, reason: null });
  t.strictSame(entry!["details"], { lock_expires_at_before: row!.before, lock_expires_at: row!.after });

  const [used, unused] = [(await world.a.makeCoupons(1, "REDEEMED"))[0]!, (await world.a.makeCoupons(1))[0]!];
  const move = (id: string) =>
    world.owner.rows(
      `update core.coupon set valid_from = '2020-01-01', valid_to = '2030-01-01Z'
       where coupon_id = rules.parse_id('cpn', $1)`,
      [id],
    );
  await move(used.id);
  await move(unused.id);
  const [moved] = await world.owner.rows("select * from report.audit order by audit_id desc limit 1");
  fits(t, moved, { tenant: "ten_a", action: "move_validity", target: used.id });
  fits(t, moved!["details"], { status: "REDEEMED", valid_to_before: /^2099/, valid_to: "2030-01-01T00:00:00+00:00" });
});

t.test("Every function of admin was called, apart from those that other tests call", async (t) => {
  const volatile = await world.owner.rows<{ name: string }>(
    `select proname as name from pg_proc
     where pronamespace = 'admin'::regnamespace and provolatile = 'v' order by 1`,
  );
  const names = volatile.map(({ name }) => name);
  t.strictSame(
    names.filter((name) => !called.has(name)),
    `apply close_tenants end_split join_cell mark_drained open_tenants perform_in_sandbox release_tenants reset_sandbox
     rotate_credential take_tenants test_webhook write_nonces`.split(/\s+/),
  );
});
