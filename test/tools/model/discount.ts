// A second implementation of the discount, from the documents and independent of the SQL, in integers.
import { decimalsOf, type Setup, type Terms } from "./setup.ts";

type Item = { sku?: string; amount?: number };
export type Basket = { order_amount?: number; currency?: string; redemption_context?: { items: Item[] } };
export type Refused = { code: string; missing?: string };
type Discount = { minor: number } | Refused;

// Returns null when the amount has more decimals than the unit allows.
function toMinor(amount: number, currency: Terms["currency"], unit: Setup["unit"]): bigint | null {
  const decimals = unit === "minor" ? 0 : decimalsOf[currency];
  const [whole, fraction = ""] = String(amount).split(".");
  return fraction.length > decimals ? null : BigInt(`${whole}${fraction.padEnd(decimals, "0")}`);
}

// Returns the path of the first invalid amount. Amounts in another currency are not checked.
export function findBadAmount(
  { currency, order_amount, redemption_context }: Basket,
  terms: Terms,
  unit: Setup["unit"],
): string | null {
  if (currency !== undefined && currency !== terms.currency) return null;
  const isBad = (amount: number | undefined) => amount !== undefined && toMinor(amount, terms.currency, unit) === null;
  if (isBad(order_amount)) return "order_amount";
  const at = (redemption_context?.items ?? []).findIndex((item) => isBad(item.amount));
  return at === -1 ? null : `redemption_context.items.${at}.amount`;
}

export function computeDiscount(basket: Basket, terms: Terms, unit: Setup["unit"]): Discount {
  const { currency, order_amount, redemption_context } = basket;
  if (currency !== undefined && currency !== terms.currency) return { code: "CURRENCY_MISMATCH" };
  const read = (amount: number) => toMinor(amount, terms.currency, unit)!;
  const order = order_amount === undefined ? null : read(order_amount);
  if (order === null && (terms.percent !== undefined || terms.min !== undefined))
    return { code: "DISCOUNT_NOT_COMPUTABLE", missing: "order_amount" };
  let counted = order;
  let matching: Item[] | null = null;
  if (terms.skus !== undefined) {
    const items = redemption_context?.items;
    if (items === undefined) return { code: "DISCOUNT_NOT_COMPUTABLE", missing: "redemption_context.items" };
    matching = items.filter(({ sku }) => sku !== undefined && terms.skus!.includes(sku));
    if (matching.some(({ amount }) => amount === undefined))
      return { code: "DISCOUNT_NOT_COMPUTABLE", missing: "the amount of each matching item" };
    counted = matching.reduce((sum, { amount }) => sum + read(amount!), 0n);
  }
  if (order !== null && terms.min !== undefined && order < BigInt(terms.min)) return { code: "ORDER_BELOW_MINIMUM" };
  if (matching?.length === 0) return { code: "NO_ELIGIBLE_ITEMS" };
  // Rounds half up: the divisor is 1,000,000, so half of it is added before the division.
  const off =
    terms.percent === undefined ? BigInt(terms.fixed!) : (counted! * BigInt(terms.percent) + 500_000n) / 1_000_000n;
  const bounds = [off, counted, order, terms.max === undefined ? null : BigInt(terms.max)].filter(
    (bound) => bound !== null,
  );
  return { minor: Number(bounds.reduce((least, bound) => (bound < least ? bound : least))) };
}

// In the unit of the tenant's answers. Reports use major units.
export function toAmount(minor: number, currency: Terms["currency"], unit: Setup["unit"] = "major"): number {
  return unit === "minor" ? minor : Number((minor / 10 ** decimalsOf[currency]).toFixed(decimalsOf[currency]));
}
