// Requests that are changed at random, and the exceptions under "What the schemas cannot say".
import fc from "fast-check";
import type { Variant } from "../../src/gate/gate.ts";
import { code } from "../support/stub.ts";

// Every optional field, so that each is changed.
const optional: Record<Variant, Record<string, unknown>> = {
  A: {
    order_amount: 20,
    currency: "EUR",
    order_id: "4711",
    store: "S1",
    terminal: "T1",
    redemption_context: { items: [{ sku: "A1", quantity: 1, amount: 5 }], basket: 7 },
  },
  B: { order_amount: 20, currency: "EUR", order_id: "4711", store: "S1", terminal: "T1" },
};
const more: Record<string, (variant: Variant) => Record<string, unknown>> = {
  "/v1/coupons/lock": (variant) => optional[variant],
  "/v1/coupons/redeem": (variant) => optional[variant],
  "/v1/coupons/void": () => ({ reason: "printed twice" }),
  "/v1/coupons/query": () => ({ request_id: "r-1" }),
  "/v1/redemptions/reverse": () => ({ reason: "goods returned" }),
  "/v1/batches": () => ({ distributor: "pty_1" }),
};

export const fullBody = (path: string, variant: Variant) => more[path]?.(variant) ?? {};

export const sizes = [0, 1, 3, 16, 63, 64, 65, 127, 128, 129, 499, 500, 501];
const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc
    .constantFrom(...sizes)
    .chain((length) => fc.constantFrom("x", "é", "😀", " ", "\u0958").map((c) => c.repeat(length))),
  fc.constantFrom("EUR", "eur", "EURO", code, code.toLowerCase(), `${code.slice(0, 8)}-${code.slice(8)}`, `${code}0`),
  fc.constantFrom("a\u0000", "a\ud800", "line\nbreak", "\u200b", "\ue000", "U".repeat(16), "0".repeat(16)),
);
const number = fc.oneof(
  fc.constantFrom(0, -0, 1, -1, 1.5, 0.001, 9_999_999, 10_000_000, 10_000_001, 999_999_999_999.99, 1e12, 1e300, -0.01),
  fc.double({ noDefaultInfinity: true, noNaN: true }),
);
const value = fc.oneof(
  { arbitrary: text, weight: 3 },
  { arbitrary: number, weight: 2 },
  fc.constantFrom<unknown>(null, true, [], {}, [code], { items: [] }, { items: {} }, { items: [{ name: "x" }] }),
  fc.record({ items: fc.array(fc.record({ sku: text, quantity: number, amount: number }, { requiredKeys: [] })) }),
);

// One or two fields replaced, dropped or added. Most get a value of their type, so that many requests stay well-formed.
export const changes = fc.array(
  fc.record({
    pick: fc.nat(),
    how: fc.constantFrom("retype", "replace", "replace", "replace", "drop", "add"),
    text,
    number,
    value,
    // One step inside or outside the limit of the field, or elsewhere.
    step: fc.constantFrom(-1, 0, 1, null, null, null),
  }),
  { minLength: 1, maxLength: 2 },
);
type Change = { pick: number; how: string; text: string; number: number; value: unknown; step: number | null };
type Limits = Record<string, { maxLength?: number; maximum?: number }>;

export function change(body: Record<string, unknown>, all: readonly Change[], limits: Limits): Record<string, unknown> {
  const changed = { ...body };
  for (const { pick, how, text, number, value, step } of all) {
    const names = Object.keys(body);
    const name = how === "add" ? "unknown" : names[pick % names.length]!;
    const old = body[name];
    const { maxLength, maximum } = limits[name] ?? {};
    if (how === "drop") delete changed[name];
    else if (how === "replace" && step !== null && maxLength !== undefined)
      changed[name] = "x".repeat(maxLength + step);
    else if (how === "replace" && step !== null && maximum !== undefined) changed[name] = maximum + step;
    else if (how === "replace" && typeof old === "string") changed[name] = text;
    else if (how === "replace" && typeof old === "number") changed[name] = number;
    else changed[name] = value;
  }
  return changed;
}

const texts = (value: unknown): string[] =>
  typeof value === "string"
    ? [value]
    : typeof value === "object" && value !== null
      ? Object.values(value).flatMap(texts)
      : [];

/** The exceptions of the list that make a request a 400 although it fits its schema. */
export function mayRefuse({ coupon: _, ...rest }: Record<string, unknown>): boolean {
  const all = texts(rest);
  const hasCode = all.some((each) => each.toUpperCase().replace(/[- ]/g, "").includes(code));
  return (
    hasCode ||
    all.some((each) => /\p{C}/u.test(each)) ||
    hasLabel(rest, (each) => [...each.normalize("NFC")].length > 64)
  );
}

/** The exception that makes a request well-formed although it does not fit its schema. */
export function mayAccept(body: Record<string, unknown>): boolean {
  return hasLabel(body, (each) => [...each].length > 64 && [...each.trim().normalize("NFC")].length <= 64);
}

function hasLabel({ store, terminal }: Record<string, unknown>, is: (text: string) => boolean): boolean {
  return [store, terminal].some((each) => typeof each === "string" && is(each));
}
