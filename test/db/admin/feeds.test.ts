// The administrator's patches of webhooks and feeds: secrets, disabling, replays, and the note of a restore.
import t from "tap";
import { openSession } from "../../../src/database/connect.ts";
import { fits } from "../../support/fits.ts";
import { findBrokenInvariants } from "../../support/inspect.ts";
import { everyFunctionIsCalled, startPatches, type Patches } from "../../support/patches.ts";
import { tenants } from "../../support/tenants.ts";
import { untilBlocked } from "../../support/race.ts";
import type { Running } from "../../support/service.ts";
import { dropDeliveries } from "../../support/subscribers.ts";

const [tenantA, strangerA, tenantB] = structuredClone(tenants) as [any, any, any];
tenantA.parties[0].webhook = {
  url: "https://example.com/hook",
  secret: `whsec_${Buffer.alloc(32, 1).toString("base64")}`,
};

let patches: Patches;
let service: Running;
t.before(async () => {
  patches = await startPatches(t, [tenantA, strangerA, tenantB]);
  ({ service } = patches);
});

const unknown = { 0: ["ten_none", "ten_b"], 1: ["pty_none", "pty_maker", "pty_dist"] };
const sequence = () => service.owner.rows("select jobs.sequence_events(10000)");
const redeem = async () =>
  (await patches.post("/v1/coupons/redeem", { coupon: (await patches.makeCoupon()).code })).json.redemption as string;

type Webhook = {
  sealed_secret: Uint8Array;
  replaced: Uint8Array | null;
  parked: number;
  deliveries: number;
};
async function readWebhook(): Promise<Webhook> {
  const [row] = await service.owner.rows<Webhook>(
    `select w.sealed_secret, (select s.sealed_secret from core.replaced_secret s) as replaced, w.secret_hash,
       w.rotated_at is not null as is_rotated,
       w.disabled_at is not null as is_disabled,
       count(d.event_id)::int as deliveries, count(d.parked_at)::int as parked
     from core.webhook w left join core.delivery d using (tenant_id, party_id) group by w.tenant_id, w.party_id`,
  );
  return row!;
}

t.test("set_webhook_secret keeps the old secret beside the new one", async (t) => {
  const { patch, isAudited, isRefused } = patches;
  const [sealed, hash] = [Buffer.from("one"), Buffer.from("two")];
  const first = await readWebhook();
  for (const reason of [null, " "])
    await isRefused(t, "CP400", "set_webhook_secret", "ten_a", "pty_a", sealed, hash, reason);
  await isRefused(t, "CP404", "set_webhook_secret", "ten_a", "pty_none", sealed, hash, "why");
  await patch("set_webhook_secret", "ten_a", "pty_a", sealed, hash, "rotation");
  await isAudited(t, { action: "set_webhook_secret", target: "pty_a", reason: "rotation", tenant: "ten_a" });
  fits(t, await readWebhook(), {
    sealed_secret: sealed,
    replaced: first.sealed_secret,
    secret_hash: hash,
    is_rotated: true,
  });
});

t.test("disable_webhook parks all waiting deliveries, and the replays make them due again", async (t) => {
  const { patch, isAudited, isRefused, refusesBadArguments } = patches;
  await redeem();
  await sequence();
  const { deliveries } = await readWebhook();
  t.ok(deliveries >= 3);
  await refusesBadArguments(t, "disable_webhook", ["ten_a", "pty_a"], unknown);
  await patch("disable_webhook", "ten_a", "pty_a", "they asked");
  await isAudited(t, { action: "disable_webhook", target: "pty_a", reason: "they asked", tenant: "ten_a" });
  fits(t, await readWebhook(), { is_disabled: true, parked: deliveries });
  await refusesBadArguments(t, "enable_webhook", ["ten_a", "pty_a"], unknown);
  await patch("enable_webhook", "ten_a", "pty_a", "they are back");
  await isAudited(t, { action: "enable_webhook", target: "pty_a", reason: "they are back", tenant: "ten_a" });
  fits(t, await readWebhook(), { is_disabled: false, parked: deliveries });
  await refusesBadArguments(t, "replay_parked", ["ten_a", "pty_a"], unknown);
  t.equal(await patch("replay_parked", "ten_a", "pty_a", "they missed it"), deliveries);
  await isAudited(
    t,
    { action: "replay_parked", target: "pty_a", reason: "they missed it", tenant: "ten_a" },
    { events: deliveries },
  );
  fits(t, await readWebhook(), { parked: 0, deliveries });

  await dropDeliveries(service.address);
  const [event] = await service.owner.rows<{ id: string }>(
    `select rules.format_id('evt', event_id) as id from rules.event
     where event_type = 'coupon.redeemed' order by event_seq desc limit 1`,
  );
  const { id } = event!;
  await refusesBadArguments(t, "replay_event", ["ten_a", id], {
    0: ["ten_none", "ten_b"],
    1: ["evt_none", `evt_${"0".repeat(26)}`],
  });
  await patch("replay_event", "ten_a", id, "one is missing");
  await isAudited(t, { action: "replay_event", target: id, reason: "one is missing", tenant: "ten_a" });
  fits(t, await readWebhook(), { deliveries: 1 });
  for (const reason of [null, " "])
    await isRefused(t, "CP400", "replay_range", "ten_a", "pty_a", "2020-01-01", "2098-01-01", reason);
  await isRefused(t, "CP404", "replay_range", "ten_a", "pty_none", "2020-01-01", "2098-01-01", "why");
  t.equal(await patch("replay_range", "ten_a", "pty_a", "2020-01-01", "2020-01-02", "nothing"), 0);
  // The replay skips this event, which is not sequenced yet: the sequencer creates its deliveries, and would have to
  // wait for an open patch that had created them.
  await redeem();
  t.equal(await patch("replay_range", "ten_a", "pty_a", "2020-01-01", "2098-01-01", "all"), deliveries);
  await isAudited(
    t,
    { action: "replay_range", target: "pty_a", reason: "all", tenant: "ten_a" },
    { from: "2020-01-01T00:00:00+00:00", to: "2098-01-01T00:00:00+00:00", events: deliveries },
  );
  fits(t, await readWebhook(), { deliveries });
});

