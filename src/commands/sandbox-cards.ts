// Test cards: real coupons of a sandbox, one in each state that a till must handle, with the answer that the till must
// get. They are made with the operations of the interface, as the parties of the tenant.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { batchKey, lookupHash, makeCode } from "../crypto/coupon-code.ts";
import type { MasterKeys } from "../crypto/keys.ts";
import type { Database } from "../database/types.ts";
import { crockfordAlphabet } from "../formats/crockford.ts";
import type { IssuedCode } from "../formats/codes-csv.ts";
import { apply } from "./apply.ts";
import { exportCodes } from "./codes.ts";

export type Card = {
  case: string;
  code: string;
  /** To send with the lock. */
  order_amount: number | null;
  expected: string;
  discount_amount: number | null;
};
type Tenant = { name: string; variant: "A" | "B"; amount_unit: "major" | "minor"; is_sandbox: boolean };
type Place = { merchant: string; party: string; maker: string; distributor: string | null; currency: string };
/** orderAmount and discount are in major units. */
type Case = { name: string; template: Template; orderAmount: number | null; expected: string; discount?: number };
type Template = keyof typeof terms;

const always = { valid_from: "2020-01-01T00:00:00Z", valid_to: "2099-01-01T00:00:00Z" };
const otherMerchant = "mch_sandboxother";
const [order, smallOrder, minimum, fixed] = [50, 10, 20, 5];

// Amounts are in major units.
const terms = {
  fixed: {},
  percent: { discount: { type: "percent", percent: 10 } },
  minimum: { min_order_amount: minimum },
  // Short enough to wait for its end, long enough to lock and confirm again.
  short: { lock_ttl_seconds: 30 },
  early: { valid_from: "2098-01-01T00:00:00Z" },
  scoped: { merchants: [otherMerchant] },
  // A card stays locked for as long as a lock can last.
  locked: { lock_ttl_seconds: 604_800 },
  reissued: { after_reversal: "reissued" },
  unreleased: {},
  suspended: {},
} as const;

const cases: Case[] = [
  { name: "redeemable", template: "fixed", orderAmount: order, expected: "200", discount: fixed },
  { name: "10 percent off", template: "percent", orderAmount: order, expected: "200", discount: order / 10 },
  { name: "no order amount", template: "percent", orderAmount: null, expected: "422 DISCOUNT_NOT_COMPUTABLE" },
  { name: "minimum reached", template: "minimum", orderAmount: minimum, expected: "200", discount: fixed },
  { name: "below minimum", template: "minimum", orderAmount: smallOrder, expected: "422 ORDER_BELOW_MINIMUM" },
  { name: "short lock", template: "short", orderAmount: order, expected: "200", discount: fixed },
  { name: "not yet valid", template: "early", orderAmount: order, expected: "409 COUPON_NOT_YET_VALID" },
  { name: "expired", template: "fixed", orderAmount: order, expected: "409 COUPON_EXPIRED" },
  { name: "voided", template: "fixed", orderAmount: order, expected: "409 COUPON_VOIDED" },
  { name: "locked by another", template: "locked", orderAmount: order, expected: "409 COUPON_LOCKED" },
  { name: "redeemed", template: "fixed", orderAmount: order, expected: "409 COUPON_REDEEMED" },
  { name: "reversed", template: "fixed", orderAmount: order, expected: "409 COUPON_REDEEMED" },
  { name: "reversed, reissued", template: "reissued", orderAmount: order, expected: "200", discount: fixed },
  { name: "not released", template: "unreleased", orderAmount: order, expected: "409 COUPON_NOT_RELEASED" },
  { name: "batch suspended", template: "suspended", orderAmount: order, expected: "409 BATCH_SUSPENDED" },
  { name: "wrong merchant", template: "scoped", orderAmount: order, expected: "422 MERCHANT_NOT_IN_SCOPE" },
];

type Parts = { database: Database; keys: MasterKeys };

