// The lists of batches and redemptions: what they hold, in which order, page by page. test/owners shows whose rows.
import t from "tap";
import type { Caller, Coupon } from "../../support/caller.ts";
import { fits } from "../../support/fits.ts";
import { newRequestId } from "../../support/request-id.ts";
import { scenario } from "../../support/scenario.ts";
import { beginRequest } from "../../support/sessions.ts";
import { template as makeTemplate } from "../../support/tenants.ts";

const world = await scenario(t);
const scenes = [world.a, world.b];

async function readAll(by: Caller, target: string, limit: number, from = ""): Promise<{ all: any[]; cursor: string }> {
  const all: any[] = [];
  for (let cursor = from; ;) {
    const { status, json } = await by.get(`${target}&limit=${limit}&cursor=${cursor}`);
    t.equal(status, 200, JSON.stringify(json));
    if (json.redemptions.length === 0) return { all, cursor: json.next_cursor };
    all.push(...json.redemptions);
    cursor = json.next_cursor;
  }
}
const listOf = (merchant: string) => `/v1/redemptions?merchant=${merchant}`;
const changesOf = (redemptions: any[]) => redemptions.map(({ redemption, change }) => `${change} ${redemption}`);

for (const scene of scenes)
  t.test(`Variant ${scene.variant}: a redemption by its ID and by its order, with every field`, async (t) => {
    const { till, merchant, template, makeCoupons, variant } = scene;
    const [first, second, third, elsewhere] = (await makeCoupons(4)) as [Coupon, Coupon, Coupon, Coupon];
    const place = variant === "A" ? { store: "Main Street", terminal: "till 2" } : { store: "S1", terminal: "T1" };
    const order = { order_id: "4711 ä&", order_amount: 20, ...place };
    const { lock_expires_at } = await till.ok.lock(first, order);
    await till.ok.redeem(second, order);
    await till.ok.reverse(second, { reason: "returned" });
    await till.ok.redeem(third, { order_id: "4712" });
    const [neighbour, other] = variant === "A" ? [till, "mch_a2"] : [world.as("ak_other"), "mch_b2"];
    await neighbour.ok.redeem(elsewhere, { order_id: order.order_id, merchant: other });
    const locked = {
      redemption: first.redemption,
      status: "LOCKED",
      coupon_id: first.id,
      batch_id: /^bat_/,
      template_id: template,
      merchant_id: merchant,
      ...place,
      order_id: order.order_id,
      order_amount: 20,
      discount_amount: 5,
      currency: "EUR",
      lock_request_id: first.lockRequestId,
      started_at: /Z$/,
      lock_expires_at,
      redeemed_at: null,
      reversed_at: null,
      reversal: null,
      reason: null,
    };
    const reversed = {
      ...locked,
      redemption: second.redemption,
      status: "REVERSED",
      coupon_id: second.id,
      lock_request_id: second.lockRequestId,
      lock_expires_at: null,
      redeemed_at: /Z$/,
      reversed_at: /Z$/,
      reversal: /^rvs_/,
      reason: "returned",
    };
    const target = `${listOf(merchant)}&order_id=${encodeURIComponent(order.order_id)}`;
    const { json } = await till.get(target);
    fits(t, json, { ok: true, redemptions: [reversed, locked], next_cursor: null }, "newest first");
    for (const one of json.redemptions)
      t.strictSame((await till.get(`/v1/redemptions/${one.redemption}`)).json, { ok: true, redemption: one });
    await scene.endLock(first);
    t.equal((await till.get(`/v1/redemptions/${first.redemption}`)).json.redemption.status, "LAPSED");
    fits(t, (await till.get(`${listOf(merchant)}&order_id=none`)).json, { redemptions: [], next_cursor: null });
  });

t.test("A list by order is its newest 100", async (t) => {
  const { till, makeCoupons, merchant } = world.a;
  const coupons = await makeCoupons(102);
  for (const coupon of coupons) await till.ok.redeem(coupon, { order_id: "many" });
  const { json } = await till.get(`${listOf(merchant)}&order_id=many`);
  t.strictSame(
    json.redemptions.map(({ redemption }: { redemption: string }) => redemption),
    coupons
      .map(({ redemption }) => redemption)
      .toReversed()
      .slice(0, 100),
  );
});

