// The shape of the discount cases: a template's rule, and what each request must get.

/** A string as the order is sent as it is, for numbers that JSON.stringify cannot write. */
export type Ask = { order?: number | string; currency?: string; items?: object[] | undefined };

/**
 * Expected is the discount as the answer shows it, the code of a refusal, or 400 with the path of the bad field.
 * `minor` is the discount in the ledger, in minor units; only cases with it succeed.
 */
export type Case = [ask: Ask, expected: string, minor?: number];

export type Rule = {
  name: string;
  unit?: "minor";
  currency: string;
  discount: object;
  min?: number;
  skus?: string[];
  cases: Case[];
};

export const item = (sku: string, amount?: number, quantity?: number) => ({ sku, amount, quantity });
export const notComputable = "DISCOUNT_NOT_COMPUTABLE";
