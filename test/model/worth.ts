// What a coupon takes off an order, a second time: by README's Decisions, in whole numbers, without a look at the SQL.
import { decimalsOf, type Cast, type Terms } from "./kinds.ts";

export type Item = { sku?: string; quantity?: number; amount?: number };
export type Basket = { order_amount?: number; currency?: string; redemption_context?: { items?: Item[] } };
export type Worth = { minor: number } | { code: string; missing?: string };

// Null: more decimals than the unit has.
export function toMinor(amount: number, currency: Terms["currency"], unit: Cast["unit"]): bigint | null {
  const decimals = unit === "minor" ? 0 : decimalsOf[currency];
  const [whole, fraction = ""] = String(amount).split(".");
  return fraction.length > decimals ? null : BigInt(`${whole}${fraction.padEnd(decimals, "0")}`);
}

// The first amount of a basket that is none in the coupon's currency: its path. What is in another currency is not read.
export function findBadAmount(
  { currency, order_amount, redemption_context }: Basket,
  terms: Terms,
  unit: Cast["unit"],
): string | null {
  if (currency !== undefined && currency !== terms.currency) return null;
  const isBad = (amount: number | undefined) => amount !== undefined && toMinor(amount, terms.currency, unit) === null;
  if (isBad(order_amount)) return "order_amount";
  const at = (redemption_context?.items ?? []).findIndex((item) => isBad(item.amount));
  return at === -1 ? null : `redemption_context.items.${at}.amount`;
}

export function worthOf(basket: Basket, terms: Terms, unit: Cast["unit"]): Worth {
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
  // Half up: a percent is a ten-thousandth of 1/100, so half of 1,000,000 is added before the fraction is cut off.
  const off =
    terms.percent === undefined ? BigInt(terms.fixed!) : (counted! * BigInt(terms.percent) + 500_000n) / 1_000_000n;
  const bounds = [off, counted, order, terms.max === undefined ? null : BigInt(terms.max)].filter(
    (bound) => bound !== null,
  );
  return { minor: Number(bounds.reduce((least, bound) => (bound < least ? bound : least))) };
}

// As an answer shows it.
export function toAmount(minor: number, currency: Terms["currency"], unit: Cast["unit"]): number {
  return unit === "minor" ? minor : Number((minor / 10 ** decimalsOf[currency]).toFixed(decimalsOf[currency]));
}

// In major units, as the reports and statements have it.
export function toDecimal(minor: number, currency: Terms["currency"]): string {
  // Not -0.00.
  return ((minor || 0) / 10 ** decimalsOf[currency]).toFixed(decimalsOf[currency]);
}
