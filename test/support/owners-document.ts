// The tenant of owners.ts: everything that a tenant declares, once for each of its two sides.
import { credential, merchant, party, secretOf, template } from "./tenants.ts";

export type Variant = "A" | "B";
export type Side = 1 | 2;
export const sides: readonly Side[] = [1, 2];

/** The tenant of a variant, as `npm run apply` takes it. Its webhooks are at `url`. */
export function ownersDocument(variant: Variant, url: string) {
  const name = `${variant.toLowerCase()}1`;
  const webhook = (id: string) => ({ webhook: { url: `${url}/${name}/${id}`, secret: `whsec_${btoa(secretOf(id))}` } });
  const parties = sides.flatMap((side) => [
    party(`pty_m${side}`),
    party(`pty_d${side}`, webhook(`pty_d${side}`)),
    party(`pty_s${side}`),
  ]);
  return {
    id: `ten_${name}`,
    name,
    variant,
    parties: [...parties, party("pty_p")],
    merchants: sides.map((side) =>
      merchant(`mch_${side}`, `pty_s${side}`, {
        ...(side === 1 && { delegates: ["pty_p"] }),
        stores: [
          { external_id: "S0", terminals: ["T0"] },
          { external_id: `S${side}`, terminals: [`T${side}`] },
        ],
      }),
    ),
    templates: sides.flatMap((side) => [
      template(`tpl_${side}`, `pty_m${side}`, {
        distributor: `pty_d${side}`,
        discount: { type: "fixed", amount: 4 + side },
        after_reversal: "reissued",
        lock_ttl_seconds: 604_800,
      }),
      template(`tpl_s${side}`, `pty_m${side}`, { distributor: `pty_d${side}`, merchants: [`mch_${side}`] }),
    ]),
    credentials:
      variant === "A"
        ? sides.map((side) => credential(`ak_${name}_m${side}`))
        : [...parties, party("pty_p")].map(({ id }) => credential(`ak_${name}_${id.slice(4)}`, id)),
  };
}
