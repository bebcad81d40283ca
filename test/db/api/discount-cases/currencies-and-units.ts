// Currencies with none, three and four decimals, and tenants whose amounts are in minor units.
import { item, type Rule } from "./types.ts";

export const currenciesAndUnits: Rule[] = [
  {
    name: "500 JPY",
    currency: "JPY",
    discount: { type: "fixed", amount: 500 },
    cases: [
      [{ order: 1000 }, "500", 500],
      [{ order: "499.0" }, "499", 499],
      [{ order: 499.5 }, "400 order_amount"],
    ],
  },
  {
    name: "10 % JPY",
    currency: "JPY",
    discount: { type: "percent", percent: 10 },
    cases: [
      [{ order: 104 }, "10", 10], // 10.4
      [{ order: 105 }, "11", 11], // 10.5
      [{ order: 5 }, "1", 1], // 0.5
      [{ order: 4 }, "0", 0],
      [{ order: "999999999999" }, "100000000000", 100_000_000_000], // …99999.9
    ],
  },
  {
    name: "10 % BHD",
    currency: "BHD",
    discount: { type: "percent", percent: 10 },
    cases: [
      [{ order: 1.005 }, "0.101", 101], // 100.5 fils
      [{ order: 0.004 }, "0.000", 0],
      [{ order: 1.2345 }, "400 order_amount"],
      [{ order: "999999999999.999" }, "100000000000.000", 100_000_000_000_000],
    ],
  },
  {
    name: "500 JPY on A1",
    currency: "JPY",
    discount: { type: "fixed", amount: 500 },
    skus: ["A1"],
    cases: [
      [{ items: [item("A1", 300)] }, "300", 300],
      [{ items: [item("A1", 1.5)] }, "400 redemption_context.items.0.amount"],
    ],
  },
  {
    name: "10 % BHD on A1",
    currency: "BHD",
    discount: { type: "percent", percent: 10 },
    skus: ["A1"],
    cases: [[{ order: 9, items: [item("A1", 1.005)] }, "0.101", 101]], // 100.5 fils
  },
  {
    name: "10 % CLF",
    currency: "CLF",
    discount: { type: "percent", percent: 10 },
    cases: [
      [{ order: 1.0005 }, "0.1001", 1001], // 1000.5
      [{ order: 0.0004 }, "0.0000", 0],
      [{ order: 1.00005 }, "400 order_amount"],
      [{ order: "999999999999.9999" }, "100000000000.0000", 1_000_000_000_000_000],
    ],
  },
  {
    name: "500 cents",
    unit: "minor",
    currency: "EUR",
    discount: { type: "fixed", amount: 500 },
    cases: [
      [{}, "500", 500],
      [{ order: 1999 }, "500", 500],
      [{ order: 499 }, "499", 499],
      [{ order: 19.99 }, "400 order_amount"],
      [{ order: "999999999999" }, "500", 500],
      [{ order: "1e12" }, "400 order_amount"],
    ],
  },
  {
    name: "500 cents on A1",
    unit: "minor",
    currency: "EUR",
    discount: { type: "fixed", amount: 500 },
    skus: ["A1"],
    cases: [
      [{ items: [item("A1", 300)] }, "300", 300],
      [{ items: [item("A1", 3.5)] }, "400 redemption_context.items.0.amount"],
    ],
  },
  {
    name: "15 %, amounts in cents",
    unit: "minor",
    currency: "EUR",
    discount: { type: "percent", percent: 15, max_amount: 1000 },
    min: 10,
    cases: [
      [{ order: 1999 }, "300", 300], // 299.85
      [{ order: 10 }, "2", 2], // 1.5
      [{ order: 9 }, "ORDER_BELOW_MINIMUM"],
      [{ order: 10_000 }, "1000", 1000],
    ],
  },
  {
    name: "10 % BHD, amounts in fils",
    unit: "minor",
    currency: "BHD",
    discount: { type: "percent", percent: 10 },
    cases: [
      [{ order: 1005 }, "101", 101],
      [{ order: 1.005 }, "400 order_amount"],
    ],
  },
  {
    name: "500 JPY, in yen both ways",
    unit: "minor",
    currency: "JPY",
    discount: { type: "fixed", amount: 500 },
    cases: [
      [{ order: 1000 }, "500", 500],
      [{ order: 0.5 }, "400 order_amount"],
    ],
  },
];
