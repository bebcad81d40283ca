// Events with data, and webhooks that take some types of events only.
import t from "tap";
import type { Coupon } from "../../support/caller.ts";
import { findUndescribedEvent } from "../../support/described-answers.ts";
import { fits } from "../../support/fits.ts";
import { pullEvents } from "../../support/pull-events.ts";
import { startReceiver, status, take } from "../../support/receiver.ts";
import { newRequestId } from "../../support/request-id.ts";
import { scenario, type Scenario } from "../../support/scenario.ts";
import { dropDeliveries } from "../../support/subscribers.ts";

type Event = { event_id: string; event_type: string; coupon_id: string; data?: object };

const receiver = await startReceiver(t);

async function start(options: object = {}) {
  receiver.received.length = 0;
  receiver.answer = take;
  const world = await scenario(t);
  await subscribe(world, options);
  return world;
}

const subscribe = ({ apply, b }: Scenario, options: object) =>
  apply({
    tenants: [
      {
        id: b.tenant,
        name: "B",
        variant: "B",
        parties: [{ id: b.distributorParty, name: "D", webhook: { url: receiver.url, ...options } }],
      },
    ],
  });

const nothing = { merchant_id: null, store: null, terminal: null, order_id: null, order_amount: null };
const none = { ...nothing, discount_amount: null, currency: null, reversal_id: null };

/** One coupon redeemed and reversed, one voided, one expired: what their events say, by type. */
async function live({ b, steps, owner }: Scenario) {
  const [used, voided, ended] = (await b.makeCoupons(3)) as [Coupon, Coupon, Coupon];
  const order = { order_amount: 12.5, order_id: 'O "1"', store: "S1", terminal: "T1" };
  await b.till.ok.redeem(used, order);
  const { reversal } = await b.till.ok.reverse(used);
  await b.till.ok.void(voided);
  await b.expire(ended);
  await steps.expire();
  await steps.sequence();
  const [row] = await owner.rows<{ batch: string }>("select batch from report.coupon where coupon = $1", [used.id]);
  const of = { batch_id: row!.batch, template_id: b.template };
  const sale = { ...of, merchant_id: b.merchant, ...order, discount_amount: 5, currency: "EUR", reversal_id: null };
  return {
    "coupon.redeemed": sale,
    "coupon.reversed": { ...sale, reversal_id: reversal },
    "coupon.voided": { ...of, ...none },
    "coupon.expired": { ...of, ...none },
  } as Record<string, object>;
}

t.test("A pull with expand has the data of each event; without it, an event is as before", async (t) => {
  const world = await start();
  const expected = await live(world);
  const { distributor } = world.b;
  const plain = await distributor.get("/v1/events");
  const expanded: Event[] = (await distributor.get("/v1/events?expand=true")).json.events;
  t.strictSame(new Set(expanded.map(({ event_type }) => event_type)), new Set(Object.keys(expected)));
  for (const { event_type, data } of expanded) t.strictSame(data, expected[event_type], event_type);
  const stripped = expanded.map(({ data: _, ...event }) => event);
  t.strictSame(plain.json.events, stripped);
  t.equal((await distributor.get("/v1/events?expand=false")).text, plain.text);
  const keys = Object.keys(expanded[0]!.data!).join(" ");
  const fields = "batch_id template_id merchant_id store terminal order_id order_amount discount_amount currency";
  t.equal(keys, `${fields} reversal_id`);
  const refused = {
    status: 400,
    json: { details: { issues: [{ path: "expand", message: "must be true or false" }] } },
  };
  for (const wrong of ["", "1", "TRUE"]) fits(t, await distributor.get(`/v1/events?expand=${wrong}`), refused);
  const all = await pullEvents<Event>(distributor, 1000);
  t.equal(all.events.length, 4, "cursors are those of the same feed");
});

t.test("A webhook with expand sends the data; a retry sends the same body, whatever changed meanwhile", async (t) => {
  const world = await start({ expand: true });
  receiver.answer = status(500);
  const expected = await live(world);
  await world.steps.deliverDue();
  const first = new Map(receiver.received.map(({ id, body }) => [id, body]));
  const coupons = [...first.values()].map((body) => JSON.parse(body) as Event).filter(({ coupon_id }) => coupon_id);
  t.equal(coupons.length, 4);
  for (const { event_type, data } of coupons) t.strictSame(data, expected[event_type], event_type);

  receiver.received.length = 0;
  receiver.answer = take;
  await subscribe(world, {});
  await world.owner.rows("update core.delivery set next_attempt_at = now()");
  await world.steps.deliverDue();
  t.strictSame(new Map(receiver.received.map(({ id, body }) => [id, body])), first);

  receiver.received.length = 0;
  const [event] = coupons;
  const body = { request_id: newRequestId(), event_id: event!.event_id };
  fits(t, await world.b.distributor.post("/v1/webhook/replay", body), { status: 200, json: { replayed: 1 } });
  await world.steps.deliverDue();
  const { data: _, ...plain } = event!;
  t.strictSame(JSON.parse(receiver.received[0]!.body), plain, "a replay is a new delivery, as the webhook now asks");
});

