// The hash of a request body. Bodies with the same values have the same hash, whatever the order of their fields, their
// white space or the spelling of their numbers. The hash is all that the database keeps of a body. It is keyed, because
// a body may hold a coupon code.
import { subKeysOf, type MasterKeys } from "./keys.ts";

/**
 * Takes the validated body, with its code normalized, and ignores request_id. Returns 64 bits as hex digits; that is
 * enough, because a hash is compared only with the one hash recorded for the same request_id. `version` chooses another
 * key of the list, for a request that was recorded under that key.
 */
export function hashBody(keys: MasterKeys, values: Record<string, unknown>, version = keys.current): string {
  const { request_id: _, ...rest } = values;
  return subKeysOf(keys, version).request(canonicalJson(rest), "hex").slice(0, 16);
}

// JSON.stringify is slow for short texts, and most need no escapes.
const plain = /^[ !#-[\]-~]*$/;
const quote = (text: string) => (plain.test(text) ? `"${text}"` : JSON.stringify(text));

/** Writes the fields of objects in order and without white space. */
export function canonicalJson(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  // JSON.stringify turns a number beyond the range of a double into null.
  if (typeof value === "number") return String(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = value as Record<string, unknown>;
  let text = "";
  for (const name of Object.keys(fields).sort())
    if (fields[name] !== undefined) text += `${text === "" ? "" : ","}${quote(name)}:${canonicalJson(fields[name])}`;
  return `{${text}}`;
}
