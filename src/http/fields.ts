// The kinds of fields in the routes' schemas. Messages state what is allowed and never repeat the value. JSON Schema
// cannot express refinements and transforms, so `meta` states their limits for the API description.
import { z } from "zod";
import { eventTypes } from "../formats/event-types.ts";
import { printable, replaceUnprintable, timestamp } from "../formats/field-types.ts";
import { normalizeCode } from "../crypto/coupon-code.ts";

export { amount, currency, printable } from "../formats/field-types.ts";

export const requestId = printable(128);
export const externalId = printable(64);

// An optional field of a body. Null counts as absent, also when a retry is compared.
export const optional = <T extends z.ZodType>(schema: T) => schema.nullish().transform((value) => value ?? undefined);

// An optional text, for which blank counts as absent too.
export const optionalText = (schema: z.ZodType<string>) =>
  z
    .preprocess((value) => (value === null || isBlank(value) ? undefined : value), schema.optional())
    .meta({ type: ["string", "null"], minLength: 0 });

const isBlank = (value: unknown): boolean =>
  typeof value === "string" && /^[\s\p{Default_Ignorable_Code_Point}]*$/u.test(value);

// The cursor of a list. Empty counts as absent: clients send what they have stored, and at first that is nothing.
export const cursor = (schema: z.ZodType<string>) =>
  z.preprocess((value) => (value === "" ? undefined : value), schema.optional()).meta({ minLength: 0 });

const gaps = /[\t-\r\u0085\u2028\u2029]+/g;

// Store and terminal in Variant A. They are never looked up, so no character is refused: tabs and line breaks become a
// space, other unprintable characters are left out. Then the text is trimmed, turned into NFC and limited in length.
// Blank counts as absent. NFC turns at most four characters, which have at most 8 units, into one. Longer texts are
// refused before that, because NFC takes a second for thousands of accents.
export const label = z
  .string()
  .transform((value, context) => {
    const text = replaceUnprintable(value.replace(gaps, " ")).trim();
    const short = text.length <= 8 * 64 ? text.normalize("NFC") : text;
    if (short.length <= 64 || [...short].length <= 64) return isBlank(short) ? undefined : short;
    context.addIssue({ code: "custom", message: "must be at most 64 characters" });
    return z.NEVER;
  })
  .meta({
    maxLength: 64,
    description: "Free text. Trimmed and without unprintable characters; empty text counts as absent.",
  });

// A query parameter, which arrives as text.
export const limit = z
  .string()
  .refine((value) => /^[1-9]\d{0,3}$/.test(value) && Number(value) <= 1_000, "must be an integer from 1 to 1000")
  .transform(Number)
  .meta({ type: "integer", minimum: 1, maximum: 1_000, description: "The most entries of a page; by default 100." });

// Whether a text is an existing day as YYYY-MM-DD.
export function isDate(value: string): boolean {
  const day = /^\d{4}-\d\d-\d\d$/.test(value) ? new Date(`${value}T00:00:00Z`) : new Date(NaN);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(value) && !value.startsWith("0000");
}

export const dateParameter = z.string().refine(isDate, "must be a date such as 2026-01-31").meta({ format: "date" });

export const eventType = z.enum(eventTypes, `must be one of ${eventTypes.join(", ")}`);

// A moment that the database can hold, in its one spelling: two spellings of a moment are the same value for a retry.
export const moment = timestamp
  .refine((value) => Date.parse(value) >= 0 && new Date(value).getUTCFullYear() < 9999, "must be after 1970")
  .transform((value) => new Date(value).toISOString());

export const coupon = z
  .string()
  .transform((value, context) => {
    const code = normalizeCode(value);
    if (code !== null) return code;
    context.addIssue({ code: "custom", message: "must be a code of 16 characters of Crockford Base32" });
    return z.NEVER;
  })
  .meta({
    minLength: 16,
    maxLength: 64,
    description:
      "The code: 16 characters of Crockford Base32. Hyphens of every kind, blanks, control and invisible characters " +
      "are dropped; full-width letters are read as plain ones, O as 0, I and L as 1.",
  });
