// The tenants of the story, one of each variant. Each has two sides that own the same kinds of things: side 1 owns what
// ends in 1, side 2 what ends in 2. Both sides also sell at mch_k. See twin.ts for a second tenant of each variant.
import { generateX25519Identity, identityToRecipient } from "age-encryption";
import { firstTenant } from "../support/route.ts";
import { credential, merchant, party, template } from "../support/tenants.ts";
import { major, type Row } from "./books.ts";

export type Variant = "A" | "B";
export type Side = 1 | 2;
export const sides: readonly Side[] = [1, 2];

/** row, last: of report.coupon, and of report.redemption. The request is that of its last lock or redeem. */
export type Coupon = { code: string; id: string; row: Row; last: Row; requestId: string };

/** One side of a tenant. It has no functions, so that twin.ts can translate it. */
export type Owner = ReturnType<typeof createOwner>;

export function createOwner(variant: Variant, side: Side) {
  const name = `${variant.toLowerCase()}1`;
  // In Variant A there is an access key for each side, and each is the tenant.
  const keyOf = (role: string) => `ak_${name}_${variant === "A" ? `m${side}` : role}`;
  return {
    tenant: `ten_${name}`,
    number: firstTenant() + (variant === "A" ? 0 : 1),
    variant,
    side,
    maker: keyOf(`m${side}`),
    distributor: keyOf(`d${side}`),
    shop: keyOf(`s${side}`),
    /** In Variant B another party that may act for the merchant of side 1. */
    delegate: keyOf(side === 1 ? "p" : "s2"),
    makerParty: `pty_m${side}`,
    distributorParty: `pty_d${side}`,
    merchant: `mch_${side}`,
    store: `S${side}`,
    terminal: `T${side}`,
    template: `tpl_${side}`,
    /** Of this template. */
    currency: side === 1 ? "EUR" : { A: "JPY", B: "BHD" }[variant],
    /** The request_id of a lock that was cancelled before it comes. */
    lateLock: variant === "A" ? `late ${side}` : "late",
    coupons: {} as Record<string, Coupon>,
    batches: {} as Record<string, string>,
  };
}

/** The party of a credential; null in Variant A. */
export const partyOf = (accessKey: string): string | null =>
  accessKey.startsWith("ak_a") ? null : `pty_${accessKey.split("_")[2]}`;

/** An amount as its tenant sends and gets it: minor units in Variant A, major units in Variant B. */
export const amount = ({ variant }: Pick<Owner, "variant">, minor: number, currency: string): string =>
  variant === "A" ? String(minor) : major(minor, currency);

// Side 1 takes a fixed amount off, side 2 an eighth of the order, at most the cap. In minor units.
const terms = { A: { fixed: 500, cap: 700 }, B: { fixed: 750, cap: 800 } };

export const discountOf = ({ variant, currency }: Owner, orderMinor: number): number =>
  currency === "EUR" ? terms[variant].fixed : Math.min(Math.floor(orderMinor / 8), terms[variant].cap);

/** The private keys of makers and distributors, by the public ones, because a twin has those of the other side. */
export const identities: Record<string, string> = {};
const publicKeys: Record<string, string> = {};
for (const id of sides.flatMap((side) => [`pty_m${side}`, `pty_d${side}`])) {
  const identity = await generateX25519Identity();
  publicKeys[id] = await identityToRecipient(identity);
  identities[publicKeys[id]] = identity;
}

/** A file that declares more of a tenant. */
export const declare = ({ tenant: id, variant }: Pick<Owner, "tenant" | "variant">, more: object) => ({
  tenants: [{ id, name: `Variant ${variant}`, variant, amount_unit: variant === "A" ? "minor" : "major", ...more }],
});

/** A tenant as `npm run apply` takes it. */
export function describeTenant(variant: Variant) {
  const name = `${variant.toLowerCase()}1`;
  const ids = [...sides.flatMap((side) => [`pty_m${side}`, `pty_d${side}`, `pty_s${side}`]), "pty_p", "pty_q"];
  return {
    id: `ten_${name}`,
    name: `Variant ${variant}`,
    sandbox: true,
    variant,
    amount_unit: variant === "A" ? "minor" : "major",
    parties: ids.map((id) => party(id, { name: `${id} of ${variant}`, public_key: publicKeys[id] })),
    merchants: [
      ...sides.map((side) =>
        merchant(`mch_${side}`, `pty_s${side}`, {
          ...(side === 1 && { delegates: ["pty_q", "pty_p"] }),
          stores: [
            { external_id: "S0", terminals: ["T9", "T0"] },
            { external_id: `S${side}`, terminals: [`T${side}`] },
          ],
        }),
      ),
      merchant("mch_k", "pty_p", { name: `Kiosk ${variant}` }),
    ],
    templates: describeTemplates(variant),
    credentials:
      variant === "A"
        ? ["m1", "m2", "q"].map((role) => credential(`ak_${name}_${role}`))
        : ids.map((id) => credential(`ak_${name}_${id.slice(4)}`, id)),
  };
}

function describeTemplates(variant: Variant) {
  const { fixed, cap } = terms[variant];
  const [one, two] = sides.map((side) => createOwner(variant, side)) as [Owner, Owner];
  const show = (owner: Owner, minor: number) => Number(amount(owner, minor, owner.currency));
  const first = {
    distributor: "pty_d1",
    discount: { type: "fixed", amount: show(one, fixed) },
    min_order_amount: show(one, 1_000),
    lock_ttl_seconds: 604_800,
  };
  const second = {
    distributor: "pty_d2",
    currency: two.currency,
    discount: { type: "percent", percent: 12.5, max_amount: show(two, cap) },
    lock_ttl_seconds: 604_000,
    after_reversal: "reissued",
  };
  const unused = {
    discount: { type: "percent", percent: 0.0625 },
    skus: ["A1", "B2"],
    valid_to: "2032-02-03T04:05:06Z",
  };
  return [
    template("tpl_1", "pty_m1", first),
    template("tpl_2", "pty_m2", second),
    ...sides.map((side) =>
      template(`tpl_s${side}`, `pty_m${side}`, { distributor: `pty_d${side}`, merchants: ["mch_k", `mch_${side}`] }),
    ),
    template("tpl_u", variant === "A" ? "pty_m2" : "pty_m1", unused),
  ];
}
