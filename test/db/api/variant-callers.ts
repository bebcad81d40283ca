// What a test needs to run the same calls in both variants.

// In each variant, the caller that makes batches and the caller that redeems coupons at the merchant.
export const variants = [
  { variant: "A", makerKey: "ak_a", shopKey: "ak_a", template: "tpl_fixed", merchant: "mch_a" },
  { variant: "B", makerKey: "ak_maker", shopKey: "ak_shop", template: "tpl_b", merchant: "mch_b" },
];
