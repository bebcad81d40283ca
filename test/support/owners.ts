// Two owners side by side who both own rows of every kind: two makers, two distributors, two shops of one tenant, in
// each variant. Side 1 owns what ends in 1, side 2 what ends in 2. See twin.ts for a second tenant of each variant.
import { postOk } from "./client.ts";
import type { Side, Variant } from "./owners-document.ts";
import type { Running } from "./service.ts";

// A coupon with the answer to a query, and with its redemption if it has one.
export type Owned = { code: string; id: string; shown: Record<string, unknown>; redemption: string | null };
export type Event = { event_type: string; coupon_id: string; redemption_id: string | null };
export type Entry = { entry_type: string; redemption_id: string; coupon_id: string; batch_id: string };
// The story of one side. `coupons` are by what happened to them. It has no functions, so that twin.ts can translate it.
export type Story = {
  tenant: string;
  variant: Variant;
  side: Side;
  // The access keys of the callers.
  maker: string;
  distributor: string;
  shop: string;
  // The IDs of parties, and of what they own.
  makerParty: string;
  distributorParty: string;
  merchant: string;
  template: string;
  store: string;
  terminal: string;
  amount: number;
  // By status, as get_batch shows them.
  batches: Record<string, { external_id: string; [field: string]: unknown }>;
  coupons: Record<Kind, Owned>;
  lockRequestIds: Record<string, string>;
  // In the order in which they happened.
  events: Event[];
  entries: Entry[];
};

export const kinds = [
  "issued",
  "locked",
  "redeemed",
  "reversed",
  "voided",
  "expired",
  "cancelled",
  "lapsed",
  "cancelled before its lock",
  "to lock",
  "to redeem",
  "to confirm",
  "to cancel",
  "to reverse",
  "to void",
] as const;
export type Kind = (typeof kinds)[number] | "unreleased" | "scoped";

/** Lives the life of one side. */
export async function tellStory(service: Running, variant: Variant, side: Side): Promise<Story> {
  const name = `${variant.toLowerCase()}1`;
  const keyOf = (role: string) => `ak_${name}_${variant === "A" ? "m" : role}${side}`;
  const story = {
    tenant: `ten_${name}`,
    variant,
    side,
    maker: keyOf("m"),
    distributor: keyOf("d"),
    shop: keyOf("s"),
    makerParty: `pty_m${side}`,
    distributorParty: `pty_d${side}`,
    merchant: `mch_${side}`,
    template: `tpl_${side}`,
    store: `S${side}`,
    terminal: `T${side}`,
    amount: 4 + side,
    events: [] as Event[],
    entries: [] as Entry[],
    lockRequestIds: {} as Record<string, string>,
  };
  const { coupons, released, unreleased } = await makeCoupons(service, story);
  await act(service, story, coupons, released);
  const shownBatch = async (id: string) => {
    const { json } = await service.as(story.maker).get(`/v1/batches/${id}`);
    return { ...json.batch, ...termsOf(story) };
  };
  return {
    ...story,
    coupons: await show(service, story, coupons, unreleased),
    batches: { COMPLETED: await shownBatch(unreleased), ALLOCATED: await shownBatch(released) },
  };
}

/** Orders a batch that nobody mints. Other batches are minted before. */
export async function orderPending(service: Running, story: Story): Promise<void> {
  const { maker, template, batches } = story;
  const body = { request_id: `pending ${template}`, template, total_count: 4 };
  batches["PENDING"] = { ...(await postOk(service.as(maker), "/v1/batches", body)).batch, ...termsOf(story) };
}

// What a batch says about its owner.
const termsOf = ({ makerParty, distributorParty, template }: Told) => ({
  maker_party_id: makerParty,
  distributor_party_id: distributorParty,
  template_id: template,
});

type Told = Omit<Story, "coupons" | "batches">;
type Made = Record<Kind, { code: string; id: string; batch: string; redemption: string | null }>;

async function makeCoupons(service: Running, story: Told) {
  const maker = service.as(story.maker);
  const released = await service.makeBatch(maker, story.template, kinds.length);
  const unreleased = await service.makeBatch(maker, story.template, 1, { isReleased: false });
  const scoped = await service.makeBatch(maker, `tpl_s${story.side}`, 1);
  const pick = ({ id, codes, couponIds }: typeof released, index: number) => ({
    code: codes[index]!,
    id: couponIds[index]!,
    batch: id,
    redemption: null,
  });
  const coupons: Made = Object.fromEntries([
    ...kinds.map((kind, index) => [kind, pick(released, index)]),
    ["unreleased", pick(unreleased, 0)],
    ["scoped", pick(scoped, 0)],
  ]);
  return { coupons, released: released.id, unreleased: unreleased.id };
}

