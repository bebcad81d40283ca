// The discount of a coupon: a table of rules with their cases. Every expected value is computed by hand.
import t from "tap";
import type { Caller, Coupon } from "../../support/caller.ts";
import type { Reply } from "../../support/client.ts";
import { newRequestId } from "../../support/request-id.ts";
import { scenario } from "../../support/scenario.ts";
import { readState } from "../../support/state.ts";
import { credential, merchant, party, template } from "../../support/tenants.ts";

/** A string as the order is sent as it is, for numbers that JSON.stringify cannot write. */
type Ask = { order?: number | string; currency?: string; items?: object[] };

/**
 * Expected is the discount as the answer shows it, the code of a refusal with its details, or 400 with the path of the
 * bad field. `minor` is the discount in the ledger, in minor units; only cases with it succeed.
 */
type Case = [ask: Ask, expected: string, minor?: number];
type Terms = {
  currency?: string;
  unit?: "major" | "minor";
  discount: object;
  min_order_amount?: number;
  skus?: string[];
};

const rule = (name: string, { unit = "major", ...terms }: Terms, cases: Case[]) => ({ name, unit, terms, cases });
const fixed = (amount: number) => ({ type: "fixed", amount });
const percent = (percent: number, max_amount?: number) => ({ type: "percent", percent, max_amount });
const item = (sku: string, amount?: number, quantity?: number) => ({ sku, amount, quantity });
const notComputable = (missing: string) => `DISCOUNT_NOT_COMPUTABLE ${missing}`;

