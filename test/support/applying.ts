// A provisioning file for tests of apply, and what apply says about a wrong one.
import type { ApplyOptions } from "../../src/commands/apply.ts";
import { ApplyError } from "../../src/commands/provisioning.ts";
import type { Scenario } from "./scenario.ts";
import { template } from "./tenants.ts";

// A tenant for these tests. The fields of `more` replace the usual ones.
export function acme(more: Record<string, unknown> = {}) {
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
        templates: [template("tpl_1", "pty_maker")],
        credentials: [{ access_key: "ak_acme", party: "pty_maker" }],
        ...more,
      },
    ],
  };
}

// Returns each problem as "path: message"; none if the file is applied.
export async function issuesOf(service: Scenario, file: unknown, options: ApplyOptions = {}): Promise<string[]> {
  try {
    await service.apply(file, options);
    return [];
  } catch (error) {
    if (!(error instanceof ApplyError)) throw error;
    return error.issues.map(({ path, message }) => `${path}: ${message}`);
  }
}
