// The two tenants of the story. They have the same external and internal IDs wherever the schema allows it, so whatever
// forgets the tenant finds the other one's rows.
import { credential, party } from "../support/tenants.ts";
import { major, type Tenant } from "./books.ts";

const valid = { valid_from: "2020-01-01T00:00:00Z", valid_to: "2099-01-01T00:00:00Z" };

export const plans: Omit<Tenant, "document" | "appliedAt">[] = [
  { id: "ten_minor", number: 1, variant: "A", unit: "minor", foreign: "JPY", fixedMinor: 500 },
  { id: "ten_major", number: 2, variant: "B", unit: "major", foreign: "BHD", fixedMinor: 750 },
];

/** Who calls: in Variant A always the tenant. */
export const keys = {
  A: { maker: "ak_minor", till: "ak_minor", shop: "ak_minor" },
  B: { maker: "ak_maker", till: "ak_till", shop: "ak_shop" },
};
export const partyOf: Record<string, string | null> = {
  ak_minor: null,
  ak_lost: null,
  ak_maker: "pty_one",
  ak_till: "pty_till",
  ak_shop: "pty_shop",
  ak_gone: "pty_two",
};

export function describe({ id, variant, unit, foreign, fixedMinor }: (typeof plans)[number]) {
  const amount = (minor: number, currency: string) => (unit === "minor" ? minor : Number(major(minor, currency)));
  const isA = variant === "A";
  return {
    id,
    name: `Variant ${variant}`,
    variant,
    amount_unit: unit,
    parties: ["pty_one", "pty_two", "pty_shop", "pty_till"].map((party_id) =>
      party(party_id, { name: `${party_id} of ${variant}` }),
    ),
    merchants: [
      {
        id: "mch_kiosk",
        name: `Kiosk ${variant}`,
        party: "pty_shop",
        delegates: ["pty_till", "pty_one"],
        stores: [{ external_id: "S1", terminals: isA ? ["T2", "T1"] : ["T3"] }, { external_id: "S2" }],
      },
      {
        id: "mch_bakery",
        name: `Bakery ${variant}`,
        party: "pty_till",
        stores: [{ external_id: "S1", terminals: [isA ? "T4" : "T5"] }],
      },
      { id: "mch_bare", name: "Bare", party: isA ? "pty_one" : "pty_two" },
    ],
    templates: [
      {
        id: "tpl_fixed",
        name: `Fixed ${variant}`,
        maker: "pty_one",
        currency: "EUR",
        discount: { type: "fixed", amount: amount(fixedMinor, "EUR") },
        min_order_amount: amount(isA ? 1_000 : 1_100, "EUR"),
        ...valid,
      },
      {
        id: "tpl_second",
        name: `Second ${variant}`,
        maker: "pty_one",
        distributor: "pty_two",
        currency: foreign,
        discount: { type: "percent", percent: 12.5, max_amount: amount(isA ? 700 : 800, foreign) },
        merchants: isA ? ["mch_kiosk", "mch_bakery"] : ["mch_kiosk", "mch_bakery", "mch_bare"],
        lock_ttl_seconds: isA ? 600 : 660,
        after_reversal: "reissued",
        ...valid,
      },
      {
        id: "tpl_unused",
        name: "Unused",
        maker: isA ? "pty_two" : "pty_one",
        distributor: "pty_one",
        currency: "EUR",
        discount: { type: "percent", percent: isA ? 0.0625 : 100 },
        skus: isA ? ["A1", "B2"] : ["C3"],
        merchants: ["mch_bakery"],
        valid_from: "2021-02-03T04:05:06Z",
        valid_to: isA ? "2031-02-03T04:05:06Z" : "2032-02-03T04:05:06Z",
      },
    ],
    credentials: isA
      ? [credential("ak_minor"), credential("ak_lost")]
      : ["ak_maker", "ak_till", "ak_shop", "ak_gone"].map((key) => credential(key, partyOf[key]!)),
  };
}