for (const scene of scenes)
  t.test(`Variant ${scene.variant}: pages of changes only grow at their end, whatever commits late`, async (t) => {
    const { till, makeCoupons, merchant } = scene;
    await world.steps.sequence();
    const target = listOf(merchant);
    const { cursor: begin } = await readAll(till, target, 100);
    const coupons = (await makeCoupons(7)) as Coupon[];
    const [late, ...others] = coupons as [Coupon, ...Coupon[]];
    // It has drawn its number and commits after the others.
    const body = { request_id: newRequestId(), coupon: late.code, merchant };
    const end = await beginRequest(world, scene.variant === "A" ? "ak_a" : "ak_pos", "redeem", body);
    for (const coupon of others.slice(0, 3)) await till.ok.redeem(coupon);
    await till.ok.reverse(others[0]!);
    await world.steps.sequence();
    const early = await readAll(till, target, 2, begin);
    const expected = [
      ...others.slice(0, 3).map(({ redemption }) => `REDEMPTION ${redemption}`),
      `REVERSAL ${others[0]!.redemption}`,
    ];
    t.strictSame(changesOf(early.all), expected);
    await end("commit");
    late.redemption = (await till.ok.query(late)).coupon.redemption.redemption;
    for (const coupon of others.slice(3)) await till.ok.redeem(coupon);
    await world.steps.sequence();
    const rest = await readAll(till, target, 3, early.cursor);
    const later = [late, ...others.slice(3)].map(({ redemption }) => `REDEMPTION ${redemption}`);
    t.strictSame(changesOf(rest.all), later, "a stored cursor misses nothing");
    const again = await readAll(till, target, 1, begin);
    t.strictSame(changesOf(again.all), [...expected, ...later], "and nothing moved");
    t.equal((await till.get(`${target}&cursor=${rest.cursor}`)).json.next_cursor, rest.cursor, "at the end");
  });

t.test("from and to bound the time at which a change was recorded, also of changes that came late", async (t) => {
  const { till, makeCoupons, merchant } = world.b;
  const coupons = (await makeCoupons(5)) as Coupon[];
  await world.steps.sequence();
  const psql = await world.openPsql({ triggers: false });
  const times = ["01T12", "02T11", "02T12", "03T12", "02T12"];
  for (const [index, coupon] of coupons.entries()) {
    await till.ok.redeem(coupon);
    await psql.run(
      `update core.ledger_entry set recorded_at = '2031-01-${times[index]}:00:00Z'
       where entry_id = rules.parse_id('red', '${coupon.redemption}')`,
    );
    // Two of them share a page.
    if (index !== 1) await world.steps.sequence();
  }
  const read = async (query: string) => {
    const { all } = await readAll(till, `${listOf(merchant)}&${query}`, 1);
    return all.map(({ redemption }) => coupons.findIndex((coupon) => coupon.redemption === redemption));
  };
  t.strictSame(await read("from=2031-01-01T00:00:00Z"), [0, 1, 2, 3, 4]);
  t.strictSame(await read("from=2031-01-02T00:00:00Z&to=2031-01-03T00:00:00Z"), [1, 2, 4], "one came late");
  t.strictSame(await read("from=2031-01-01T12:00:00Z&to=2031-01-02T12:00:00Z"), [0, 1], "from is included, to is not");
  t.strictSame(await read("from=2031-01-03T12:00:00.001Z"), []);
  // Back to what happened, for the invariants.
  await psql.run("update core.ledger_entry set recorded_at = occurred_at where recorded_at >= '2031-01-01'");
  await psql.run("update core.posting_page set recorded_digest = null");
  await psql.run(
    `update core.merchant_page p set recorded_from = x.low, recorded_through = x.high
     from (select merchant_id, first_position, min(recorded_at) as low,
             max(max(recorded_at)) over (partition by merchant_id order by first_position) as high
           from rules.merchant_change group by 1, 2) x
     where (x.merchant_id, x.first_position) = (p.merchant_id, p.first_position)`,
  );
});

