// The discount of a coupon. Every expected value is computed by hand; see discount-cases for the rules and cases.
import t from "tap";
import type { Client } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import { secretOf } from "../../support/tenants.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { readState } from "../../support/state.ts";
import { currenciesAndUnits } from "./discount-cases/currencies-and-units.ts";
import { fixedAndPercent } from "./discount-cases/fixed-and-percent.ts";
import { minimumAndItems } from "./discount-cases/minimum-and-items.ts";
import { item, notComputable, type Ask, type Rule } from "./discount-cases/types.ts";

const rules = [...fixedAndPercent, ...minimumAndItems, ...currenciesAndUnits];

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

// Writes the amount as text, because JSON.stringify cannot write NaN or 5e0.
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

// The discount that a query shows, as it is written; null: none.
async function query(by: Client, coupon: string): Promise<string | null> {
  const { text } = await by.post("/v1/coupons/query", { coupon, merchant: "mch_1" });
  return /"discount_amount":([^,}]+)/.exec(text)?.[1] ?? null;
}

type Outcome = { outcome: string; request_id: string; json: any };

// The outcome is written as in the cases: a discount, the code of a refusal, or 400 with the paths of bad fields.
async function send(by: Client, path: string, coupon: string, ask: Ask): Promise<Outcome> {
  const request_id = newRequestId();
  const { status, text, json } = await by.post(path, bodyOf(request_id, coupon, ask));
  const outcomeOf = () => {
    if (status === 200) return /"discount_amount":([^,}]+)/.exec(text)![1]!;
    if (status !== 400) return json.code as string;
    return `400 ${json.details.issues.map((issue: { path: string }) => issue.path)}`;
  };
  return { outcome: outcomeOf(), request_id, json };
}

for (const variant of ["A", "B"] as const) {
  for (const { rule, index, unit } of indexed) {
    // Only Variant A has items.
    if (variant === "B" && rule.skus !== undefined) continue;
    t.test(`${variant}: ${rule.name}`, async (t) => {
      const by = service.as(`ak_${variant}_${unit}`);
      const granted = rule.cases.filter(([, , minor]) => minor !== undefined);
      const { codes } = await service.makeBatch(by, `tpl_${index}`, granted.length + 1);
      const unused = codes.at(-1)!;

      const before = await readState(service.owner);
      for (const [ask, expected] of rule.cases.filter((one) => !granted.includes(one))) {
        for (const operation of ["lock", "redeem"]) {
          const { outcome } = await send(by, `/v1/coupons/${operation}`, unused, ask);
          t.equal(outcome, expected, `${operation} ${JSON.stringify(ask)}`);
        }
      }
      t.strictSame(await readState(service.owner), before, "refusals change nothing");
      const items = variant === "A" ? [item("A1", 1)] : undefined;
      const lockUnused = bodyOf(newRequestId(), unused, { order: 100, items });
      fits(t, await by.post("/v1/coupons/lock", lockUnused), { status: 200 }, "the refused coupon can still be locked");

      for (const [index, [ask, expected, minor]] of granted.entries()) {
        const [coupon, name] = [codes[index]!, JSON.stringify(ask)];
        const lock = await send(by, "/v1/coupons/lock", coupon, ask);
        t.equal(lock.outcome, expected, `lock ${name}`);
        t.equal(await query(by, coupon), variant === "A" ? expected : null, `query after lock ${name}`);
        await by.post("/v1/coupons/cancel", { request_id: newRequestId(), coupon, lock_request_id: lock.request_id });
        const redeem = await send(by, "/v1/coupons/redeem", coupon, ask);
        t.equal(redeem.outcome, expected, `redeem ${name}`);
        t.equal(await query(by, coupon), variant === "A" ? expected : null, `query after redeem ${name}`);
        const [entry] = await service.owner.rows(
          "select amount_minor, currency from core.ledger_entry where rules.format_id('red', entry_id) = $1",
          [redeem.json.redemption],
        );
        t.strictSame(entry, { amount_minor: String(minor), currency: rule.currency }, "the ledger has the same amount");
      }
    });
  }
}

t.test("The rules have a currency of every number of decimals", async (t) => {
  const [row] = await service.owner.rows<{ unused: number[] }>(
    `select array(select decimals from core.currency except
       select decimals from core.currency where currency = any ($1)) as unused`,
    [rules.filter(({ unit }) => unit === undefined).map(({ currency }) => currency)],
  );
  t.strictSame(row!.unused, []);
});

t.test("DISCOUNT_NOT_COMPUTABLE names the missing field", async (t) => {
  const by = service.as("ak_A_major");
  const named: [string, Ask, string][] = [
    ["15 % EUR", {}, "order_amount"],
    ["5.00 EUR from 20.00", {}, "order_amount"],
    ["5.00 EUR on A1, B2", {}, "redemption_context.items"],
    ["5.00 EUR on A1, B2", { items: [item("A1")] }, "the amount of each matching item"],
  ];
  for (const [name, ask, missing] of named) {
    const { codes } = await service.makeBatch(by, `tpl_${rules.findIndex((rule) => rule.name === name)}`, 1);
    fits(t, (await send(by, "/v1/coupons/redeem", codes[0]!, ask)).json, {
      code: notComputable,
      details: { missing },
    });
  }
});
