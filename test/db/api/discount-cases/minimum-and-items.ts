// Discounts with a minimum order, and discounts on certain items only.
import { item, notComputable, type Rule } from "./types.ts";

export const minimumAndItems: Rule[] = [
  {
    name: "5.00 EUR from 20.00",
    currency: "EUR",
    discount: { type: "fixed", amount: 5 },
    min: 20,
    cases: [
      [{}, notComputable],
      [{ order: 19.99 }, "ORDER_BELOW_MINIMUM"],
      [{ order: 0 }, "ORDER_BELOW_MINIMUM"],
      [{ order: 20 }, "5.00", 500],
      [{ order: 19.99, currency: "USD" }, "CURRENCY_MISMATCH"],
    ],
  },
  {
    name: "10 % EUR from 20.00, at most 3.00",
    currency: "EUR",
    discount: { type: "percent", percent: 10, max_amount: 3 },
    min: 20,
    cases: [
      [{ order: 19.99 }, "ORDER_BELOW_MINIMUM"],
      [{ order: 20.05 }, "2.01", 201], // 200.5 cents
      [{ order: 30.05 }, "3.00", 300],
    ],
  },
  {
    name: "5.00 EUR on A1, B2",
    currency: "EUR",
    discount: { type: "fixed", amount: 5 },
    skus: ["B2", "A1"],
    cases: [
      [{}, notComputable],
      [{ order: 20 }, notComputable],
      [{ items: [] }, "NO_ELIGIBLE_ITEMS"],
      [{ items: [item("C3", 9)] }, "NO_ELIGIBLE_ITEMS"],
      [{ items: [item("a1", 9)] }, "NO_ELIGIBLE_ITEMS"],
      [{ items: [{ amount: 9 }] }, "NO_ELIGIBLE_ITEMS"],
      [{ items: [item("A1")] }, notComputable],
      [{ items: [item("A1", 3), item("B2")] }, notComputable],
      [{ items: [item("A1", 3)] }, "3.00", 300],
      [{ items: [item("A1", 3), item("C3")] }, "3.00", 300],
      [{ items: [item("A1", 3), item("B2", 1.99), item("C3", 90)] }, "4.99", 499],
      [{ items: [item("A1", 2), item("A1", 2), item("B2", 2)] }, "5.00", 500],
      [{ items: [item("A1", 2, 10)] }, "2.00", 200], // the line's total, whatever the quantity
      [{ items: [item("A1", 0)] }, "0.00", 0],
      [{ items: [item("A1", 10)], order: 4 }, "4.00", 400], // never more than the order
      [{ items: [item("C3", 1), item("A1", 3.001)] }, "400 redemption_context.items.1.amount"],
      [{ items: [item("A1", -1)] }, "400 redemption_context.items.0.amount"],
      [{ items: [item("A1", 1e12)] }, "400 redemption_context.items.0.amount"],
      [{ order: 1.001, items: [item("A1", 1.001)] }, "400 order_amount"],
      [{ items: [item("C3", 1.001)] }, "400 redemption_context.items.0.amount"],
      [{ items: [item("A1", 1), item("C3", 1.001), item("A1", 3.001)] }, "400 redemption_context.items.1.amount"],
    ],
  },
  {
    name: "10 % EUR on A1, order from 20.00",
    currency: "EUR",
    discount: { type: "percent", percent: 10 },
    min: 20,
    skus: ["A1"],
    cases: [
      [{ items: [item("A1", 30)] }, notComputable],
      [{ order: 100 }, notComputable],
      [{ order: 100, items: [item("A1", 10.05), item("C3", 89.95)] }, "1.01", 101], // 100.5 cents
      [{ order: 19.99, items: [item("A1", 19.99)] }, "ORDER_BELOW_MINIMUM"],
      [{ order: 19.99, items: [item("C3", 19.99)] }, "ORDER_BELOW_MINIMUM"],
      [{ order: 20, items: [item("C3", 20)] }, "NO_ELIGIBLE_ITEMS"],
    ],
  },
];
