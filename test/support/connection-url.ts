// An address as programs take it in DATABASE_URL.
import type { Address } from "../../src/database/connect.ts";

export function connectionUrl(address: Address): string {
  if ("url" in address) return address.url;
  const { host, port, user, database, password } = address;
  const login = [user, password]
    .filter((part) => part !== undefined)
    .map(encodeURIComponent)
    .join(":");
  // The path of a unix socket goes into the query.
  return host.startsWith("/")
    ? `postgres://${login}@/${database}?host=${encodeURIComponent(host)}&port=${port}`
    : `postgres://${login}@${host}:${port}/${database}`;
}
