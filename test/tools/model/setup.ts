// The setup of a run: templates with different terms, and callers with different rights. The service is provisioned
// from the same tables that the model reads.
import type { Variant } from "../../../src/gate/gate.ts";
import { credential, merchant, party, template } from "../../support/tenants.ts";

// Amounts are in minor units; percent is in ten-thousandths of a percent.
export type Terms = {
  currency: "EUR" | "JPY";
  fixed?: number;
  percent?: number;
  max?: number;
  min?: number;
  skus?: string[];
};
/** The rules of a coupon's template. */
export type Kind = Terms & {
  template: string;
  isReissued?: true;
  isLater?: true;
  isUnreleased?: true;
  // Its batch has one coupon, because a life releases or stops it.
  isAlone?: true;
  merchants?: string[];
};

const kinds = {
  usual: { currency: "EUR", fixed: 500 },
  reissued: { currency: "EUR", fixed: 500, isReissued: true },
  percent: { currency: "JPY", percent: 125_000, max: 300, min: 20, isReissued: true },
  thirds: { currency: "EUR", percent: 333_333 },
  basket: { currency: "EUR", fixed: 400, skus: ["A1", "B2"], isReissued: true },
  share: { currency: "EUR", percent: 150_000, skus: ["A1"], min: 1_000, max: 700 },
  scoped: { currency: "EUR", fixed: 300, merchants: ["mch_2"], isReissued: true },
  later: { currency: "EUR", fixed: 500, min: 2_000, isLater: true },
  unreleased: { currency: "EUR", fixed: 500, isReissued: true, isUnreleased: true, isAlone: true },
  alone: { currency: "EUR", fixed: 500, isReissued: true, isAlone: true },
} satisfies Record<string, Omit<Kind, "template">>;
export type KindName = keyof typeof kinds;
export const kindNames = Object.keys(kinds) as KindName[];
export const kindOf = (name: KindName): Kind => ({ template: `tpl_${name}`, ...kinds[name] });

export const decimalsOf = { EUR: 2, JPY: 0 };
export const validFrom = { usual: "2020-01-01T00:00:00.000Z", later: "2098-01-01T00:00:00.000Z" };
export const validTo = {
  past: "2021-01-01T00:00:00.000Z",
  usual: "2099-01-01T00:00:00.000Z",
  longer: "2100-01-01T00:00:00.000Z",
};
export type End = keyof typeof validTo;
// Seven days, the longest, so that no lock ends by itself while other lives go on: the model has no clock.
const lockTtlSeconds = 604_800;

export const tenant = "ten_own";
export const distributor = "pty_dist";
export const merchantNames = ["mch_1", "mch_2", "mch_x", "mch_none"];

// scope: the scope of the caller's request IDs and locks. merchants: those that the caller may act for.
export type Caller = { accessKey: string; scope: string; isOwn: boolean; mayRelease: boolean; merchants: string[] };
export type Setup = { variant: Variant; unit: "major" | "minor"; callers: Caller[] };

const caller = (scope: string, merchants: string[], more: Partial<Caller> = {}): Caller => ({
  accessKey: `ak_${scope}`,
  scope,
  merchants,
  isOwn: true,
  mayRelease: false,
  ...more,
});
const both = ["mch_1", "mch_2"];
const stranger = caller("stranger", ["mch_x"], { isOwn: false });

// The first caller of each has the most rights.
export const setups: Record<Variant, Setup> = {
  A: {
    variant: "A",
    unit: "major",
    callers: [
      caller("tenant", both, { mayRelease: true }),
      caller("tenant", both, { mayRelease: true, accessKey: "ak_second" }),
      stranger,
    ],
  },
  B: {
    variant: "B",
    unit: "minor",
    callers: [
      // The delegate of both merchants, the owner of each, and two callers that may not redeem.
      caller("pos", both),
      caller("shop", ["mch_1"]),
      caller("other", ["mch_2"]),
      caller("maker", [], { mayRelease: true }),
      caller("dist", []),
      stranger,
    ],
  },
};

function templateOf(name: KindName, unit: Setup["unit"]) {
  const { currency, fixed, percent, max, min, skus, isReissued, isLater, merchants, ...kind } = kindOf(name);
  const amount = (minor: number) => (unit === "minor" ? minor : minor / 10 ** decimalsOf[currency]);
  const discount =
    percent === undefined
      ? { type: "fixed", amount: amount(fixed!) }
      : { type: "percent", percent: percent / 10_000, ...(max !== undefined && { max_amount: amount(max) }) };
  return template(kind.template, "pty_maker", {
    distributor,
    currency,
    discount,
    ...(min !== undefined && { min_order_amount: amount(min) }),
    ...(skus !== undefined && { skus }),
    ...(merchants !== undefined && { merchants }),
    after_reversal: isReissued === true ? "reissued" : "consumed",
    lock_ttl_seconds: lockTtlSeconds,
    valid_from: isLater === true ? validFrom.later : validFrom.usual,
    valid_to: validTo.usual,
  });
}

// The file for `npm run apply`.
export function documentOf({ variant, unit, callers }: Setup) {
  const credentialOf = ({ accessKey, scope }: Caller) =>
    variant === "A" ? credential(accessKey) : credential(accessKey, `pty_${scope}`);
  const merchantOf = (id: string, owner: string) =>
    merchant(id, owner, variant === "B" ? { delegates: ["pty_pos"] } : {});
  return {
    tenants: [
      {
        id: tenant,
        name: "own",
        variant,
        amount_unit: unit,
        parties: ["pty_maker", distributor, "pty_shop", "pty_other", "pty_pos"].map((id) => party(id)),
        merchants: [merchantOf("mch_1", "pty_shop"), merchantOf("mch_2", "pty_other")],
        templates: kindNames.map((name) => templateOf(name, unit)),
        credentials: callers.filter(({ isOwn }) => isOwn).map(credentialOf),
      },
      {
        id: "ten_x",
        name: "stranger",
        variant,
        amount_unit: unit,
        parties: [party("pty_stranger")],
        merchants: [merchant("mch_x", "pty_stranger")],
        credentials: [credentialOf(stranger)],
      },
    ],
  };
}
