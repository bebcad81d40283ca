// The setup of a run: templates with different terms, and callers with different rights. The service is provisioned
// from the same tables that the model reads.
import type { Variant } from "../../src/gate/gate.ts";
import { secretOf } from "../support/tenants.ts";

// The terms of a discount. Amounts are in minor units; percent is in ten-thousandths of a percent.
export type Terms = {
  currency: "EUR" | "JPY";
  fixed?: number;
  percent?: number;
  max?: number;
  min?: number;
  skus?: string[];
};
export type Kind = Terms & {
  isReissued?: true;
  isLater?: true;
  isUnreleased?: true;
  merchants?: string[];
};

export const decimalsOf = { EUR: 2, JPY: 0 };

// Seven days, the longest, so that no lock ends by itself while other runs go on: the model has no clock.
const lockTtlSeconds = 604_800;

const kinds = {
  usual: { currency: "EUR", fixed: 500 },
  reissued: { currency: "EUR", fixed: 500, isReissued: true },
  percent: { currency: "JPY", percent: 125_000, max: 300, min: 20, isReissued: true },
  thirds: { currency: "EUR", percent: 333_333 },
  basket: { currency: "EUR", fixed: 400, skus: ["A1", "B2"], isReissued: true },
  share: { currency: "EUR", percent: 150_000, skus: ["A1"], min: 1_000, max: 700 },
  scoped: { currency: "EUR", fixed: 300, merchants: ["mch_2"], isReissued: true },
  later: { currency: "EUR", fixed: 500, min: 2_000, isLater: true },
  unreleased: { currency: "EUR", fixed: 500, isReissued: true, isUnreleased: true },
} satisfies Record<string, Kind>;
export type KindName = keyof typeof kinds;
export const kindNames = Object.keys(kinds) as KindName[];
export const kindOf = (name: KindName): Kind => kinds[name];

export const validFrom = { usual: "2020-01-01T00:00:00.000Z", later: "2098-01-01T00:00:00.000Z" };
export const validTo = {
  past: "2021-01-01T00:00:00.000Z",
  usual: "2099-01-01T00:00:00.000Z",
  longer: "2100-01-01T00:00:00.000Z",
};

// scope: the scope of the caller's request IDs and locks. merchants: those that the caller may act for.
export type Caller = { accessKey: string; scope: string; tenant: string; mayRelease: boolean; merchants: string[] };
export type Setup = {
  variant: Variant;
  tenant: string;
  distributor: string;
  unit: "major" | "minor";
  makerKey: string;
  callers: Caller[];
};

const caller = (accessKey: string, scope: string, merchants: string[], more: Partial<Caller> = {}): Caller => ({
  accessKey,
  scope,
  merchants,
  tenant: "ten_own",
  mayRelease: false,
  ...more,
});
const both = ["mch_1", "mch_2"];
const stranger = caller("ak_stranger", "stranger", ["mch_x"], { tenant: "ten_x" });

// The first caller of each has the most rights.
export const setups: Record<Variant, Setup> = {
  A: {
    variant: "A",
    tenant: "ten_own",
    distributor: "pty_dist",
    unit: "major",
    makerKey: "ak_one",
    callers: [
      caller("ak_one", "tenant", both, { mayRelease: true }),
      caller("ak_two", "tenant", both, { mayRelease: true }),
      stranger,
    ],
  },
  B: {
    variant: "B",
    tenant: "ten_own",
    distributor: "pty_dist",
    unit: "minor",
    makerKey: "ak_maker",
    callers: [
      // The delegate of both merchants, the owner of each, and two callers that may not redeem.
      caller("ak_pos", "pos", both),
      caller("ak_shop", "shop", ["mch_1"]),
      caller("ak_other", "other", ["mch_2"]),
      caller("ak_maker", "maker", [], { mayRelease: true }),
      caller("ak_dist", "dist", []),
      stranger,
    ],
  },
};
export const merchantNames = ["mch_1", "mch_2", "mch_x", "mch_none"];
// The stores and terminals of Variant B. Variant A accepts any text.
export const stores: Record<string, Record<string, string[]>> = { mch_1: { S1: ["T1"], S2: [] }, mch_2: { S1: [] } };

const terms = (
  { currency, fixed, percent, max, min, skus, isReissued, isLater, merchants }: Kind,
  unit: Setup["unit"],
) => {
  const amount = (minor: number) => (unit === "minor" ? minor : minor / 10 ** decimalsOf[currency]);
  return {
    currency,
    discount:
      percent === undefined
        ? { type: "fixed", amount: amount(fixed!) }
        : { type: "percent", percent: percent / 10_000, ...(max !== undefined && { max_amount: amount(max) }) },
    ...(min !== undefined && { min_order_amount: amount(min) }),
    ...(skus !== undefined && { skus }),
    ...(merchants !== undefined && { merchants }),
    after_reversal: isReissued === true ? "reissued" : "consumed",
    lock_ttl_seconds: lockTtlSeconds,
    valid_from: isLater === true ? validFrom.later : validFrom.usual,
    valid_to: validTo.usual,
  };
};

// The document for `npm run apply`.
export function document({ variant, tenant, distributor, unit, callers, makerKey }: Setup) {
  const party = (id: string) => ({ id, name: id });
  const credential = (accessKey: string, owner: string) => ({
    access_key: accessKey,
    secret: secretOf(accessKey),
    ...(variant === "B" && { party: owner }),
  });
  const partyOf = (scope: string) => `pty_${scope}`;
  const own = callers.filter((one) => one.tenant === tenant);
  return {
    tenants: [
      {
        id: tenant,
        name: "own",
        variant,
        amount_unit: unit,
        parties: [...new Set(["maker", "dist", "shop", "other", ...own.map(({ scope }) => scope)])].map((name) =>
          party(partyOf(name)),
        ),
        merchants: [
          ["mch_1", "pty_shop"],
          ["mch_2", "pty_other"],
        ].map(([id, owner]) => ({
          id,
          name: id,
          party: owner,
          ...(variant === "B" && { delegates: ["pty_pos"] }),
          stores: Object.entries(stores[id!]!).map(([external_id, terminals]) => ({ external_id, terminals })),
        })),
        templates: kindNames.map((name) => ({
          id: `tpl_${name}`,
          name,
          maker: "pty_maker",
          distributor,
          ...terms(kinds[name], unit),
        })),
        credentials: [...new Set([makerKey, ...own.map(({ accessKey }) => accessKey)])].map((accessKey) =>
          credential(accessKey, partyOf(own.find((one) => one.accessKey === accessKey)!.scope)),
        ),
      },
      {
        id: "ten_x",
        name: "stranger",
        variant,
        amount_unit: unit,
        parties: [party("pty_stranger")],
        merchants: [{ id: "mch_x", name: "x", party: "pty_stranger" }],
        credentials: [credential("ak_stranger", "pty_stranger")],
      },
    ],
  };
}
