// What makes a lock or redeem deserve a refusal, for refusal-order.test.ts.
type Draft = {
  // Terms of the coupon's template, and the call.
  terms: Record<string, unknown>;
  call: Record<string, unknown>;
  variant: "A" | "B";
  // A merchant that the call does not name.
  other: string;
};
export type Refusal = {
  code: string;
  only?: "A" | "B";
  changes?: (draft: Draft) => void;
  // What happens to the coupon before. `keep`: its batch is not released.
  step?: "lock" | "redeem" | "expire" | "void" | "cancel" | "keep";
  // Refusals that no coupon deserves beside this one.
  excludes?: string[];
  excludesInB?: string[];
};
export type Case = { till: string; call: Record<string, unknown> };

export const variantsOfCallers = {
  A: {
    tenant: "ten_a",
    maker: { key: "ak_a", party: "pty_a" },
    till: "ak_a",
    merchant: "mch_a",
    other: "mch_a2",
    otherTill: "ak_a",
  },
  B: {
    tenant: "ten_b",
    maker: { key: "ak_maker", party: "pty_maker" },
    till: "ak_pos",
    merchant: "mch_b",
    other: "mch_b2",
    otherTill: "ak_other",
  },
};

/** In the order of the table in integrate.md. INVALID_REQUEST is the one that depends on the coupon's currency. */
export const refusalsOfRedemption: Refusal[] = [
  { code: "NOT_FOUND", changes: ({ call }) => (call["merchant"] = "mch_none") },
  {
    code: "INVALID_REQUEST",
    changes: ({ call }) => (call["order_amount"] = 1.001),
    // An amount in another currency is not read.
    excludes: ["CURRENCY_MISMATCH"],
    excludesInB: ["DISCOUNT_NOT_COMPUTABLE"],
  },
  { code: "MERCHANT_NOT_IN_SCOPE", changes: ({ terms, other }) => (terms["merchants"] = [other]) },
  { code: "LOCK_CANCELLED", step: "cancel" },
  { code: "COUPON_VOIDED", step: "void", excludes: ["COUPON_REDEEMED", "COUPON_EXPIRED", "COUPON_LOCKED"] },
  {
    code: "COUPON_REDEEMED",
    step: "redeem",
    excludes: ["COUPON_LOCKED", "COUPON_NOT_RELEASED", "COUPON_NOT_YET_VALID"],
  },
  { code: "COUPON_EXPIRED", step: "expire", excludes: ["COUPON_NOT_YET_VALID"] },
  { code: "COUPON_LOCKED", step: "lock", excludes: ["COUPON_NOT_RELEASED", "COUPON_NOT_YET_VALID"] },
  { code: "COUPON_NOT_RELEASED", step: "keep" },
  { code: "COUPON_NOT_YET_VALID", changes: ({ terms }) => (terms["valid_from"] = "2098-01-01T00:00:00Z") },
  { code: "CURRENCY_MISMATCH", changes: ({ call }) => (call["currency"] = "USD") },
  {
    code: "DISCOUNT_NOT_COMPUTABLE",
    changes({ terms, call, variant }) {
      if (variant === "A") {
        terms["skus"] = ["A1"];
        delete call["redemption_context"];
      } else {
        terms["discount"] = { type: "percent", percent: 10 };
        delete call["order_amount"];
      }
    },
    excludes: ["NO_ELIGIBLE_ITEMS"],
    excludesInB: ["ORDER_BELOW_MINIMUM"],
  },
  {
    code: "ORDER_BELOW_MINIMUM",
    changes({ terms, call }) {
      terms["min_order_amount"] = 100;
      if (call["order_amount"] === 200) call["order_amount"] = 20;
    },
  },
  {
    code: "NO_ELIGIBLE_ITEMS",
    only: "A",
    changes({ terms, call }) {
      terms["skus"] = ["A1"];
      call["redemption_context"] = { items: [{ sku: "A2", amount: 200 }] };
    },
  },
];
