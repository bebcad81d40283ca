// The body of a call as text: as a client usually writes it, or in another notation of the same values.
import type { Call } from "./call.ts";

export function writeBody({ requestId, values }: Pick<Call, "requestId" | "values">): string {
  return JSON.stringify({ request_id: requestId, ...values });
}

// Changes the order of the fields, the notation of numbers and codes, and insignificant white space.
export function writeBodyDifferently({ requestId, values }: Call): string {
  const { coupon, store, ...rest } = values;
  return write({
    ...rest,
    ...(store !== undefined && { store: isFreeText(store) ? `  ${store.normalize("NFD")} ` : store }),
    ...(typeof coupon === "string" && { coupon: retype(coupon) }),
    request_id: requestId,
  });
}

// Variant B finds registered stores by their exact text.
function isFreeText(store: unknown): store is string {
  return typeof store === "string" && !/^S\d$/.test(store);
}

function retype(code: string): string {
  return code
    .toLowerCase()
    .replaceAll("1", "l")
    .replaceAll("0", "o")
    .replace(/.{4}(?!$)/g, "$&-");
}

function write(value: unknown): string {
  if (Array.isArray(value)) return `[ ${value.map(write).join(" , ")} ]`;
  if (typeof value === "number") return String(value).includes(".") ? `${value}00` : `${value}.0e0`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{ ${Object.entries(value)
    .reverse()
    .map(([name, field]) => `${JSON.stringify(name)} : ${write(field)}`)
    .join(" ,\n")} }`;
}
