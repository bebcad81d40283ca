// GET /v1/events: how a feed is read page by page. For its order and contents see test/worker/tasks/sequence.test.ts.
import t from "tap";
import { keepBusinessDays } from "../support/business-days.ts";
import { fits } from "../support/fits.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";
import type { Client } from "../support/client.ts";
import { readEventBodies } from "../support/event-bodies.ts";
import { pullEvents } from "../support/pull-events.ts";

type Event = { event_id: string; event_type: string; coupon_id: string; redemption_id: string | null };

async function redeem(by: Client, codes: string[], merchant: string): Promise<string[]> {
  const redemptions: string[] = [];
  for (const coupon of codes) {
    const { json, text } = await by.post("/v1/coupons/redeem", { request_id: newRequestId(), coupon, merchant });
    if (json.redemption === undefined) throw new Error(text);
    redemptions.push(json.redemption);
  }
  return redemptions;
}

// The bodies of the coupon events of a party, or of the whole tenant, in order.
function bodiesOf(service: Running, tenant: string, party?: string): Promise<string[]> {
  return readEventBodies(service.owner, "e.tenant = $1 and e.party = coalesce($2, e.party) and e.coupon is not null", [
    tenant,
    party ?? null,
  ]);
}

t.test("In Variant A the tenant has one feed for all distributors", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  await service.apply({
    tenants: [{ id: "ten_a", name: "A", variant: "A", parties: [{ id: "pty_second", name: "s" }] }],
  });
  const { sequence } = await keepBusinessDays(t, service);
  const first = await service.makeBatch(a, "tpl_fixed", 4);
  const created = await a.post("/v1/batches", {
    request_id: newRequestId(),
    template: "tpl_fixed",
    total_count: 1,
    distributor: "pty_second",
  });
  await service.mint();
  await a.post("/v1/batches/allocate", { request_id: newRequestId(), batch: created.json.batch.external_id });

  const [r1] = await redeem(a, first.codes.slice(0, 2), "mch_a");
  await a.post("/v1/redemptions/reverse", { request_id: newRequestId(), redemption: r1 });
  await a.post("/v1/coupons/void", { request_id: newRequestId(), coupon: first.codes[2]!, merchant: "mch_a" });
  await sequence();
  const page = await a.get("/v1/events");
  t.equal(page.status, 200);
  t.strictSame(
    page.json.events.map(({ event_type }: Event) => event_type),
    ["coupon.redeemed", "coupon.redeemed", "coupon.reversed", "coupon.voided"],
  );
  fits(t, page.json.events[2], { coupon_id: first.couponIds[0], redemption_id: r1, event_id: /^evt_/ });
  t.equal(page.json.events[3].redemption_id, null);
  t.equal(
    page.text,
    `{"events":[${(await bodiesOf(service, "ten_a")).join(",")}],"next_cursor":"${page.json.next_cursor}"}`,
    "the fields of report.event, without batch events",
  );
  t.strictSame(
    (await service.as("ak_a_second").get("/v1/events")).json,
    page.json,
    "every credential of the tenant reads the same feed",
  );
  t.strictSame(
    (await service.as("ak_a_stranger").get("/v1/events")).json.events,
    [],
    "another tenant has its own feed",
  );
});

t.test("In Variant B each distributor has its own feed", async (t) => {
  const service = await startService(t);
  const { sequence } = await keepBusinessDays(t, service);
  const [maker, dist, pos] = ["ak_maker", "ak_dist", "ak_pos"].map(service.as) as [Client, Client, Client];
  const { codes } = await service.makeBatch(maker, "tpl_b", 3);
  await redeem(pos, codes, "mch_b");
  const created = await maker.post("/v1/batches", {
    request_id: newRequestId(),
    template: "tpl_b",
    total_count: 1,
    distributor: "pty_maker",
  });
  await service.mint();
  await maker.post("/v1/batches/allocate", { request_id: newRequestId(), batch: created.json.batch.external_id });
  const [row] = await service.owner.rows<{ coupon_id: string }>(
    `select rules.format_id('cpn', coupon_id) as coupon_id
     from core.coupon c join core.batch b using (tenant_id, batch_id) where b.external_id = $1`,
    [created.json.batch.external_id],
  );
  await service.admin.rows("select admin.void_coupon('ten_b', $1, 'to have an event of another distributor')", [
    row!.coupon_id,
  ]);
  await sequence();
  const own = await dist.get("/v1/events");
  t.equal(
    own.text,
    `{"events":[${(await bodiesOf(service, "ten_b", "pty_dist")).join(",")}],"next_cursor":"${own.json.next_cursor}"}`,
  );
  t.equal(own.json.events.length, 3);
  const makers = await maker.get("/v1/events");
  t.strictSame(
    makers.json.events.map(({ event_type }: Event) => event_type),
    ["coupon.voided"],
  );
  t.strictSame((await pos.get("/v1/events")).json.events, [], "a party that only redeems has no events");
});