// The currency is EUR, and amounts are in major units, unless the terms say so.
const rules = [
  rule("5.00 EUR", { discount: fixed(5) }, [
    [{}, "5.00", 500],
    [{ order: 5 }, "5.00", 500],
    [{ order: "4.99" }, "4.99", 499],
    [{ order: 0 }, "0.00", 0],
    [{ order: "-0" }, "0.00", 0],
    [{ order: "5e0" }, "5.00", 500],
    [{ order: "3.2000" }, "3.20", 320],
    [{ order: "999999999999.99" }, "5.00", 500],
    [{ order: 20, currency: "EUR" }, "5.00", 500],
    [{ order: 20, currency: "USD" }, "CURRENCY_MISMATCH EUR"],
    [{ order: 10.5, currency: "JPY" }, "CURRENCY_MISMATCH EUR"],
    [{ order: 4.999 }, "400 order_amount"],
    [{ order: "0.30000000000000004" }, "400 order_amount"],
    [{ order: "1e12" }, "400 order_amount"],
  ]),
  rule("15 %", { discount: percent(15) }, [
    [{}, notComputable("order_amount")],
    [{ order: 0.03 }, "0.00", 0], // 0.45 cents
    [{ order: 0.1 }, "0.02", 2], // 1.5 cents, half up
    [{ order: 0.3 }, "0.05", 5], // 4.5 cents, half up and not to even
    [{ order: 33.33 }, "5.00", 500], // 499.95 cents
    [{ order: "999999999999.99" }, "150000000000.00", 15_000_000_000_000], // …99.9985
    [{ currency: "USD" }, "CURRENCY_MISMATCH EUR"],
  ]),
  rule("0.0001 %", { discount: percent(0.0001) }, [
    [{ order: 5_000 }, "0.01", 1], // half a cent
    [{ order: "4999.99" }, "0.00", 0], // 0.499999 cents
  ]),
  rule("33.3333 %", { discount: percent(33.3333) }, [
    [{ order: 0.02 }, "0.01", 1], // 0.666666 cents
    // 33333296833337.499999 cents; computed as a quotient it would be 33333296833337.5.
    [{ order: "999999905000.03" }, "333332968333.37", 33_333_296_833_337],
  ]),
  rule("100 %", { discount: percent(100) }, [[{ order: "999999999999.99" }, "999999999999.99", 99_999_999_999_999]]),
  rule("50 %, at most 10.00", { discount: percent(50, 10) }, [
    [{ order: 19.97 }, "9.99", 999], // 998.5 cents
    [{ order: 20.01 }, "10.00", 1000],
  ]),
  rule("5.00 EUR from 20.00", { discount: fixed(5), min_order_amount: 20 }, [
    [{}, notComputable("order_amount")],
    [{ order: 19.99 }, "ORDER_BELOW_MINIMUM 20 EUR"],
    [{ order: 20 }, "5.00", 500],
  ]),
  rule("5.00 EUR on A1, B2", { discount: fixed(5), skus: ["B2", "A1"] }, [
    [{ order: 20 }, notComputable("redemption_context.items")],
    [{ items: [] }, "NO_ELIGIBLE_ITEMS"],
    [{ items: [item("C3", 9), item("a1", 9), { amount: 9 }] }, "NO_ELIGIBLE_ITEMS"],
    [{ items: [item("A1", 3), item("B2")] }, notComputable("the amount of each matching item")],
    [{ items: [item("A1", 3), item("C3")] }, "3.00", 300],
    [{ items: [item("A1", 3), item("B2", 1.99), item("C3", 90)] }, "4.99", 499],
    [{ items: [item("A1", 2), item("A1", 2), item("B2", 2)] }, "5.00", 500],
    [{ items: [item("A1", 2, 10)] }, "2.00", 200], // the line's total, whatever the quantity
    [{ items: [item("A1", 0)] }, "0.00", 0],
    [{ items: [item("A1", 9), item("A1", -6, -2)] }, "3.00", 300], // a returned line
    [{ items: [item("A1", 4), item("B2", -9)], order: 20 }, "0.00", 0], // the sum is at least 0
    [{ items: [item("A1", 4), item("C3", -9)] }, "4.00", 400],
    [{ items: [item("A1", 4), item("B2", -1.001)] }, "400 redemption_context.items.1.amount"],
    [{ items: [item("A1", -1e12)] }, "400 redemption_context.items.0.amount"],
    [{ items: [item("A1", 10)], order: 4 }, "4.00", 400], // never more than the order
    [{ order: 1.001, items: [item("A1", 1.001)] }, "400 order_amount"],
    [{ items: [item("A1", 1), item("C3", 1.001), item("A1", 3.001)] }, "400 redemption_context.items.1.amount"],
  ]),
  rule("10 % on A1, order from 20.00", { discount: percent(10), min_order_amount: 20, skus: ["A1"] }, [
    [{ items: [item("A1", 30)] }, notComputable("order_amount")],
    [{ order: 100, items: [item("A1", 10.05), item("C3", 89.95)] }, "1.01", 101], // 100.5 cents
    [{ order: 19.99, items: [item("A1", 19.99)] }, "ORDER_BELOW_MINIMUM 20 EUR"],
  ]),
  rule("10 % of yen", { currency: "JPY", discount: percent(10) }, [
    [{ order: "105.0" }, "11", 11], // 10.5
    [{ order: 4 }, "0", 0],
    [{ order: 499.5 }, "400 order_amount"],
  ]),
  rule("500 JPY on A1", { currency: "JPY", discount: fixed(500), skus: ["A1"] }, [
    [{ items: [item("A1", 300)] }, "300", 300],
    [{ items: [item("A1", 1.5)] }, "400 redemption_context.items.0.amount"],
  ]),
  rule("10 % of dinars", { currency: "BHD", discount: percent(10) }, [
    [{ order: 1.005 }, "0.101", 101], // 100.5 fils
    [{ order: 1.2345 }, "400 order_amount"],
  ]),
  rule("10 % BHD on A1", { currency: "BHD", discount: percent(10), skus: ["A1"] }, [
    [{ order: 9, items: [item("A1", 1.005)] }, "0.101", 101],
  ]),
  rule("10 % of a currency with four decimals", { currency: "CLF", discount: percent(10) }, [
    [{ order: 1.0005 }, "0.1001", 1001], // 1000.5
    [{ order: 1.00005 }, "400 order_amount"],
    [{ order: "999999999999.9999" }, "100000000000.0000", 1_000_000_000_000_000],
  ]),
  rule("500 cents", { unit: "minor", discount: fixed(500) }, [
    [{}, "500", 500],
    [{ order: 499 }, "499", 499],
    [{ order: 19.99 }, "400 order_amount"],
  ]),
  rule("500 cents on A1", { unit: "minor", discount: fixed(500), skus: ["A1"] }, [
    [{ items: [item("A1", 300)] }, "300", 300],
    [{ items: [item("A1", 3.5)] }, "400 redemption_context.items.0.amount"],
  ]),
  rule("15 % from 10 cents, at most 1000 cents", { unit: "minor", discount: percent(15, 1000), min_order_amount: 10 }, [
    [{ order: 1999 }, "300", 300], // 299.85
    [{ order: 9 }, "ORDER_BELOW_MINIMUM 10 EUR"],
    [{ order: 10_000 }, "1000", 1000],
  ]),
  rule("10 % of dinars, amounts in fils", { unit: "minor", currency: "BHD", discount: percent(10) }, [
    [{ order: 1005 }, "101", 101],
    [{ order: 1.005 }, "400 order_amount"],
  ]),
  rule("500 JPY, in yen both ways", { unit: "minor", currency: "JPY", discount: fixed(500) }, [
    [{ order: 1000 }, "500", 500],
    [{ order: 0.5 }, "400 order_amount"],
  ]),
];

// Only Variant A has items.
const kinds = [
  { variant: "A", unit: "major", key: "ak_major" },
  { variant: "A", unit: "minor", key: "ak_minor" },
  { variant: "B", unit: "major", key: "ak_b" },
] as const;
type Kind = (typeof kinds)[number];

const rulesOf = ({ variant, unit }: Kind) =>
  rules.filter((rule) => rule.unit === unit && (variant === "A" || rule.terms.skus === undefined));
const templateOf = (one: (typeof rules)[number]) => `tpl_${rules.indexOf(one)}`;