/** Rejects if the tenant is no sandbox, or has no merchant of this name. */
export async function makeCards({ database, keys }: Parts, tenant: string, merchant?: string): Promise<Card[]> {
  const found = await readTenant(database, tenant);
  const place = await readPlace(database, tenant, merchant);
  const perform = async (party: string, operation: string, args: object): Promise<any> => {
    const [row] = await database.rows<{ http_status: number; body: any }>(
      "select http_status, body from admin.perform_in_sandbox($1, $2, $3, $4::text::jsonb)",
      [tenant, party, operation, JSON.stringify(args)],
    );
    if (row!.http_status !== 200) throw new Error(`${operation}: ${row!.body.code}: ${row!.body.message}`);
    return row!.body;
  };
  await apply(database, keys, describeTemplates(tenant, found, place));

  const batches = new Map<Template, string>();
  for (const template of Object.keys(terms) as Template[]) {
    const total_count = cases.filter((one) => one.template === template).length;
    const args = { template: idOf(template), total_count, key_version: keys.current };
    batches.set(template, (await perform(place.maker, "create_batch", args)).batch.external_id);
  }
  await waitForMint(database, [...batches.values()]);
  const coupons = new Map<Template, IssuedCode[]>();
  for (const [template, batch] of batches) {
    coupons.set(template, (await Array.fromAsync(exportCodes(database, keys, batch, true))).flat());
    if (template !== "unreleased") await perform(place.maker, "allocate_batch", { batch });
  }

  const cards: Card[] = [];
  for (const { name, template, orderAmount, expected, discount } of cases) {
    const coupon = coupons.get(template)!.shift()!;
    const args = {
      coupon: lookupHash(keys, coupon.code),
      merchant: place.merchant,
      order_amount: inUnit(found, order),
    };
    await bring(name, { perform: (operation, more) => perform(place.party, operation, more ?? args), args, coupon });
    cards.push({
      case: name,
      code: coupon.code,
      order_amount: orderAmount === null ? null : inUnit(found, orderAmount),
      expected,
      discount_amount: discount === undefined ? null : inUnit(found, discount),
    });
  }
  await database.rows("select admin.suspend_batch($1, 'test card')", [batches.get("suspended")!]);
  return [...cards, ...makeWrongCodes(keys, cards[0]!)];

  async function bring(name: string, { perform, args, coupon }: Bringing): Promise<void> {
    const { coupon: hash, merchant: at } = args;
    if (name === "voided") await perform("void", { coupon: hash, merchant: at });
    if (name === "locked by another") await perform("lock");
    if (name === "redeemed") await perform("redeem");
    if (name.startsWith("reversed"))
      await perform("reverse", { redemption: (await perform("redeem")).redemption as string });
    if (name === "expired")
      await database.rows("select admin.extend_coupon($1, $2, '2021-01-01', 'test card')", [tenant, coupon.coupon_id]);
  }
}

type Bringing = {
  perform: (operation: string, args?: object) => Promise<any>;
  args: { coupon: string; merchant: string };
  coupon: IssuedCode;
};

const idOf = (template: Template): string => `tpl_sandbox${template}`;

async function readTenant(database: Database, tenant: string): Promise<Tenant> {
  const [found] = await database.rows<Tenant>(
    "select name, variant, amount_unit, is_sandbox from report.tenant where tenant = $1",
    [tenant],
  );
  if (found === undefined) throw new Error(`no tenant ${tenant}`);
  if (!found.is_sandbox) throw new Error(`${tenant} is no sandbox`);
  return found;
}

// Where the cards are for: maker, distributor and currency are those of the tenant's first template.
async function readPlace(database: Database, tenant: string, merchant?: string): Promise<Place> {
  const [place] = await database.rows<Place>(
    `select m.merchant, m.party, coalesce(t.maker, m.party) as maker, t.distributor,
            coalesce(t.currency, 'EUR') as currency
     from report.merchant m
     left join lateral (
       select x.maker, x.distributor, x.currency
       from report.template x
       where x.tenant = m.tenant and x.template not like 'tpl\\_sandbox%'
       order by x.created_at, x.template
       limit 1) t on true
     where m.tenant = $1 and m.merchant = coalesce($2, m.merchant) and m.merchant <> $3
     order by m.created_at, m.merchant
     limit 1`,
    [tenant, merchant ?? null, otherMerchant],
  );
  if (place === undefined) throw new Error(`${tenant} has no merchant${merchant === undefined ? "" : ` ${merchant}`}`);
  return place;
}

const inUnit = ({ amount_unit }: Tenant, amount: number): number => (amount_unit === "minor" ? amount * 100 : amount);

function describeTemplates(id: string, tenant: Tenant, place: Place): unknown {
  const { name, variant, amount_unit } = tenant;
  const templates = Object.entries(terms).map(([template, more]) => ({
    id: idOf(template as Template),
    name: `Test cards: ${template}`,
    maker: place.maker,
    ...(place.distributor !== null && { distributor: place.distributor }),
    currency: place.currency,
    discount: { type: "fixed", amount: inUnit(tenant, fixed) },
    ...always,
    ...more,
    ...("min_order_amount" in more && { min_order_amount: inUnit(tenant, more.min_order_amount) }),
  }));
  const merchants = [{ id: otherMerchant, name: "Test cards: another merchant", party: place.party }];
  return { tenants: [{ id, name, variant, amount_unit, merchants, templates }] };
}

async function waitForMint(database: Database, batches: string[]): Promise<void> {
  const until = performance.now() + 60_000;
  for (;;) {
    const [row] = await database.rows<{ is_minted: boolean }>(
      "select bool_and(status <> 'PENDING') as is_minted from report.batch where batch = any ($1)",
      [batches],
    );
    if (row!.is_minted) return;
    if (performance.now() > until) throw new Error("the batches are not minted after 60 s: does `work` run?");
    await sleep(200);
  }
}

// One that the service never made, and one that it could have made but did not.
function makeWrongCodes(keys: MasterKeys, { code, order_amount }: Card): Card[] {
  const last = crockfordAlphabet[(crockfordAlphabet.indexOf(code.at(-1)!) + 1) % 32]!;
  const unknown = makeCode(keys, keys.current, batchKey(keys, keys.current, randomBytes(32)), 1);
  // The order of the fields is that of the columns.
  const wrong = (name: string, code: string, expected: string): Card => ({
    case: name,
    code,
    order_amount,
    expected,
    discount_amount: null,
  });
  return [
    wrong("mistyped", code.slice(0, -1) + last, "422 COUPON_CODE_INVALID"),
    wrong("unknown", unknown, "404 NOT_FOUND"),
  ];
}
