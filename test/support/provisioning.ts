// Two tenants for tests, one of each variant, and strangers beside them. Secrets follow from the access key.

export const secretOf = (accessKey: string) => `secret of ${accessKey} `.padEnd(40, "x");

const valid = { valid_from: "2020-01-01T00:00:00Z", valid_to: "2099-01-01T00:00:00Z" };
const fiveOff = { currency: "EUR", discount: { type: "fixed", amount: 5 }, ...valid };
const party = (id: string) => ({ id, name: id, time_zone: "Europe/Berlin" });
const credential = (access_key: string, owner?: string) => ({
  access_key,
  secret: secretOf(access_key),
  ...(owner !== undefined && { party: owner }),
});

export const tenants = [
  {
    id: "ten_a",
    name: "A",
    variant: "A",
    parties: [party("pty_a")],
    merchants: [
      { id: "mch_a", name: "a", party: "pty_a" },
      { id: "mch_a2", name: "a2", party: "pty_a" },
    ],
    templates: [
      { id: "tpl_fixed", name: "5.00 off", maker: "pty_a", ...fiveOff },
      { id: "tpl_percent", name: "10 percent", maker: "pty_a", ...fiveOff, discount: { type: "percent", percent: 10 } },
      { id: "tpl_scoped", name: "mch_a2 only", maker: "pty_a", ...fiveOff, merchants: ["mch_a2"] },
    ],
    credentials: [credential("ak_a"), credential("ak_a_second")],
  },
  {
    id: "ten_a2",
    name: "A, a stranger",
    variant: "A",
    parties: [party("pty_a2")],
    merchants: [{ id: "mch_a2s", name: "a2s", party: "pty_a2" }],
    templates: [{ id: "tpl_a2s", name: "5.00 off", maker: "pty_a2", ...fiveOff }],
    credentials: [credential("ak_a_stranger")],
  },
  {
    id: "ten_b",
    name: "B",
    variant: "B",
    parties: [party("pty_maker"), party("pty_dist"), party("pty_shop"), party("pty_pos"), party("pty_other")],
    merchants: [
      {
        id: "mch_b",
        name: "b",
        party: "pty_shop",
        delegates: ["pty_pos"],
        stores: [{ external_id: "S1", terminals: ["T1"] }, { external_id: "S2" }],
      },
      { id: "mch_b2", name: "b2", party: "pty_other" },
    ],
    templates: [{ id: "tpl_b", name: "5.00 off", maker: "pty_maker", distributor: "pty_dist", ...fiveOff }],
    credentials: [
      credential("ak_maker", "pty_maker"),
      credential("ak_dist", "pty_dist"),
      credential("ak_shop", "pty_shop"),
      credential("ak_pos", "pty_pos"),
      credential("ak_other", "pty_other"),
    ],
  },
];

export const document = { tenants };
