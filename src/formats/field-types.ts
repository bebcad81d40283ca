// The kinds of fields that requests and provisioning files share. Messages name the rule and never repeat the value.
import { z } from "zod";

// Controls, marks that turn the direction of writing, line and paragraph separators, what is invisible and joins
// nothing, half surrogates, private use, and what Unicode will never assign. Joiners and soft hyphens are parts of
// words in Sinhala, Persian or Hindi, as tags are of flags. The code points are listed, because Unicode's categories
// differ between versions; core.is_printable in the database has the same list.
const unprintable =
  "\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ud800-\\udfff" +
  "\\ue000-\\uf8ff\\ufdd0-\\ufdef\\ufeff\\ufff9-\\ufffb\\ufffe\\uffff\\u{e0000}-\\u{e001f}\\u{f0000}-\\u{10ffff}";
const unprintables = new RegExp(`[${unprintable}]`, "gu");

/**
 * `min` to `max` characters, counted as code points. Not all languages know such a pattern, so the API description
 * states the lengths instead.
 */
export function printable(max: number, min = 1) {
  const pattern = new RegExp(`^[^${unprintable}]{${min},${max}}$`, "u");
  return z
    .string()
    .refine((value) => pattern.test(value), `must be ${min} to ${max} printable characters`)
    .meta({ minLength: min, maxLength: max });
}

/** Returns a text without its unprintable characters, or with another one in place of each. */
export function replaceUnprintable(text: string, replacement = ""): string {
  return text.replace(unprintables, replacement);
}

const tooLarge = "must be below 10^12";
const tooSmall = "must be above -10^12";

/** A non-negative amount in the tenant's unit. The database checks its decimals against the currency. */
export const amount = z.number().min(0, "must not be negative").lt(1e12, tooLarge);
/** Of a line of a basket: a returned one is negative. */
export const signedAmount = z.number().gt(-1e12, tooSmall).lt(1e12, tooLarge);
export const positiveAmount = z.number().gt(0, "must be greater than 0").lt(1e12, tooLarge);

export const accessKey = z.string().regex(/^ak_[A-Za-z0-9_-]{1,64}$/, "must be ak_ and 1 to 64 of A-Z a-z 0-9 _ -");
export const currency = z.string().regex(/^[A-Z]{3}$/, "must be an ISO 4217 code such as EUR");

/** A moment. Without a zone it would be read in the server's zone, so the zone is required. */
export const timestamp = z.iso.datetime({
  offset: true,
  error: "must be an ISO 8601 timestamp with a zone, such as 2026-01-31T00:00:00Z",
});
