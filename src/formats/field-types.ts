// The kinds of fields that requests and provisioning files share. Messages name the rule and never repeat the value.
import { z } from "zod";

/**
 * `min` to `max` characters, counted as code points. `\P{C}` excludes control characters, NUL and lone surrogates. Not
 * all languages know that pattern, so the API description states the lengths instead.
 */
export function printable(max: number, min = 1) {
  const pattern = new RegExp(`^\\P{C}{${min},${max}}$`, "u");
  return z
    .string()
    .refine((value) => pattern.test(value), `must be ${min} to ${max} printable characters`)
    .meta({ minLength: min, maxLength: max });
}

const tooLarge = "must be below 10^12";

/** A non-negative amount in the tenant's unit. The database checks its decimals against the currency. */
export const amount = z.number().min(0, "must not be negative").lt(1e12, tooLarge);
export const positiveAmount = z.number().gt(0, "must be greater than 0").lt(1e12, tooLarge);

export const currency = z.string().regex(/^[A-Z]{3}$/, "must be an ISO 4217 code such as EUR");

/** A moment. Without a zone it would be read in the server's zone, so the zone is required. */
export const timestamp = z.iso.datetime({
  offset: true,
  error: "must be an ISO 8601 timestamp with a zone, such as 2026-01-31T00:00:00Z",
});