const makeTenant = (kind: Kind, index: number) => ({
  id: `ten_${index}`,
  name: kind.key,
  variant: kind.variant,
  amount_unit: kind.unit,
  parties: [party("pty_1")],
  merchants: [merchant("mch_1", "pty_1")],
  templates: rulesOf(kind).map((one) => template(templateOf(one), "pty_1", one.terms)),
  credentials: [credential(kind.key, kind.variant === "B" ? "pty_1" : undefined)],
});

const world = await scenario(t, { file: { tenants: kinds.map(makeTenant) } });

/** Writes the amount as text, because JSON.stringify cannot write 5e0. */
function send(by: Caller, operation: "lock" | "redeem" | "query", { code }: Coupon, { order, currency, items }: Ask) {
  const context = items === undefined ? {} : { redemption_context: { items } };
  const text = JSON.stringify({ request_id: newRequestId(), coupon: code, merchant: "mch_1", currency, ...context });
  return by.post(
    `/v1/coupons/${operation}`,
    order === undefined ? text : `${text.slice(0, -1)},"order_amount":${order}}`,
  );
}

/** What a query of the order says that a lock would answer: as the cases write it, without the details of a refusal. */
async function quoteOf(by: Caller, coupon: Coupon, ask: Ask): Promise<string> {
  const { status, text, json } = await send(by, "query", coupon, ask);
  if (status === 400) return `400 ${json.details.issues.map((issue: { path: string }) => issue.path)}`;
  const [, isGranted, discount] = /"quote":{"redeemable":(\w+),"discount_amount":([^,]+)/.exec(text)!;
  return isGranted === "true" ? discount! : json.quote.code;
}

// As the cases write it.
function outcomeOf({ status, text, json }: Reply): string {
  if (status === 200) return /"discount_amount":([^,}]+)/.exec(text)?.[1] ?? "none";
  if (status === 400) return `400 ${json.details.issues.map((issue: { path: string }) => issue.path)}`;
  return [json.code, ...Object.values(json.details ?? {})].join(" ");
}

t.test("An amount with too many decimals is refused with the currency and its number of decimals", async (t) => {
  const messages: [key: string, name: string, order: number, message: string][] = [
    ["ak_major", "15 %", 0.001, "must have at most 2 decimals, as EUR has"],
    ["ak_b", "10 % of dinars", 0.0001, "must have at most 3 decimals, as BHD has"],
    ["ak_major", "10 % of yen", 0.5, "must be an integer: JPY has no decimals"],
    ["ak_minor", "500 cents", 0.5, "must be an integer: amounts are in minor units of EUR"],
  ];
  for (const [key, name, order, message] of messages) {
    const by = world.as(key, "mch_1");
    const { coupons } = await world.makeBatch(by, templateOf(rules.find((one) => one.name === name)!), 1);
    const { json } = await send(by, "lock", coupons[0]!, { order });
    t.strictSame(json.details.issues, [{ path: "order_amount", message }]);
  }
});

const entriesOf =
  "select amount_minor::text as minor, currency from core.ledger_entry where entry_id = rules.parse_id('red', $1)";

for (const kind of kinds)
  for (const rule of rulesOf(kind))
    t.test(`Variant ${kind.variant}: ${rule.name}`, async (t) => {
      const { terms, cases } = rule;
      const by = world.as(kind.key, "mch_1");
      const { coupons } = await world.makeBatch(by, templateOf(rule), 2 * cases.length);
      const before = await readState(world.owner);
      for (const [ask, expected, minor] of cases) {
        if (ask.order !== undefined || ask.items !== undefined) {
          const quoted = expected.startsWith("400") ? expected : expected.split(" ")[0];
          t.equal(await quoteOf(by, coupons[0]!, ask), quoted, `quote ${JSON.stringify(ask)}`);
        }
        if (minor !== undefined) continue;
        for (const operation of ["lock", "redeem"] as const)
          t.equal(
            outcomeOf(await send(by, operation, coupons[0]!, ask)),
            expected,
            `${operation} ${JSON.stringify(ask)}`,
          );
      }
      t.strictSame(await readState(world.owner), before, "refusals and quotes change nothing");

      const checkGrant = async (operation: "lock" | "redeem", [ask, expected, minor]: Case) => {
        const name = `${operation} ${JSON.stringify(ask)}`;
        const coupon = coupons.pop()!;
        const reply = await send(by, operation, coupon, ask);
        t.equal(outcomeOf(reply), expected, name);
        t.equal(outcomeOf(await by.query(coupon)), expected, `query after ${name}`);
        const recorded = await by.get(`/v1/requests/${reply.headers["x-request-id"]}`);
        t.ok(recorded.text.includes(`"response":${reply.text},`), `what is recorded of ${name}`);
        const entries = operation === "lock" ? [] : [{ minor: String(minor), currency: terms.currency ?? "EUR" }];
        const written = await world.owner.rows(entriesOf, [reply.json.redemption]);
        t.strictSame([...written], entries, "the ledger has the same amount");
      };
      const granted = cases.filter(([, , minor]) => minor !== undefined);
      await Promise.all(granted.flatMap((one) => [checkGrant("lock", one), checkGrant("redeem", one)]));
    });
