// Provisioning files that are refused: each problem is reported with its path, and nothing is stored.
import t from "tap";
import { acme, issuesOf, stored } from "../support/applying.ts";
import { startService } from "../support/service.ts";

t.test("every wrong field is reported with its path, and nothing is stored", async (t) => {
  const service = await startService(t);
  const before = await stored(service.owner);
  const template = acme().tenants[0]!.templates[0]!;
  const cases: [string, Record<string, unknown>, string[]][] = [
    ["an unknown field", { colour: "red" }, ["tenants.0.colour: unknown field"]],
    [
      "a credential without its party",
      { credentials: [{ access_key: "ak_acme" }] },
      ["tenants.0.credentials.0.party: is required in variant B"],
    ],
    [
      "a party in variant A",
      { variant: "A" },
      ["tenants.0.credentials.0.party: is allowed in variant B only: a credential of variant A belongs to its tenant"],
    ],
    [
      "a short secret",
      { credentials: [{ access_key: "ak_acme", party: "pty_maker", secret: "short" }] },
      ["tenants.0.credentials.0.secret: must be 32 to 256 printable characters"],
    ],
    [
      "an unknown zone",
      { parties: [{ id: "pty_maker", name: "M", time_zone: "Mars/Base" }] },
      ["tenants.0.parties.0.time_zone: must be UTC or an IANA time zone with a region, such as Europe/Berlin"],
    ],
    [
      "an offset instead of a zone",
      { parties: [{ id: "pty_maker", name: "M", time_zone: "+02:00" }] },
      ["tenants.0.parties.0.time_zone: must be UTC or an IANA time zone with a region, such as Europe/Berlin"],
    ],
    [
      "a malformed webhook secret",
      { parties: [{ id: "pty_maker", name: "M", webhook: { url: "https://x.example", secret: "whsec_short" } }] },
      ["tenants.0.parties.0.webhook.secret: must be whsec_ and the base64 of 24 to 64 bytes"],
    ],
    ["a duplicate id", { templates: [template, template] }, ["tenants.0.templates.1.id: is a duplicate in this list"]],
    [
      "a validity that ends before it begins",
      { templates: [{ ...template, valid_to: template.valid_from }] },
      ["tenants.0.templates.0.valid_to: must be later than valid_from"],
    ],
    [
      "a percentage with five decimals",
      { templates: [{ ...template, discount: { type: "percent", percent: 0.00001 } }] },
      ["tenants.0.templates.0.discount.percent: must have at most 4 decimals"],
    ],
    [
      "an amount beyond the limit",
      { templates: [{ ...template, discount: { type: "fixed", amount: 1e12 } }] },
      ["tenants.0.templates.0.discount.amount: must be below 10^12"],
    ],
  ];
  for (const [name, more, expected] of cases) t.strictSame(await issuesOf(service, acme(more)), expected, name);
  t.strictSame(await issuesOf(service, []), ["(body): must be an object"]);
  t.equal(await stored(service.owner), before);
});

const isTooFine = "has more decimals than the currency or the unit, or is too large";

t.test("errors that only the database can find are reported with their paths too, and nothing is stored", async (t) => {
  const service = await startService(t);
  const before = await stored(service.owner);
  const template = acme().tenants[0]!.templates[0]!;
  const cases: [string, Record<string, unknown>, string[]][] = [
    [
      "an unknown party",
      { merchants: [{ id: "mch_1", name: "m", party: "pty_ghost" }] },
      ["tenants.0.merchants.0.party: no such party in this tenant"],
    ],
    [
      "an unknown currency",
      { templates: [{ ...template, currency: "QQQ" }] },
      ["tenants.0.templates.0.currency: is not an ISO 4217 currency"],
    ],
    [
      "more decimals than the currency has",
      { templates: [{ ...template, discount: { type: "fixed", amount: 5.001 }, min_order_amount: 0.001 }] },
      [`tenants.0.templates.0.discount.amount: ${isTooFine}`, `tenants.0.templates.0.min_order_amount: ${isTooFine}`],
    ],
    [
      "more decimals than the currency has, in the limit of a percentage",
      {
        templates: [{ ...template, discount: { type: "percent", percent: 5, max_amount: 0.001 }, min_order_amount: 1 }],
      },
      [`tenants.0.templates.0.discount.max_amount: ${isTooFine}`],
    ],
    [
      "minor units that are not integers",
      { amount_unit: "minor", templates: [{ ...template, discount: { type: "fixed", amount: 5.5 } }] },
      [`tenants.0.templates.0.discount.amount: ${isTooFine}`],
    ],
    [
      "an access key of another tenant",
      { credentials: [{ access_key: "ak_maker", party: "pty_maker" }] },
      ["tenants.0.credentials.0.access_key: belongs to another tenant"],
    ],
    [
      "unknown parties, a currency, and merchants, some of them of another tenant",
      {
        merchants: [{ id: "mch_1", name: "m", party: "pty_shop", delegates: ["pty_maker", "pty_ghost", "pty_pos"] }],
        templates: [
          {
            ...template,
            maker: "pty_none",
            distributor: "pty_dist",
            currency: "QQQ",
            min_order_amount: 0.001,
            merchants: ["mch_1", "mch_none", "mch_b"],
          },
        ],
        credentials: [{ access_key: "ak_acme", party: "pty_none" }],
      },
      [
        "tenants.0.merchants.0.delegates.1: no such party in this tenant",
        "tenants.0.merchants.0.delegates.2: no such party in this tenant",
        "tenants.0.templates.0.maker: no such party in this tenant",
        "tenants.0.templates.0.distributor: no such party in this tenant",
        "tenants.0.templates.0.currency: is not an ISO 4217 currency",
        "tenants.0.templates.0.merchants.1: no such merchant in this tenant",
        "tenants.0.templates.0.merchants.2: no such merchant in this tenant",
        "tenants.0.credentials.0.party: no such party in this tenant",
      ],
    ],
  ];
  for (const [name, more, expected] of cases) t.strictSame(await issuesOf(service, acme(more)), expected, name);
  t.equal(await stored(service.owner), before);
});

t.test("an access key that two tenants of the file claim is refused", async (t) => {
  const service = await startService(t);
  const [one] = acme().tenants;
  const file = { tenants: [one, { ...one, id: "ten_twin" }] };
  t.strictSame(await issuesOf(service, file), ["tenants.1.credentials.0.access_key: is a duplicate in this file"]);
});
