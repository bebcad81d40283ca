// A call's body as text, plain or in another spelling of the same values.
import type { Call } from "./model.ts";

export function spell({ requestId, values }: Pick<Call, "requestId" | "values">): string {
  return JSON.stringify({ request_id: requestId, ...values });
}

// Other order, other numbers, the code as people type it, blanks wherever they do not count.
export function respell({ requestId, values }: Call): string {
  const { coupon, store, ...rest } = values;
  return write({
    ...rest,
    ...(store !== undefined && { store: isFreeText(store) ? `  ${store.normalize("NFD")} ` : store }),
    ...(typeof coupon === "string" && { coupon: retype(coupon) }),
    request_id: requestId,
  });
}

// Registered stores are looked up as they are written.
function isFreeText(store: unknown): store is string {
  return typeof store === "string" && !/^S\d$/.test(store);
}

export function retype(code: string): string {
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
