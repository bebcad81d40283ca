// Fixed and percent discounts of an order in euros (and one in dinars), with their rounding.
import { notComputable, type Rule } from "./types.ts";

export const fixedAndPercent: Rule[] = [
  {
    name: "fixed 5.00 EUR",
    currency: "EUR",
    discount: { type: "fixed", amount: 5 },
    cases: [
      [{}, "5.00", 500],
      [{ order: 20 }, "5.00", 500],
      [{ order: 5 }, "5.00", 500],
      [{ order: "4.99" }, "4.99", 499],
      [{ order: 0.01 }, "0.01", 1],
      [{ order: 0 }, "0.00", 0],
      [{ order: "-0" }, "0.00", 0],
      [{ order: "5e0" }, "5.00", 500],
      [{ order: "3.2000" }, "3.20", 320],
      [{ order: "999999999999.99" }, "5.00", 500],
      [{ order: 20, currency: "EUR" }, "5.00", 500],
      [{ order: 20, currency: "USD" }, "CURRENCY_MISMATCH"],
      [{ order: 20, currency: "ZZZ" }, "CURRENCY_MISMATCH"],
      [{ order: 10.5, currency: "JPY" }, "CURRENCY_MISMATCH"],
      [{ order: 20, currency: "eur" }, "400 currency"],
      [{ order: 20, currency: "EURO" }, "400 currency"],
      [{ order: 20, currency: "" }, "400 currency"],
      [{ order: 4.999 }, "400 order_amount"],
      [{ order: "0.30000000000000004" }, "400 order_amount"],
      [{ order: "1e-3" }, "400 order_amount"],
      [{ order: "-0.01" }, "400 order_amount"],
      [{ order: -1 }, "400 order_amount"],
      [{ order: "1e12" }, "400 order_amount"],
      [{ order: "1000000000000.01" }, "400 order_amount"],
      [{ order: "1e400" }, "400 order_amount"],
      [{ order: "-1e400" }, "400 order_amount"],
      [{ order: "NaN" }, "400 (body)"],
      [{ order: "Infinity" }, "400 (body)"],
      [{ order: '"20"' }, "400 order_amount"],
      [{ order: "null" }, "400 order_amount"],
      [{ order: "true" }, "400 order_amount"],
    ],
  },
  {
    name: "15 % EUR",
    currency: "EUR",
    discount: { type: "percent", percent: 15 },
    cases: [
      [{}, notComputable],
      [{ order: 10 }, "1.50", 150],
      [{ order: 0 }, "0.00", 0],
      [{ order: 0.03 }, "0.00", 0], // 0.45 cents
      [{ order: 0.1 }, "0.02", 2], // 1.5 cents, half up
      [{ order: 0.3 }, "0.05", 5], // 4.5 cents, half up and not to even
      [{ order: 0.5 }, "0.08", 8], // 7.5 cents
      [{ order: 33.33 }, "5.00", 500], // 499.95 cents
      [{ order: "999999999999.99" }, "150000000000.00", 15_000_000_000_000], // …99.9985
      [{ currency: "USD" }, "CURRENCY_MISMATCH"],
    ],
  },
  {
    name: "0.0001 % EUR",
    currency: "EUR",
    discount: { type: "percent", percent: 0.0001 },
    cases: [
      [{ order: 10_000 }, "0.01", 1],
      [{ order: 5_000 }, "0.01", 1], // half a cent
      [{ order: "4999.99" }, "0.00", 0], // 0.499999 cents
    ],
  },
  {
    name: "33.3333 % EUR",
    currency: "EUR",
    discount: { type: "percent", percent: 33.3333 },
    cases: [
      [{ order: 3 }, "1.00", 100], // 99.9999 cents
      [{ order: 0.01 }, "0.00", 0],
      [{ order: 0.02 }, "0.01", 1], // 0.666666 cents
      // 33333296833337.499999 cents; computed as a quotient it would be 33333296833337.5.
      [{ order: "999999905000.03" }, "333332968333.37", 33_333_296_833_337],
    ],
  },
  {
    name: "99.9999 % EUR",
    currency: "EUR",
    discount: { type: "percent", percent: 99.9999 },
    cases: [
      [{ order: "10200005000.01" }, "10199994800.00", 1_019_999_480_000],
      [{ order: "999999905000.01" }, "999998905000.10", 99_999_890_500_010], // …010.499999 cents
    ],
  },
  {
    name: "33.3333 % KWD",
    currency: "KWD",
    discount: { type: "percent", percent: 33.3333 },
    cases: [[{ order: "3031000500.003" }, "1010332489.667", 1_010_332_489_667]],
  },
  {
    name: "100 % EUR",
    currency: "EUR",
    discount: { type: "percent", percent: 100 },
    cases: [
      [{ order: 12.34 }, "12.34", 1234],
      [{ order: "999999999999.99" }, "999999999999.99", 99_999_999_999_999],
    ],
  },
  {
    name: "50 % EUR, at most 10.00",
    currency: "EUR",
    discount: { type: "percent", percent: 50, max_amount: 10 },
    cases: [
      [{ order: 19.97 }, "9.99", 999], // 998.5 cents
      [{ order: 19.99 }, "10.00", 1000], // 999.5 cents
      [{ order: 20.01 }, "10.00", 1000],
      [{ order: 1_000_000 }, "10.00", 1000],
    ],
  },
];
