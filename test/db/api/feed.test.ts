// How a feed is read page by page. For its order and contents see test/worker/tasks/sequence.test.ts and test/owners.
import t from "tap";
import type { Caller, Coupon } from "../../support/caller.ts";
import { fits } from "../../support/fits.ts";
import { pullEvents } from "../../support/pull-events.ts";
import { scenario } from "../../support/scenario.ts";

type Event = { event_id: string; event_type: string };

const redeem = (till: Caller, coupons: Coupon[]) => Promise.all(coupons.map((coupon) => till.ok.redeem(coupon)));

t.test("Each next_cursor continues after its page, and at the end of a feed with later events", async (t) => {
  const world = await scenario(t);
  const { till, makeCoupons } = world.a;
  const coupons = await makeCoupons(25);
  const empty = await till.get("/v1/events");
  t.strictSame(empty.json.events, []);
  const fromEmpty = async () => (await till.get(`/v1/events?cursor=${empty.json.next_cursor}`)).json;
  t.strictSame(await fromEmpty(), empty.json, "the cursor of an empty feed points to its beginning");

  await redeem(till, coupons.slice(0, 20));
  t.strictSame((await till.get("/v1/events")).json.events, [], "an event without a position is not shown yet");
  await world.steps.sequence();
  const all = await pullEvents<Event>(till, 1000);
  t.equal(all.events.length, 20);
  for (const limit of [1, 7, 20]) {
    const paged = await pullEvents<Event>(till, limit);
    t.strictSame([paged.events, paged.end], [all.events, all.end], `limit ${limit}`);
    t.strictSame((await pullEvents<Event>(till, limit)).pages, paged.pages, "pages read again have the same bytes");
  }
  t.strictSame((await fromEmpty()).events, all.events, "the cursor of the empty feed reads from the beginning");

  await redeem(till, coupons.slice(20));
  await world.steps.sequence();
  const later: Event[] = (await till.get(`/v1/events?cursor=${all.end}&limit=3`)).json.events;
  t.equal(later.length, 3);
  const known = new Set(all.events.map(({ event_id }) => event_id));
  t.notOk(later.some(({ event_id }) => known.has(event_id)));
});

t.test("A cursor that is not from this feed is 400, and so is a limit outside 1 to 1000", async (t) => {
  const world = await scenario(t);
  const { till, makeCoupons } = world.a;
  await redeem(till, await makeCoupons(2));
  await world.steps.sequence();
  const { next_cursor: cursor } = (await till.get("/v1/events")).json;
  const stranger = await world.as("ak_a_stranger").get(`/v1/events?cursor=${cursor}`);
  t.equal(stranger.status, 400, "a cursor beyond the end of a shorter feed");
  const wrong: Record<string, string[]> = {
    cursor: ["0", "-1", "cur_", `${cursor}A`, cursor.slice(0, -1), cursor.toLowerCase(), "x".repeat(65)],
    limit: ["", "0", "1001", "-1", "1.5", "1e2", "ten", "+1", "01", "99999999999999999999"],
  };
  wrong["cursor"]!.push("cur_AAAAAAAAAAA", "cur_AAAAAAAAAA=", "2026-01-01", "%00", "%F0%9F%92%A3");
  for (const [path, given] of Object.entries(wrong)) {
    const refused = { status: 400, json: { code: "INVALID_REQUEST", details: { issues: [{ path }] } } };
    for (const value of given) fits(t, await till.get(`/v1/events?${path}=${value}`), refused, `${path} ${value}`);
  }
  for (const given of ["1", "1000"]) t.equal((await till.get(`/v1/events?limit=${given}`)).status, 200);
  t.strictSame((await till.get("/v1/events?cursor=")).json, (await till.get("/v1/events")).json, "empty: absent");
});

t.test("A page has 100 events by default", async (t) => {
  const world = await scenario(t);
  const { till, makeCoupons } = world.a;
  await redeem(till, await makeCoupons(101));
  await world.steps.sequence();
  t.equal((await till.get("/v1/events")).json.events.length, 100);
  t.equal((await till.get("/v1/events?limit=101")).json.events.length, 101);
});