// The request_ids of the two sides are equal in Variant B, where each party has its own.
async function act(service: Running, story: Told, coupons: Made, batch: string): Promise<void> {
  const { variant, side, merchant, store, terminal, events, entries } = story;
  const shop = service.as(story.shop);
  const idOf = (what: string) => (variant === "A" ? `${side} ${what}` : what);
  const post = (path: string, what: string, body: object) => postOk(shop, path, { request_id: idOf(what), ...body });
  const happen = (kind: Kind, event_type: string, redemption_id: string | null) =>
    events.push({ event_type, coupon_id: coupons[kind].id, redemption_id });
  async function grant(operation: string, kind: Kind): Promise<void> {
    const place = { merchant, store, terminal, order_amount: 20 + side, order_id: `order ${side}` };
    const what = `${operation} ${kind}`;
    const answer = await post(`/v1/coupons/${operation}`, what, { coupon: coupons[kind].code, ...place });
    coupons[kind].redemption = answer.redemption;
    story.lockRequestIds[kind] = idOf(what);
    if (operation === "redeem") enter(kind, "REDEMPTION");
  }
  function enter(kind: Kind, entry_type: string): void {
    const redemption_id = coupons[kind].redemption!;
    happen(kind, entry_type === "REDEMPTION" ? "coupon.redeemed" : "coupon.reversed", redemption_id);
    entries.push({ entry_type, redemption_id, coupon_id: coupons[kind].id, batch_id: batch });
  }
  const cancel = (kind: Kind, lock_request_id: string) =>
    shop.post("/v1/coupons/cancel", {
      request_id: idOf(`cancel ${kind}`),
      coupon: coupons[kind].code,
      lock_request_id,
    });

  for (const kind of ["locked", "cancelled", "lapsed", "to confirm", "to cancel"] as const) await grant("lock", kind);
  for (const kind of ["redeemed", "reversed", "to reverse"] as const) await grant("redeem", kind);
  await post("/v1/redemptions/reverse", "reverse", { redemption: coupons.reversed.redemption, reason: `no ${side}` });
  enter("reversed", "REVERSAL");
  await post("/v1/coupons/void", "void", { coupon: coupons.voided.code, merchant, reason: `void ${side}` });
  happen("voided", "coupon.voided", null);
  await cancel("cancelled", story.lockRequestIds["cancelled"]!);
  story.lockRequestIds["cancelled before its lock"] = idOf("comes later");
  await cancel("cancelled before its lock", idOf("comes later"));
  await service.admin.rows("select admin.extend_coupon($1, $2, '2021-01-01', 'to expire it')", [
    story.tenant,
    coupons.expired.id,
  ]);
  await service.owner.rows("select jobs.expire_coupons(100)");
  happen("expired", "coupon.expired", null);
  // A lock whose time is over, without the wait.
  await service.owner.rows(
    "update core.redemption set lock_expires_at = clock_timestamp() where redemption_id = rules.parse_id('red', $1)",
    [coupons.lapsed.redemption],
  );
  await service.owner.rows("select jobs.lapse_locks(100)");
}

const statusOf: Partial<Record<Kind, string>> = {
  locked: "LOCKED",
  "to confirm": "LOCKED",
  "to cancel": "LOCKED",
  redeemed: "REDEEMED",
  "to reverse": "REDEEMED",
  voided: "VOIDED",
  expired: "EXPIRED",
};

// Adds what a query must answer.
async function show(
  service: Running,
  { variant, tenant, merchant, template, side, amount }: Told,
  coupons: Made,
  unreleased: string,
): Promise<Record<Kind, Owned>> {
  const times = await service.owner.rows<{ coupon: string; created_at: Date; valid_to: Date; started_at: Date | null }>(
    `select c.coupon, c.created_at, c.valid_to, r.started_at
     from report.coupon c left join report.redemption r using (tenant_id, coupon_key) where c.tenant = $1`,
    [tenant],
  );
  const shown = Object.entries(coupons).map(([kind, { code, id, batch, redemption }]) => {
    const { created_at, valid_to, started_at } = times.find(({ coupon }) => coupon === id)!;
    const status = statusOf[kind as Kind] ?? (variant === "B" && batch === unreleased ? "CREATED" : "ISSUED");
    const last = { locked: "LOCKED", "to confirm": "LOCKED", "to cancel": "LOCKED", reversed: "REVERSED" };
    const base = { coupon_id: id, status, batch_id: batch, created_at: created_at.toISOString() };
    const forA = {
      ...base,
      valid_from: "2020-01-01T00:00:00.000Z",
      valid_to: valid_to.toISOString(),
      ...((kind === "reversed" || /LOCKED|REDEEMED/.test(status)) && {
        redemption: {
          merchant_id: merchant,
          status: (last as Record<string, string>)[kind] ?? "REDEEMED",
          started_at: started_at!.toISOString(),
          discount_amount: amount,
          currency: "EUR",
        },
      }),
    };
    const forB = { ...base, template_id: kind === "scoped" ? `tpl_s${side}` : template };
    return [kind, { code, id, redemption, shown: variant === "A" ? forA : forB }];
  });
  return Object.fromEntries(shown);
}
