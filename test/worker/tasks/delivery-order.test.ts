// Which deliveries a round leases, and in which order: redemptions go before what expires, is voided or is sent again,
// but of one coupon nothing overtakes, and nothing is starved.
import { randomUUID } from "node:crypto";
import t from "tap";
import type { Coupon } from "../../support/caller.ts";
import { fits } from "../../support/fits.ts";
import { startReceiver } from "../../support/receiver.ts";
import { newRequestId } from "../../support/request-id.ts";
import { scenario } from "../../support/scenario.ts";
import { dropDeliveries } from "../../support/subscribers.ts";
import { openWorkerSession } from "../../support/worker-session.ts";
import { createWorkerSteps } from "../../support/worker-steps.ts";

const world = await scenario(t);
const { till, distributor, makeCoupons, addTemplate, expire, tenant, distributorParty } = world.b;
const session = await openWorkerSession(t, world.address);
const holder = randomUUID();
const subscribe = (url: string) =>
  world.apply({
    tenants: [
      { id: tenant, name: "B", variant: "B", parties: [{ id: distributorParty, name: "D", webhook: { url } }] },
    ],
  });

/** New coupons, of whose batch no event waits. */
async function prepare(count: number, template?: string): Promise<Coupon[]> {
  await subscribe("http://127.0.0.1:9");
  const coupons = await makeCoupons(count, "ISSUED", template);
  await world.steps.sequence();
  await dropDeliveries(world);
  return coupons;
}

type Leased = { event_id: string; external_id: string; attempt: number; event: string };

/** What a round would send, in order. */
async function lease() {
  const rows = await world.owner.rows<Leased>(
    `select l.event_id, l.external_id, l.attempt, l.event
     from core.webhook w, jobs.lease_deliveries(w.tenant_id, w.party_id, $1, $2, $3) l
     where w.disabled_at is null`,
    [session.number, holder, 32],
  );
  return rows.map((row) => ({ ...row, type: (JSON.parse(row.event) as [string])[0] }));
}

async function take(leased: Leased[], http_status = 204): Promise<void> {
  const [w] = await world.owner.rows<{ tenant_id: number; party_id: number }>(
    "select tenant_id, party_id from core.webhook",
  );
  const attempts = leased.map(({ event_id, attempt }) => ({
    event_id,
    attempt,
    http_status,
    duration_ms: 1,
    is_taken: http_status === 204,
  }));
  await world.worker.rows("select jobs.record_deliveries($1, $2, $3, $4::text::jsonb)", [
    w!.tenant_id,
    w!.party_id,
    holder,
    JSON.stringify(attempts),
  ]);
}

const each = (coupons: Coupon[], act: (coupon: Coupon) => Promise<unknown>) => Promise.all(coupons.map(act));
const typesOf = (leased: { type: string }[]) => leased.map(({ type }) => type);

t.test("Redemptions go first; what waits behind gets a fifth of each round", async (t) => {
  const coupons = await prepare(90);
  await each(coupons.slice(0, 45), (coupon) => till.ok.void(coupon));
  await world.steps.sequence();
  t.strictSame(new Set(typesOf(await lease())), new Set(["coupon.voided"]), "a round of what waits behind alone");
  await each(coupons.slice(45), (coupon) => till.ok.redeem(coupon));
  await world.steps.sequence();

  const round = await lease();
  const behind = (rows: { type: string }[]) => typesOf(rows).filter((type) => type === "coupon.voided").length;
  t.strictSame([round.length, behind(round)], [32, 7]);
  for (let sent = 2; sent <= 32; sent += 1) {
    t.equal(behind(round.slice(0, sent)), Math.floor((sent + 3) / 5), `of the first ${sent}`);
  }
  t.equal(round[0]!.type, "coupon.redeemed");
  await take(round);
  const next = await lease();
  t.strictSame([next.length, behind(next)], [32, 12], "the last 20 redemptions, then what waits behind");
  t.equal(
    next.findLastIndex(({ type }) => type === "coupon.redeemed"),
    24,
  );
});

t.test("A worker leases again after half a second, so a slow receiver does not delay a redemption", async (t) => {
  const [redeemed, ...voided] = (await prepare(33)) as [Coupon, ...Coupon[]];
  const receiver = await startReceiver(t, (response) => void setTimeout(() => response.writeHead(204).end(), 250));
  await subscribe(receiver.url);
  await each(voided, (coupon) => till.ok.void(coupon));
  await world.steps.sequence();
  let leases = 0;
  // The redemption happens when the first round has been leased.
  const database = {
    ...world.worker,
    async rows<T>(text: string, params: readonly unknown[] = []) {
      const rows = await world.worker.rows<T>(text, params);
      if (text.includes("jobs.lease_deliveries") && (leases += 1) === 1) {
        await till.ok.redeem(redeemed);
        await world.steps.sequence();
      }
      return rows;
    },
  };
  await createWorkerSteps(t, world, { database }).deliverDue();
  const place = receiver.received.findIndex(({ body }) => body.includes("coupon.redeemed"));
  t.ok(place > 0 && place < 16, `${place} of 33 requests were sent before it`);
  t.equal(receiver.received.length, 33);
});

