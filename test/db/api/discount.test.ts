// What a coupon is worth. Every expected value is computed by hand.
import t from "tap";
import type { Client } from "../../support/client.ts";
import { secretOf } from "../../support/provisioning.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { readState } from "../../support/state.ts";

// The rule of a template, then what is asked and what has to come of it: an amount as it stands in the answer and in
// minor units in the ledger, or the code of a refusal.
type Ask = { order?: number | string; currency?: string; items?: object[] | undefined };
type Case = [ask: Ask, expected: string, minor?: number];
type Rule = {
  name: string;
  unit?: "minor";
  currency: string;
  discount: object;
  min?: number;
  skus?: string[];
  cases: Case[];
};

const item = (sku: string, amount?: number, quantity?: number) => ({ sku, amount, quantity });
const notComputable = "DISCOUNT_NOT_COMPUTABLE";

const rules: Rule[] = [
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
      [{ order: "999999905000.03" }, "333332968333.37", 33_333_296_833_337], // …337.499999 cents: as a quotient it would be …337.5
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
      [{ items: [item("C3", 1.001)] }, "400 redemption_context.items.0.amount"],
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

const template = (rule: Rule, index: number) => ({
  id: `tpl_${index}`,
  name: rule.name,
  maker: "pty_1",
  currency: rule.currency,
  discount: rule.discount,
  min_order_amount: rule.min,
  skus: rule.skus,
  valid_from: "2020-01-01T00:00:00Z",
  valid_to: "2099-01-01T00:00:00Z",
});
const indexed = rules.map((rule, index) => ({ rule, index, unit: rule.unit ?? "major" }));
const tenant = (variant: "A" | "B", unit: "major" | "minor") => {
  const access_key = `ak_${variant}_${unit}`;
  return {
    id: `ten_${variant}${unit}`.toLowerCase(),
    name: unit,
    variant,
    amount_unit: unit,
    parties: [{ id: "pty_1", name: "p" }],
    merchants: [{ id: "mch_1", name: "m", party: "pty_1" }],
    templates: indexed.filter((one) => one.unit === unit).map((one) => template(one.rule, one.index)),
    credentials: [{ access_key, secret: secretOf(access_key), ...(variant === "B" && { party: "pty_1" }) }],
  };
};

let service: Running;
t.before(async () => {
  service = await startService(t, {
    tenants: [tenant("A", "major"), tenant("A", "minor"), tenant("B", "major"), tenant("B", "minor")],
  });
});

// Written by hand, because JSON.stringify knows neither NaN nor 5e0.
function bodyOf(request_id: string, coupon: string, { order, currency, items }: Ask): string {
  const fields = JSON.stringify({
    request_id,
    coupon,
    merchant: "mch_1",
    currency,
    ...(items !== undefined && { redemption_context: { items } }),
  });
  return order === undefined ? fields : `${fields.slice(0, -1)},"order_amount":${order}}`;
}

async function judge(
  by: Client,
  path: string,
  coupon: string,
  ask: Ask,
): Promise<{ given: string; request_id: string; json: any }> {
  const request_id = newRequestId();
  const { status, text, json } = await by.post(path, bodyOf(request_id, coupon, ask));
  const amount = /"discount_amount":([^,}]+)/.exec(text)?.[1];
  const given =
    status === 200
      ? amount!
      : status === 400
        ? `400 ${json.details.issues.map((issue: { path: string }) => issue.path)}`
        : json.code;
  return { given, request_id, json };
}

for (const variant of ["A", "B"] as const) {
  for (const { rule, index, unit } of indexed) {
    // Items come in Variant A only.
    if (variant === "B" && rule.skus !== undefined) continue;
    t.test(`${variant}: ${rule.name}`, async (t) => {
      const by = service.as(`ak_${variant}_${unit}`);
      const granted = rule.cases.filter(([, , minor]) => minor !== undefined);
      const { codes } = await service.makeBatch(by, `tpl_${index}`, granted.length + 1);
      const left = codes.at(-1)!;

      const before = await readState(service.owner);
      for (const [ask, expected] of rule.cases.filter((one) => !granted.includes(one))) {
        for (const operation of ["lock", "redeem"])
          t.equal(
            (await judge(by, `/v1/coupons/${operation}`, left, ask)).given,
            expected,
            `${operation} ${JSON.stringify(ask)}`,
          );
      }
      t.strictSame(await readState(service.owner), before, "refusals changed nothing");
      t.match(
        await by.post(
          "/v1/coupons/lock",
          bodyOf(newRequestId(), left, { order: 100, items: variant === "A" ? [item("A1", 1)] : undefined }),
        ),
        { status: 200 },
        "not even for the coupon",
      );

      for (const [index, [ask, expected, minor]] of granted.entries()) {
        // A lock says the same as a redeem.
        const [coupon, name] = [codes[index]!, JSON.stringify(ask)];
        const lock = await judge(by, "/v1/coupons/lock", coupon, ask);
        t.equal(lock.given, expected, `lock ${name}`);
        await by.post("/v1/coupons/cancel", { request_id: newRequestId(), coupon, lock_request_id: lock.request_id });
        const redeem = await judge(by, "/v1/coupons/redeem", coupon, ask);
        t.equal(redeem.given, expected, `redeem ${name}`);
        const [entry] = await service.owner.rows(
          "select amount_minor, currency from core.ledger_entry where rules.format_id('red', entry_id) = $1",
          [redeem.json.redemption],
        );
        t.strictSame(entry, { amount_minor: String(minor), currency: rule.currency }, "and so it stands in the ledger");
      }
    });
  }
}

t.test("what is missing is named", async (t) => {
  const by = service.as("ak_A_major");
  const named: [string, Ask, string][] = [
    ["15 % EUR", {}, "order_amount"],
    ["5.00 EUR from 20.00", {}, "order_amount"],
    ["5.00 EUR on A1, B2", {}, "redemption_context.items"],
    ["5.00 EUR on A1, B2", { items: [item("A1")] }, "the amount of each matching item"],
  ];
  for (const [name, ask, missing] of named) {
    const { codes } = await service.makeBatch(by, `tpl_${rules.findIndex((rule) => rule.name === name)}`, 1);
    t.match((await judge(by, "/v1/coupons/redeem", codes[0]!, ask)).json, {
      code: notComputable,
      details: { missing },
    });
  }
});