t.test(
  "Each next_cursor continues after its page; at the end of a feed it is the given cursor, and later events follow it",
  async (t) => {
    const service = await startService(t);
    const a = service.as("ak_a");
    const { sequence } = await keepBusinessDays(t, service);
    const { codes } = await service.makeBatch(a, "tpl_fixed", 25);

    const empty = await a.get("/v1/events");
    t.strictSame(empty.json.events, []);
    t.strictSame(
      (await a.get(`/v1/events?cursor=${empty.json.next_cursor}`)).json,
      empty.json,
      "the cursor of an empty feed points to its beginning",
    );

    await redeem(a, codes.slice(0, 20), "mch_a");
    t.strictSame((await a.get("/v1/events")).json.events, [], "an event without a position is not shown yet");
    await sequence();
    const all = await pullEvents<Event>(a, 1000);
    t.equal(all.events.length, 20);
    for (const limit of [1, 7, 10, 20]) {
      const paged = await pullEvents<Event>(a, limit);
      t.strictSame(paged.events, all.events, `limit ${limit}`);
      t.equal(paged.end, all.end);
      t.strictSame((await pullEvents<Event>(a, limit)).pages, paged.pages, "pages read again have the same bytes");
    }
    t.strictSame(
      (await a.get(`/v1/events?cursor=${empty.json.next_cursor}`)).json.events,
      all.events,
      "the cursor of the empty feed reads from the beginning",
    );

    await redeem(a, codes.slice(20), "mch_a");
    await sequence();
    const later = await a.get(`/v1/events?cursor=${all.end}&limit=3`);
    t.equal(later.json.events.length, 3);
    t.notOk(later.json.events.some((event: Event) => all.events.some(({ event_id }) => event_id === event.event_id)));
  },
);

t.test("A cursor that is not from this feed is 400, and so is a limit outside 1 to 1000", async (t) => {
  const service = await startService(t);
  const [a, stranger] = [service.as("ak_a"), service.as("ak_a_stranger")];
  const { sequence } = await keepBusinessDays(t, service);
  const { codes } = await service.makeBatch(a, "tpl_fixed", 2);
  await redeem(a, codes, "mch_a");
  await sequence();
  const { next_cursor: cursor } = (await a.get("/v1/events")).json;
  t.equal((await stranger.get(`/v1/events?cursor=${cursor}`)).status, 400, "a cursor beyond the end of a shorter feed");
  const wrong = [
    "",
    "0",
    "-1",
    "cur_",
    `${cursor}A`,
    cursor.slice(0, -1),
    cursor.toLowerCase(),
    "cur_AAAAAAAAAAA",
    "cur_AAAAAAAAAA=",
    "2026-01-01",
    "x".repeat(65),
    "%00",
    "%F0%9F%92%A3",
  ];
  for (const given of wrong)
    fits(
      t,
      await a.get(`/v1/events?cursor=${given}`),
      { status: 400, json: { code: "INVALID_REQUEST", details: { issues: [{ path: "cursor" }] } } },
      `cursor ${given}`,
    );
  for (const given of ["", "0", "1001", "-1", "1.5", "1e2", "ten", "+1", "01", "99999999999999999999"]) {
    fits(
      t,
      await a.get(`/v1/events?limit=${given}`),
      { status: 400, json: { details: { issues: [{ path: "limit" }] } } },
      `limit ${given}`,
    );
  }
  fits(t, await a.get("/v1/events?limit=1&limit=1"), { status: 400 });
  fits(t, await a.get("/v1/events?page=1"), { status: 400, json: { details: { issues: [{ path: "page" }] } } });
  fits(t, await a.post("/v1/events", {}), { status: 405, headers: { allow: "GET, HEAD" } });
  for (const given of ["1", "1000"]) t.equal((await a.get(`/v1/events?limit=${given}`)).status, 200);
});

t.test("A page has 100 events by default", async (t) => {
  const service = await startService(t);
  const a = service.as("ak_a");
  const { sequence } = await keepBusinessDays(t, service);
  const { codes } = await service.makeBatch(a, "tpl_fixed", 101);
  await Promise.all(
    Array.from({ length: 4 }, (_, lane) =>
      redeem(
        a,
        codes.filter((__, index) => index % 4 === lane),
        "mch_a",
      ),
    ),
  );
  await sequence();
  t.equal((await a.get("/v1/events")).json.events.length, 100);
  t.equal((await a.get("/v1/events?limit=101")).json.events.length, 101);
});
