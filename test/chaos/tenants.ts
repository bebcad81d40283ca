// Whom the harness works for: a tenant of each variant, each with a subscriber to its events. In B the tills are those of two
// parties, in A they are two access keys of one caller.
export type Variant = "A" | "B";
export type Seat = { accessKey: string; merchant: string };
export type Tenant = {
  id: string;
  maker: string;
  tills: [Seat, Seat];
  template: string;
  shortTemplate: string;
  distributor: string;
};

export const secretOf = (accessKey: string): string => `secret of ${accessKey}, of no worth to anybody`;

export const tenants: Record<Variant, Tenant> = {
  A: {
    id: "ten_chaosa",
    maker: "ak_chaos_a",
    distributor: "pty_a",
    template: "tpl_a",
    shortTemplate: "tpl_ashort",
    tills: [
      { accessKey: "ak_chaos_a", merchant: "mch_a1" },
      { accessKey: "ak_chaos_a2", merchant: "mch_a2" },
    ],
  },
  B: {
    id: "ten_chaosb",
    maker: "ak_chaos_maker",
    distributor: "pty_dist",
    template: "tpl_b",
    shortTemplate: "tpl_bshort",
    tills: [
      { accessKey: "ak_chaos_shop", merchant: "mch_b1" },
      { accessKey: "ak_chaos_pos", merchant: "mch_b1" },
    ],
  },
};

// After a reversal a coupon of the usual template may be redeemed again; a lock of the short one lasts a second.
export function tenantDocument(webhook: { url: string; secret: string } | null): object {
  const subscriber = webhook === null ? {} : { webhook };
  const valid = {
    valid_from: "2020-01-01T00:00:00Z",
    valid_to: "2099-01-01T00:00:00Z",
    currency: "EUR",
    discount: { type: "fixed", amount: 5 },
  };
  const party = (id: string) => ({ id, name: id });
  const credential = (access_key: string, owner?: string) => ({
    access_key,
    secret: secretOf(access_key),
    ...(owner !== undefined && { party: owner }),
  });
  const templates = ({ template, shortTemplate, distributor }: Tenant, maker: string) => [
    { id: template, name: "usual", maker, distributor, after_reversal: "reissued", ...valid },
    { id: shortTemplate, name: "short locks", maker, distributor, lock_ttl_seconds: 1, ...valid },
  ];
  return {
    tenants: [
      {
        id: tenants.A.id,
        name: "A",
        variant: "A",
        parties: [{ ...party("pty_a"), ...subscriber }],
        merchants: [
          { id: "mch_a1", name: "1", party: "pty_a" },
          { id: "mch_a2", name: "2", party: "pty_a" },
        ],
        templates: templates(tenants.A, "pty_a"),
        credentials: [credential("ak_chaos_a"), credential("ak_chaos_a2")],
      },
      {
        id: tenants.B.id,
        name: "B",
        variant: "B",
        parties: [party("pty_maker"), { ...party("pty_dist"), ...subscriber }, party("pty_shop"), party("pty_pos")],
        merchants: [{ id: "mch_b1", name: "1", party: "pty_shop", delegates: ["pty_pos"] }],
        templates: templates(tenants.B, "pty_maker"),
        credentials: [
          credential("ak_chaos_maker", "pty_maker"),
          credential("ak_chaos_dist", "pty_dist"),
          credential("ak_chaos_shop", "pty_shop"),
          credential("ak_chaos_pos", "pty_pos"),
        ],
      },
    ],
  };
}

// Who reads the feed.
export const readers: Record<Variant, string> = { A: "ak_chaos_a", B: "ak_chaos_dist" };
// Whose request_ids are whose, as the database tells callers: nobody in A, a party in B.
export const callerOf = (accessKey: string): string | null =>
  ({ ak_chaos_maker: "pty_maker", ak_chaos_shop: "pty_shop", ak_chaos_pos: "pty_pos", ak_chaos_dist: "pty_dist" })[
    accessKey
  ] ?? null;
