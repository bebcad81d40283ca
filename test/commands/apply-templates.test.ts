// Which fields of a template can change: each of them, until it has a batch. Then its terms are fixed.
import t, { type Test } from "tap";
import { issuesOf } from "../support/applying.ts";
import { fits } from "../support/fits.ts";
import { tenants, party, template } from "../support/tenants.ts";
import { startService, type Running } from "../support/service.ts";

// A change in the file, and what report.template shows then.
type Change = [declared: object, shown: Record<string, unknown>];

const discount = { type: "percent", percent: 7.5, max_amount: 3 };
const terms: Change[] = [
  [{ maker: "pty_new" }, { maker: "pty_new" }],
  [{ currency: "USD" }, { currency: "USD" }],
  [{ discount: { type: "fixed", amount: 6 } }, { discount_amount: 6 }],
  [
    { discount: { type: "percent", percent: 5 } },
    { discount_type: "percent", discount_amount: null, discount_percent: 5 },
  ],
  [{ discount: { ...discount, percent: 5 } }, { max_discount_amount: 3 }],
  [{ discount }, { discount_percent: 7.5 }],
  [{ min_order_amount: 20 }, { min_order_amount: 20 }],
  [{ skus: ["A", "B"] }, { skus: ["A", "B"] }],
  [{ after_reversal: "reissued" }, { after_reversal: "reissued" }],
];
const otherFields: Change[] = [
  [{ name: "of 2090" }, { name: "of 2090" }],
  [{ distributor: "pty_new" }, { distributor: "pty_new" }],
  [{ valid_from: "2021-01-01T00:00:00Z" }, { valid_from: "2021-01-01T00:00:00+00:00" }],
  [{ valid_to: "2090-01-01T00:00:00Z" }, { valid_to: "2090-01-01T00:00:00+00:00" }],
  [{ lock_ttl_seconds: 60 }, { lock_ttl_seconds: 60 }],
];

let service: Running;
const declared = template("tpl_new", "pty_a", { distributor: "pty_a" });
const fileWith = (change: object) => ({
  tenants: [{ id: "ten_a", name: "A", variant: "A", templates: [{ ...declared, ...change }] }],
});

t.before(async () => {
  const [tenant] = tenants;
  service = await startService(t, { tenants: [{ ...tenant, parties: [party("pty_a"), party("pty_new")] }] });
  await service.apply(fileWith({}));
});

async function readTemplate(): Promise<Record<string, unknown>> {
  const [row] = await service.owner.rows<{ row: Record<string, unknown> }>(
    "select to_jsonb(x) as row from report.template x where template = 'tpl_new'",
  );
  return row!.row;
}

// Each change stays for the next one.
async function checkChanges(t: Test, changes: Change[]): Promise<void> {
  for (const [change, shown] of changes) {
    const before = await readTemplate();
    fits(t, await service.apply(fileWith(change)), { changed: 1 }, JSON.stringify(change));
    Object.assign(declared, change);
    t.strictSame(await readTemplate(), { ...before, ...shown });
    fits(t, await service.apply(fileWith({})), { changed: 0 });
  }
}

t.test("Each term of a template without a batch can change alone", (t) => checkChanges(t, terms));

t.test("Each term of a template with a batch is fixed", async (t) => {
  await service.makeBatch(service.as("ak_a"), "tpl_new", 1, { isReleased: false });
  const before = await readTemplate();
  fits(t, await service.apply(fileWith({ skus: ["B", "A"] })), { changed: 0 }, "SKUs have no order");
  for (const change of [
    { maker: "pty_a" },
    { currency: "EUR" },
    { discount: { type: "fixed", amount: 6 } },
    { discount: { ...discount, percent: 8 } },
    { discount: { ...discount, max_amount: 4 } },
    { min_order_amount: 21 },
    { skus: ["A"] },
    { after_reversal: "consumed" },
  ])
    t.strictSame(
      await issuesOf(service, fileWith(change)),
      [`tenants.0.templates.0.${Object.keys(change)[0]}: cannot change: the template has a batch`],
      JSON.stringify(change),
    );
  t.strictSame(await readTemplate(), before, "a refused file changes nothing");
});

t.test("Each other field of a template with a batch can change alone", (t) => checkChanges(t, otherFields));