t.test("No delivery, replay or test is made of an event that the webhook does not take", async (t) => {
  const world = await start({ event_types: ["coupon.reversed", "coupon.redeemed"] });
  const { distributor } = world.b;
  await live(world);
  const listed = async () => {
    const rows = await world.owner.rows<{ event_type: string }>("select event_type from report.delivery order by 1");
    return rows.map(({ event_type }) => event_type);
  };
  t.strictSame(await listed(), ["coupon.redeemed", "coupon.reversed"]);
  fits(t, (await distributor.get("/v1/webhook")).json.webhook, { waiting: 2, parked: 0 });
  const health = "select event_types, expand from report.webhook_health";
  const types = ["coupon.redeemed", "coupon.reversed"];
  fits(t, await world.owner.rows(health), [{ event_types: types, expand: false }]);

  await dropDeliveries(world);
  const post = (path: string, body: object) => distributor.post(path, { request_id: newRequestId(), ...body });
  const always = { from: "2020-01-01T00:00:00Z", to: "2099-01-01T00:00:00Z" };
  fits(t, await post("/v1/webhook/replay", always), { status: 200, json: { replayed: 2 } });
  t.strictSame(await listed(), types);
  const { events } = await pullEvents<Event>(distributor, 1000);
  t.equal(events.length, 4, "the feed has all types");
  const voided = events.find(({ event_type }) => event_type === "coupon.voided")!;
  const message = "must be of a type that the webhook takes: coupon.redeemed, coupon.reversed";
  const refuse = (path: string) => ({ status: 400, json: { details: { issues: [{ path, message }] } } });
  fits(t, await post("/v1/webhook/replay", { event_id: voided.event_id }), refuse("event_id"));
  fits(t, await post("/v1/webhook/test", { event_type: "coupon.voided" }), refuse("event_type"));
  const patch = (call: string, ...params: unknown[]) =>
    world.admin.rows(`select admin.${call} as done`, [world.b.tenant, ...params]);
  await t.rejects(patch("replay_event($1, $2, 'why')", voided.event_id), { message: /does not take coupon.voided/ });
  await t.rejects(patch("test_webhook($1, $2, 'coupon.voided')", world.b.distributorParty), { message: /takes only/ });
  const range = patch("replay_range($1, $2, '2020-01-01', '2099-01-01', 'why')", world.b.distributorParty);
  t.strictSame([...(await range)], [{ done: 2 }]);

  await subscribe(world, {});
  t.strictSame(await listed(), types, "a change affects later events only");
  fits(t, await post("/v1/webhook/replay", { event_id: voided.event_id }), { status: 200 });
  await subscribe(world, { event_types: ["coupon.voided"] });
  for (const call of ["disable_webhook", "enable_webhook"])
    await patch(`${call}($1, $2, 'why')`, world.b.distributorParty);
  const parked = await patch("replay_parked($1, $2, 'why')", world.b.distributorParty);
  t.strictSame([...parked], [{ done: 3 }], "what was parked is sent, because it was taken when it happened");
});

t.test("A test event has data if the webhook asks for it, and fits the description", async (t) => {
  const world = await start({ expand: true });
  for (const event_type of ["coupon.redeemed", "coupon.reversed", "coupon.voided", "batch.generated"]) {
    receiver.received.length = 0;
    const body = { request_id: newRequestId(), event_type };
    fits(t, await world.b.distributor.post("/v1/webhook/test", body), { status: 200 });
    await world.steps.deliverDue();
    const { event_id, data } = JSON.parse(receiver.received[0]!.body);
    t.equal(findUndescribedEvent(receiver.received[0]!.headers, receiver.received[0]!.body), null);
    const reversal_id = event_type === "coupon.reversed" ? event_id.replace("evt", "rvs") : null;
    if (event_type.startsWith("coupon.")) fits(t, data, { batch_id: /^bat_/, reversal_id });
    else t.equal(data, undefined);
  }
});

t.test("apply changes expand and event_types, and lists the change; the same file changes nothing", async (t) => {
  const world = await start();
  const options = { expand: true, event_types: ["coupon.voided", "coupon.redeemed"] };
  fits(t, await subscribe(world, options), { changed: 1 });
  fits(t, await subscribe(world, { ...options, event_types: options.event_types.toReversed() }), { changed: 0 });
  const [row] = await world.owner.rows<{ details: object }>(
    "select details from report.audit order by audit_id desc limit 1",
  );
  fits(t, row!.details, {
    webhook_expand: { old: null, new: true },
    webhook_event_types: { old: null, new: ["coupon.redeemed", "coupon.voided"] },
  });
  fits(t, await subscribe(world, {}), { changed: 1 });
  for (const wrong of [[], ["coupon.minted"], ["coupon.voided", "coupon.voided"], null])
    await t.rejects(subscribe(world, { event_types: wrong }), { message: /event_types/ }, JSON.stringify(wrong));
});
