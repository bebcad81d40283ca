// A tenant of each variant, each with a webhook subscriber. In Variant B the tills belong to two parties; in A they are
// two access keys of one caller.
import { credential, merchant, party, template } from "../support/tenants.ts";

export type Variant = "A" | "B";
export type Till = { accessKey: string; merchant: string };
export type Tenant = {
  id: string;
  maker: string;
  tills: [Till, Till];
  template: string;
  shortTemplate: string;
  distributor: string;
  // The access key that reads the feed.
  reader: string;
};

export const tenants: Record<Variant, Tenant> = {
  A: {
    id: "ten_chaosa",
    maker: "ak_chaos_a",
    distributor: "pty_a",
    template: "tpl_a",
    shortTemplate: "tpl_ashort",
    reader: "ak_chaos_a",
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
    reader: "ak_chaos_dist",
    tills: [
      { accessKey: "ak_chaos_shop", merchant: "mch_b1" },
      { accessKey: "ak_chaos_pos", merchant: "mch_b1" },
    ],
  },
};

const parties: Record<string, string> = {
  ak_chaos_maker: "pty_maker",
  ak_chaos_dist: "pty_dist",
  ak_chaos_shop: "pty_shop",
  ak_chaos_pos: "pty_pos",
};

// The caller within which a request_id is unique, as reports name it: a party in Variant B, null in A.
export const callerOf = (accessKey: string): string | null => parties[accessKey] ?? null;

export function tenantDocument(webhook: { url: string; secret: string } | null): object {
  const subscriber = webhook === null ? {} : { webhook };
  return {
    tenants: [
      {
        id: tenants.A.id,
        name: "A",
        variant: "A",
        parties: [party("pty_a", subscriber)],
        merchants: [merchant("mch_a1", "pty_a"), merchant("mch_a2", "pty_a")],
        templates: makeTemplates(tenants.A, "pty_a"),
        credentials: [credential("ak_chaos_a"), credential("ak_chaos_a2")],
      },
      {
        id: tenants.B.id,
        name: "B",
        variant: "B",
        parties: [party("pty_maker"), party("pty_dist", subscriber), party("pty_shop"), party("pty_pos")],
        merchants: [merchant("mch_b1", "pty_shop", { delegates: ["pty_pos"] })],
        templates: makeTemplates(tenants.B, "pty_maker"),
        credentials: Object.entries(parties).map(([accessKey, owner]) => credential(accessKey, owner)),
      },
    ],
  };
}

// A coupon of the usual template is redeemable again after a reversal. A lock of the short template lasts one second.
function makeTemplates({ template: usual, shortTemplate, distributor }: Tenant, maker: string) {
  return [
    template(usual, maker, { distributor, after_reversal: "reissued" }),
    template(shortTemplate, maker, { distributor, lock_ttl_seconds: 1 }),
  ];
}
