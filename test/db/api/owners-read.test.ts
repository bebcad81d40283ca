// What each read shows to owners who all own rows: two sides of a tenant, and its twin with the same keys. Answers are
// compared whole with what the owner's story says.
import t, { type Test } from "tap";
import { routes } from "../../../src/http/routes/table.ts";
import { postOk, type Client } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import type { Event, Owned, Story } from "../../support/owners.ts";
import { pullEvents } from "../../support/pull-events.ts";
import type { Running } from "../../support/service.ts";
import { othersIn, seenBy, startOwners, type Owners } from "../../support/start-owners.ts";
import { statementReads } from "./owner-statements.ts";

let owners: Owners;
let service: Running;
let stories: Story[];

t.before(async () => {
  owners = await startOwners(t);
  ({ service, stories } = owners);
  for (const story of stories) await diverge(story);
  await owners.close();
});

// From here on the owners differ: one side of a tenant voids a coupon, the other side and the twin lock it.
async function diverge({ tenant, side, shop, merchant, coupons, events }: Story): Promise<void> {
  const { code, id, shown } = coupons["to void"];
  const isVoid = side === 1 && tenant.endsWith("1");
  const body = { request_id: `diverge ${id}`, coupon: code, merchant };
  await postOk(service.as(shop), `/v1/coupons/${isVoid ? "void" : "lock"}`, body);
  shown["status"] = isVoid ? "VOIDED" : "LOCKED";
  if (isVoid) events.push({ event_type: "coupon.voided", coupon_id: id, redemption_id: null });
}

const notFound = (resource: string) => ({ status: 404, json: { code: "NOT_FOUND", details: { resource } } });

const bySide = (all: Story[]) =>
  all.toSorted((one, two) => (one.events[0]!.coupon_id < two.events[0]!.coupon_id ? -1 : 1));

// Both sides lived their lives one after the other, before they diverged.
function inOrder(all: Story[]) {
  const isLate = ({ coupon_id }: Event) => all.some(({ coupons }) => coupons["to void"].id === coupon_id);
  const events = all.flatMap((one) => one.events);
  return [...events.filter((event) => !isLate(event)), ...events.filter(isLate)];
}

async function listEvents(by: Client): Promise<any[]> {
  return (await pullEvents(by, 4)).events;
}

// For each read: compares the answers to a caller with what the caller owns, and tries what others own.
const reads: Record<string, (t: Test, story: Story) => Promise<void>> = {
  async pull_events(t, story) {
    const events = await listEvents(service.as(story.distributor));
    t.strictSame(
      events.map(({ event_type, coupon_id, redemption_id }) => ({ event_type, coupon_id, redemption_id })),
      inOrder(bySide(seenBy(owners, story))),
    );
    t.equal(new Set(events.map(({ event_id }) => event_id)).size, events.length);
    if (story.variant === "B") t.strictSame(await listEvents(service.as(story.shop)), [], "others have no feed");
    // The cursor at the end of another feed is valid here only if this feed is as long.
    for (const other of stories.filter((one) => one.variant === story.variant)) {
      const { next_cursor } = (await service.as(other.distributor).get("/v1/events?limit=500")).json;
      const { length } = await listEvents(service.as(other.distributor));
      const { status } = await service.as(story.distributor).get(`/v1/events?cursor=${next_cursor}`);
      t.equal(status, length > events.length ? 400 : 200, `${other.tenant} ${other.distributor}`);
    }
  },
  async get_batch(t, story) {
    const maker = service.as(story.maker);
    for (const batch of Object.values(story.batches))
      t.strictSame((await maker.get(`/v1/batches/${batch.external_id}`)).json, { ok: true, batch });
    for (const other of stories.filter((one) => !seenBy(owners, story).includes(one)))
      for (const { external_id } of Object.values(other.batches))
        fits(t, await maker.get(`/v1/batches/${external_id}`), notFound("batch"), `${other.tenant} ${external_id}`);
  },
  async query(t, story) {
    const shop = service.as(story.shop);
    const query = (merchant: string, { code }: Owned) => shop.post("/v1/coupons/query", { merchant, coupon: code });
    for (const [kind, coupon] of Object.entries(story.coupons)) {
      // The templates of a twin are for the other merchant, see makeTwin.
      if (kind === "scoped") continue;
      const { json } = await query(story.merchant, coupon);
      const { redemption, ...shown } = json.coupon;
      if (kind !== "to void") t.strictSame(json, { ok: true, coupon: coupon.shown }, kind);
      else t.strictSame(shown, coupon.shown, kind);
      const isTold = kind === "reversed" || /LOCKED|REDEEMED/.test(shown.status);
      t.equal(redemption !== undefined, story.variant === "A" && isTold, kind);
    }
    for (const other of othersIn(owners, story)) {
      const own = story.tenant.endsWith("1") ? story : other;
      fits(t, await query(story.merchant, own.coupons.scoped), { status: 200 }, "a coupon for the own merchant");
      const away = own === story ? other : story;
      fits(t, await query(story.merchant, away.coupons.scoped), {
        status: 422,
        json: { code: "MERCHANT_NOT_IN_SCOPE" },
      });
      if (story.variant === "B") fits(t, await query(other.merchant, story.coupons.issued), notFound("merchant"));
    }
    if (story.variant === "A") return;
    // A delegate of mch_1.
    const delegate = service.as(story.shop.replace(/s.$/, "p"));
    const body = { merchant: story.merchant, coupon: story.coupons.issued.code };
    t.equal((await delegate.post("/v1/coupons/query", body)).status, story.merchant === "mch_1" ? 200 : 404);
    fits(t, await service.as(story.maker).post("/v1/coupons/query", body), notFound("merchant"));
  },
  async get_request(t, story) {
    const rows = await service.owner.rows<any>(
      `select q.request_id, q.operation, q.http_status, q.response, q.recorded_at,
              coalesce(q.caller = $2, true) as is_own
       from report.request q where q.tenant = $1`,
      [story.tenant, `pty_s${story.side}`],
    );
    t.ok(rows.length > 20);
    for (const { request_id, operation, http_status, response, recorded_at, is_own } of rows) {
      const answer = await service.as(story.shop).get(`/v1/requests/${encodeURIComponent(request_id)}`);
      const expected = {
        ok: true,
        request: {
          request_id,
          operation,
          http_status,
          response: JSON.parse(response),
          recorded_at: recorded_at.toISOString(),
        },
      };
      if (is_own) t.strictSame(answer.json, expected, request_id);
      else if (rows.every((row: any) => row.request_id !== request_id || !row.is_own))
        fits(t, answer, notFound("request"), request_id);
    }
  },
  ...statementReads(() => owners),
};

t.test("Every read has a test with several owners", async (t) => {
  const names = routes.filter(({ isWrite }) => !isWrite).map(({ operation }) => operation);
  // get_webhook: webhook-scope.test.ts.
  t.strictSame([...Object.keys(reads), "get_webhook"].sort(), names.sort());
});

for (const [operation, check] of Object.entries(reads))
  t.test(`${operation} shows all that its caller owns, and nothing else`, async (t) => {
    for (const story of stories) await t.test(`${story.tenant}, side ${story.side}`, (t) => check(t, story));
  });
