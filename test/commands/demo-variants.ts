// What differs between the two variants in the output of npm run demo.

export type Variant = {
  heading: string;
  template: string;
  merchant: string;
  store: string;
  terminal: string;
  makerParty: string;
  distributorParty: string;
  discount: number;
  /** The coupon in the answer of query, with what the variant shows of it. */
  showCoupon: (coupon: { coupon_id: string; status: string }) => object;
  /** Of the reversed coupon. */
  reversed: { status: string; redemption?: object };
};

export const variantA: Variant = {
  heading: "=== Variant A: the credential identifies the tenant. 10 percent off, at most 8.00 EUR ===",
  template: "tpl_tenpercent",
  merchant: "mch_bakery",
  store: "Main Street",
  terminal: "till 2",
  makerParty: "pty_bakery",
  distributorParty: "pty_bakery",
  discount: 6.45,
  showCoupon: (coupon) => ({
    ...coupon,
    batch_id: "bat_1",
    created_at: "TIME",
    valid_from: "2026-01-01T00:00:00.000Z",
    valid_to: "2036-01-01T00:00:00.000Z",
  }),
  reversed: {
    status: "REDEEMED",
    redemption: {
      merchant_id: "mch_bakery",
      status: "REVERSED",
      started_at: "TIME",
      discount_amount: 6.45,
      currency: "EUR",
    },
  },
};

export const variantB: Variant = {
  heading: "=== Variant B: the credential identifies a party. 5.00 EUR off, reversed coupons may be used again ===",
  template: "tpl_fiveoff",
  merchant: "mch_corner",
  store: "S1",
  terminal: "T1",
  makerParty: "pty_maker",
  distributorParty: "pty_dist",
  discount: 5,
  showCoupon: (coupon) => ({ ...coupon, template_id: "tpl_fiveoff", batch_id: "bat_1", created_at: "TIME" }),
  reversed: { status: "ISSUED" },
};
