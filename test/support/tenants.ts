// Parts of the documents that `npm run apply` takes, for tests, benchmarks and chaos runs.

// A secret follows from its access key, so clients need no list of secrets.
export const secretOf = (accessKey: string): string => `secret of ${accessKey} `.padEnd(40, "x");

const alwaysValid = { valid_from: "2020-01-01T00:00:00Z", valid_to: "2099-01-01T00:00:00Z" };

export const party = <More extends object>(id: string, more?: More) => ({ id, name: id, ...more });

export const merchant = <More extends object>(id: string, owner: string, more?: More) => ({
  id,
  name: id,
  party: owner,
  ...more,
});

// Takes 5.00 EUR off and is always valid, unless `more` says otherwise.
export const template = <More extends object>(id: string, maker: string, more?: More) => ({
  id,
  name: id,
  maker,
  currency: "EUR",
  discount: { type: "fixed", amount: 5 },
  ...alwaysValid,
  ...more,
});

// In Variant B a credential belongs to a party.
export const credential = (accessKey: string, owner?: string) => ({
  access_key: accessKey,
  secret: secretOf(accessKey),
  ...(owner !== undefined && { party: owner }),
});

const berlin = { time_zone: "Europe/Berlin" };
const fiveOff = { name: "5.00 off" };

// The tenants of most tests: one of each variant, and an unrelated tenant of Variant A.
export const tenants = [
  {
    id: "ten_a",
    name: "A",
    variant: "A",
    parties: [party("pty_a", berlin)],
    merchants: [merchant("mch_a", "pty_a"), merchant("mch_a2", "pty_a")],
    templates: [
      template("tpl_fixed", "pty_a", fiveOff),
      template("tpl_percent", "pty_a", { name: "10 percent", discount: { type: "percent", percent: 10 } }),
      template("tpl_scoped", "pty_a", { name: "mch_a2 only", merchants: ["mch_a2"] }),
    ],
    credentials: [credential("ak_a"), credential("ak_a_second")],
  },
  {
    id: "ten_a2",
    name: "A, a stranger",
    variant: "A",
    parties: [party("pty_a2", berlin)],
    merchants: [merchant("mch_a2s", "pty_a2")],
    templates: [template("tpl_a2s", "pty_a2", fiveOff)],
    credentials: [credential("ak_a_stranger")],
  },
  {
    id: "ten_b",
    name: "B",
    variant: "B",
    parties: ["pty_maker", "pty_dist", "pty_shop", "pty_pos", "pty_other"].map((id) => party(id, berlin)),
    merchants: [
      merchant("mch_b", "pty_shop", {
        delegates: ["pty_pos"],
        stores: [{ external_id: "S1", terminals: ["T1"] }, { external_id: "S2" }],
      }),
      merchant("mch_b2", "pty_other"),
    ],
    templates: [template("tpl_b", "pty_maker", { ...fiveOff, distributor: "pty_dist" })],
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

// Where a caller of the usual tenants redeems.
const merchants: Record<string, string> = {
  ak_pos: "mch_b",
  ak_shop: "mch_b",
  ak_other: "mch_b2",
  ak_a_stranger: "mch_a2s",
};
export const merchantOf = (accessKey: string): string => merchants[accessKey] ?? "mch_a";