t.test("A list refuses what does not belong together, and cursors that it never gave", async (t) => {
  const { till, merchant } = world.a;
  const issue = async (query: string) => {
    const { status, json } = await till.get(`${listOf(merchant)}&${query}`);
    return `${status} ${json.details?.issues?.map(({ path }: { path: string }) => path)}`;
  };
  const [from, to] = ["2031-01-01T00:00:00Z", "2031-01-02T00:00:00Z"];
  t.equal(await issue(`order_id=1&from=${from}&limit=2`), "400 from,limit");
  t.equal(await issue(`from=${to}&to=${from}`), "400 to");
  for (const cursor of ["x", "cur_AAAAAAAAAAA"]) t.equal(await issue(`cursor=${cursor}`), "400 cursor");
  t.equal((await till.get("/v1/redemptions")).json.details.issues[0].path, "merchant");
  t.equal((await till.get("/v1/batches?cursor=x")).json.details.issues[0].path, "cursor");
  t.equal((await till.get("/v1/batches?status=OPEN")).json.details.issues[0].path, "status");
});

t.test("Each caller lists the batches that it makes or that were released to it, newest first", async (t) => {
  const { a, b, ...other } = await scenario(t);
  const templates = [
    makeTemplate("tpl_other", "pty_other", { distributor: "pty_dist" }),
    makeTemplate("tpl_own", "pty_dist"),
  ];
  await other.apply({ tenants: [{ id: b.tenant, name: "B", variant: "B", templates }] });
  const makers: [maker: string, template: string, by: Caller][] = [
    ["ak_a", "tpl_fixed", a.maker],
    ["ak_maker", "tpl_b", b.maker],
    ["ak_other", "tpl_other", other.as("ak_other")],
    ["ak_dist", "tpl_own", b.distributor],
  ];
  const batches: { id: string; maker: string; template: string; status: string }[] = [];
  // Batches that are PENDING are never minted, so they come last.
  for (const status of ["COMPLETED", "ALLOCATED", "COMPLETED", "ALLOCATED", "ALLOCATED", "PENDING", "PENDING"])
    for (const [maker, template, by] of makers) {
      const isReleased = status === "ALLOCATED";
      const id =
        status === "PENDING"
          ? (await by.ok.createBatch(template, 1)).batch.external_id
          : (await other.makeBatch(by, template, 1, { isReleased })).id;
      batches.unshift({ id, maker, template, status });
    }
  const isListed = (caller: string, { maker, template, status }: (typeof batches)[number]) =>
    maker === caller || (caller === "ak_dist" && status === "ALLOCATED" && template !== "tpl_fixed");
  for (const accessKey of ["ak_a", "ak_a_stranger", "ak_maker", "ak_other", "ak_dist", "ak_pos"])
    for (const status of [undefined, "PENDING", "COMPLETED", "ALLOCATED"])
      for (const template of [undefined, "tpl_fixed", "tpl_b", "tpl_other", "tpl_own", "tpl_none"]) {
        const query = `${status ? `&status=${status}` : ""}${template ? `&template=${template}` : ""}`;
        const listed = await readBatches(other.as(accessKey), query);
        const own = batches.filter(
          (one) =>
            isListed(accessKey, one) &&
            (status ?? one.status) === one.status &&
            (template ?? one.template) === one.template,
        );
        t.strictSame(
          listed.map(({ external_id }) => external_id),
          own.map(({ id }) => id),
          accessKey + query,
        );
      }
  const [newest] = await readBatches(b.maker, "");
  t.strictSame((await b.maker.get(`/v1/batches/${newest.external_id}`)).json.batch, newest, "as get_batch shows it");
});

/** Reads page by page, and one page more than there can be at most. */
async function readBatches(by: Caller, query: string): Promise<any[]> {
  const found: any[] = [];
  for (let cursor: string | null = ""; cursor !== null && found.length < 40;) {
    const { json } = await by.get(`/v1/batches?limit=2&cursor=${cursor}${query}`);
    found.push(...json.batches);
    cursor = json.next_cursor;
  }
  return found;
}
