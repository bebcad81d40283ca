// The body hash: two requests with the same values have the same hash, whatever the order of their fields, their
// spaces, or how a number is written. It is keyed, because the body holds a code, and it is all the database keeps of it.
import { createHmac } from "node:crypto";
import { subKeysOf, type MasterKeys } from "./keys.ts";

// Takes the validated body (code normalized) with request_id left out. 64 bits as hex digits: only ever compared with the one hash recorded for a request id.
export function hashBody(keys: MasterKeys, values: Record<string, unknown>): string {
  const { request_id: _, ...rest } = values;
  return createHmac("sha256", subKeysOf(keys, keys.oldest).request)
    .update(canonicalJson(rest))
    .digest("hex")
    .slice(0, 16);
}

export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, field]) => `${JSON.stringify(name)}:${canonicalJson(field)}`);
  return `{${fields.join(",")}}`;
}
