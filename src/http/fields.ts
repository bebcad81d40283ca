// The kinds of fields that the routes' schemas are made of. Messages say what is wanted and never what came.
import { z } from "zod";
import { normalizeCode } from "../crypto/coupon-code.ts";

// Control characters, lone surrogates and NUL are in \p{C}; characters are counted, not UTF-16 units.
export const printable = (max: number) =>
  z.string().regex(new RegExp(`^\\P{C}{1,${max}}$`, "u"), `must be 1 to ${max} printable characters`);

export const requestId = printable(128);
export const externalId = printable(64);

// Free text, at most so many characters.
export const text = (max: number) =>
  z.string().refine((value) => [...value].length <= max, `must be at most ${max} characters`);

// Store and terminal in Variant A: recorded as given, never an error but for their length. Nothing left is nothing given.
export const label = z
  .string()
  .transform((value) => value.trim().normalize("NFC"))
  .refine((value) => [...value].length <= 64, "must be at most 64 characters")
  .transform((value) => (value === "" ? undefined : value));

export const amount = z.number().min(0, "must not be negative").lt(1e12, "must be below 10^12");
export const currency = z.string().regex(/^[A-Z]{3}$/, "must be an ISO 4217 code, as EUR");

// A query parameter, so a text.
export const limit = z
  .string()
  .refine((value) => /^[1-9]\d{0,3}$/.test(value) && Number(value) <= 1_000, "must be an integer from 1 to 1000")
  .transform(Number);

// YYYY-MM-DD, and a day that the calendar has.
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
