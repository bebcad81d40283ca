// The kinds of fields in the routes' schemas. Messages state what is allowed and never repeat the value.
import { z } from "zod";
import { printable } from "../common/fields.ts";
import { normalizeCode } from "../crypto/coupon-code.ts";

export { amount, currency, printable } from "../common/fields.ts";

export const requestId = printable(128);
export const externalId = printable(64);

// Free text of at most `max` characters.
export const text = (max: number) =>
  z.string().refine((value) => [...value].length <= max, `must be at most ${max} characters`);

// Store and terminal in Variant A: recorded unchanged, only their length is checked. Blank counts as absent.
export const label = z
  .string()
  .transform((value) => value.trim().normalize("NFC"))
  .refine((value) => [...value].length <= 64, "must be at most 64 characters")
  .transform((value) => (value === "" ? undefined : value));

// A query parameter, which arrives as text.
export const limit = z
  .string()
  .refine((value) => /^[1-9]\d{0,3}$/.test(value) && Number(value) <= 1_000, "must be an integer from 1 to 1000")
  .transform(Number);

// Whether a text is an existing day as YYYY-MM-DD.
export function isDate(value: string): boolean {
  const day = /^\d{4}-\d\d-\d\d$/.test(value) ? new Date(`${value}T00:00:00Z`) : new Date(NaN);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(value) && !value.startsWith("0000");
}

export const coupon = z.string().transform((value, context) => {
  const code = normalizeCode(value);
  if (code !== null) return code;
  context.addIssue({ code: "custom", message: "must be a code of 16 characters of Crockford Base32" });
  return z.NEVER;
});