t.test("After note_restore, a cursor from after the restored moment skips no new event", async (t) => {
  const { patch, refusesBadArguments } = patches;
  const pull = async (accessKey: string, cursor = "") =>
    (await service.as(accessKey).get(`/v1/events?limit=1000${cursor && `&cursor=${cursor}`}`)).json;
  await redeem();
  await sequence();
  // Cursors as from the lost time: one of the tenant's own feed, and one for a feed that is empty after the restore.
  const { events, next_cursor: lost } = await pull("ak_a");
  fits(t, await pull("ak_a_stranger", lost), { code: "INVALID_REQUEST" });
  await refusesBadArguments(t, "note_restore", [], {});
  await patch("note_restore", "taken back to noon");
  t.strictSame(await findBrokenInvariants(service.owner), [], "a feed may end with skipped positions");
  const [audited] = await service.owner.rows(
    "select action, target, reason, tenant_id from core.audit order by audit_id desc limit 1",
  );
  t.strictSame(
    { ...audited },
    { action: "note_restore", target: "database", reason: "taken back to noon", tenant_id: null },
  );
  t.strictSame(await pull("ak_a", lost), { events: [], next_cursor: lost });
  t.strictSame(await pull("ak_a_stranger", lost), { events: [], next_cursor: lost });
  // A cursor among the skipped positions, as after two restores.
  const [skipped] = await service.owner.rows<{ cursor: string }>(
    "select rules.format_cursor(max(f.last_position) - 5) as cursor from core.feed f",
  );
  t.strictSame(await pull("ak_a", skipped!.cursor), { events: [], next_cursor: skipped!.cursor });
  const id = (await redeem()).replace("red", "evt");
  await sequence();
  const after = await pull("ak_a", lost);
  t.strictSame(await pull("ak_a", skipped!.cursor), after);
  t.strictSame(
    after.events.map(({ event_id }: { event_id: string }) => event_id),
    [id],
  );
  t.strictSame((await pull("ak_a")).events, [...events, ...after.events], "the order stays the same");
  await patch("note_restore", "and again");
  await redeem();
  await sequence();
  t.equal((await pull("ak_a", after.next_cursor)).events.length, 1);
  t.strictSame([...(await service.owner.rows("select invariant, subject from report.invariants"))], []);
});

t.test("A step of the sequencer does nothing beside a note_restore, and a note_restore waits for a step", async (t) => {
  await sequence();
  await redeem();
  const psql = openSession(service.address, { name: "coupon test", role: "coupon_admin" });
  const worker = openSession(service.address, { name: "coupon test", role: "coupon_worker" });
  t.teardown(() => Promise.all([psql.end(), worker.end()]));
  const step = async () => ({ ...(await worker.rows("select * from jobs.sequence_events(10)"))[0] });
  await worker.run("set lock_timeout = '20s'");
  await psql.run("begin; select admin.note_restore('still open')");
  t.strictSame(await step(), { sequenced: 0, is_drained: false });
  await psql.run("rollback");
  await worker.run("begin");
  fits(t, await step(), { is_drained: true });
  const note = psql.run("select admin.note_restore('after the step')");
  await untilBlocked(service, 1).finally(() => worker.run("commit"));
  await note;
});

t.test("A second note_restore raises the positions again, even if the clock has been set back", async (t) => {
  const { patch } = patches;
  const pull = async (cursor: string) => (await service.as("ak_a").get(`/v1/events?limit=1000&cursor=${cursor}`)).json;
  await patch("note_restore", "first");
  // As if the clock had been an hour fast.
  const hour = "3600000000";
  await service.owner.rows(`update core.sequencer set feed_base = feed_base + ${hour}`);
  await service.owner.rows(
    `update core.feed set last_position = last_position + ${hour}, skipped_count = skipped_count + ${hour}`,
  );
  await redeem();
  await sequence();
  // Two more events were lost with the second restore, after a reader had pulled them.
  const [lost] = await service.owner.rows<{ cursor: string; base: string }>(
    `select rules.format_cursor(max(f.last_position) + 2) as cursor, max(s.feed_base)::text as base
     from core.feed f, core.sequencer s`,
  );
  await patch("note_restore", "second, on a right clock");
  const [now] = await service.owner.rows<{ base: string; audited: string }>(
    `select s.feed_base::text as base, a.details ->> 'feed_base' as audited
     from core.sequencer s, core.audit a order by a.audit_id desc limit 1`,
  );
  t.ok(BigInt(now!.base) > BigInt(lost!.base), `${now!.base} is above ${lost!.base}`);
  t.equal(now!.audited, now!.base, "the audit entry says the base");
  t.strictSame(await pull(lost!.cursor), { events: [], next_cursor: lost!.cursor });
  const id = (await redeem()).replace("red", "evt");
  await sequence();
  t.strictSame(
    (await pull(lost!.cursor)).events.map(({ event_id }: { event_id: string }) => event_id),
    [id],
  );
  t.strictSame([...(await service.owner.rows("select invariant, subject from report.invariants"))], []);
});

t.test("Every function of this file was called", (t) => everyFunctionIsCalled(t, patches, "feeds"));