type Life = (coupon: Coupon) => Promise<unknown>;
const redeem: Life = (coupon) => till.ok.redeem(coupon);
const reverse: Life = (coupon) => till.ok.reverse(coupon);
const voidIt: Life = (coupon) => till.ok.void(coupon);
const sequence: Life = () => world.steps.sequence();
const end: Life = async (coupon) => {
  await expire(coupon);
  await world.steps.expire();
};
const patch = (call: string, ...params: string[]) =>
  world.admin.rows(`select admin.${call}`, [tenant, ...params, "to arrange a test"]);
const extend: Life = ({ id }) => patch("extend_coupon($1, $2, '2090-01-01', $3)", id);
const deliver: Life = async () => take(await lease());
const fail: Life = async () => take(await lease(), 500);
const park: Life = async () => {
  for (const name of ["disable_webhook", "enable_webhook"]) await patch(`${name}($1, $2, $3)`, distributorParty);
};
const replayParked: Life = () => patch("replay_parked($1, $2, $3)", distributorParty);
const replay: Life = async ({ redemption }) => {
  const body = { request_id: newRequestId(), event_id: redemption.replace("red", "evt") };
  fits(t, await distributor.post("/v1/webhook/replay", body), { status: 200, json: { replayed: 1 } });
};

// What happens to a coupon that is issued again after its reversal, and which of its waiting deliveries go behind, in
// the order of their events.
// `order` is the order in which they are sent, by default that one.
const lives: [title: string, life: Life[], isBehind: boolean[], order?: number[]][] = [
  ["a redemption and its reversal go first", [redeem, sequence, reverse, sequence], [false, false]],
  ["a void goes behind", [voidIt, sequence], [true]],
  ["an expiry goes behind", [end, sequence], [true]],
  ["a void joins a redemption of its step", [redeem, reverse, voidIt, sequence], [false, false, false]],
  ["a void joins a redemption that waits", [redeem, reverse, sequence, voidIt, sequence], [false, false, false]],
  [
    "an expiry joins a redemption that is tried again",
    [redeem, sequence, fail, reverse, end, sequence],
    [false, false, false],
    // A retry comes late.
    [1, 2, 0],
  ],
  ["a redemption joins the expiry of its step", [end, extend, redeem, sequence], [true, true]],
  ["a redemption joins an expiry that waits", [end, sequence, extend, redeem, reverse, sequence], [true, true, true]],
  ["a redemption after a delivered expiry goes first", [end, sequence, deliver, extend, redeem, sequence], [false]],
  ["a replay goes behind", [redeem, sequence, deliver, replay], [true]],
  ["a reversal joins a replay", [redeem, sequence, deliver, replay, reverse, sequence], [true, true]],
  ["a replay of what waits keeps its place", [redeem, sequence, replay, reverse, sequence, replay], [false, false]],
  ["a replay joins what waits", [redeem, sequence, deliver, reverse, sequence, replay], [false, false], [1, 0]],
  ["what was parked goes behind", [redeem, sequence, park, replayParked, reverse, sequence], [true, true]],
  ["what is parked decides nothing", [end, sequence, park, extend, redeem, sequence], [false]],
];

for (const [title, life, isBehind, order = [0, 1, 2]] of lives) {
  t.test(`Of one coupon nothing overtakes: ${title}`, async (t) => {
    const template = await addTemplate({ after_reversal: "reissued" });
    const [coupon, ...others] = (await prepare(17, template)) as [Coupon, ...Coupon[]];
    // Other deliveries wait in both places.
    await each(others.slice(0, 8), redeem);
    await each(others.slice(8), voidIt);
    await world.steps.sequence();
    for (const step of life) await step(coupon);

    const waiting = await world.owner.rows<{ event: string; is_behind: boolean }>(
      `select d.event, d.is_behind
       from report.delivery d join report.event e on e.event = d.event
       where e.coupon = $1 and d.status = 'WAITING' order by e.event_seq`,
      [coupon.id],
    );
    t.strictSame(
      waiting.map(({ is_behind }) => is_behind),
      isBehind,
    );
    await world.owner.rows("update core.delivery set next_attempt_at = least(next_attempt_at, now())");
    const events = waiting.map(({ event }) => event);
    const sent = (await lease()).map(({ external_id }) => external_id).filter((event) => events.includes(event));
    t.strictSame(
      sent,
      order.flatMap((place) => events[place] ?? []),
    );
  });
}
