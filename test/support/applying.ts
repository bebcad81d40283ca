// A provisioning file for tests of apply, what apply says about it, and what it has stored.
import { ApplyError } from "../../src/commands/apply.ts";
import type { Database } from "../../src/database/types.ts";
import type { Running } from "./service.ts";

const validity = { valid_from: "2020-01-01T00:00:00Z", valid_to: "2099-01-01T00:00:00Z" };

// A tenant for these tests. The fields of `more` replace the usual ones.
export function acme(more: Record<string, unknown> = {}) {
  const template = {
    id: "tpl_1",
    name: "5.00 off",
    maker: "pty_maker",
    currency: "EUR",
    discount: { type: "fixed", amount: 5 },
    ...validity,
  };
  return {
    tenants: [
      {
        id: "ten_acme",
        name: "Acme",
        variant: "B",
        parties: [
          { id: "pty_maker", name: "Maker", webhook: { url: "https://example.com/hook" } },
          { id: "pty_shop", name: "Shop" },
        ],
        merchants: [
          {
            id: "mch_1",
            name: "Shop 1",
            party: "pty_shop",
            delegates: ["pty_maker"],
            stores: [{ external_id: "S1", terminals: ["T1"] }],
          },
        ],
        templates: [template],
        credentials: [{ access_key: "ak_acme", party: "pty_maker" }],
        ...more,
      },
    ],
  };
}

export async function issuesOf(service: Running, file: unknown): Promise<string[]> {
  try {
    await service.apply(file);
    return [];
  } catch (error) {
    if (!(error instanceof ApplyError)) throw error;
    return error.issues.map(({ path, message }) => `${path}: ${message}`);
  }
}

// Everything that provisioning writes, except the audit.
export async function stored(owner: Database): Promise<string> {
  const tables = [
    "tenant",
    "party",
    "webhook",
    "merchant",
    "merchant_delegate",
    "store",
    "terminal",
    "template",
    "template_merchant",
    "credential",
  ];
  const rows = await Promise.all(
    tables.map((table) => owner.rows(`select r::text from core.${table} r order by r::text`)),
  );
  return JSON.stringify(rows);
}
