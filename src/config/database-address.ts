// How to reach a database, and the one place that reads and writes connection URLs. The settings use it to refuse a bad
// DATABASE_URL before anything starts.
import { isIPv6 } from "node:net";

/** `host` is a host name, an IP address or the folder of a socket. For undefined fields the driver's defaults apply. */
export interface Address {
  host: string;
  port: number;
  user?: string;
  password?: string;
  database?: string;
  /** The other parameters of the URL, such as sslmode. */
  parameters?: Record<string, string>;
}

/**
 * Reads postgres://user:password@host:port/database?name=value. Returns null if `text` has another form. A host or port
 * among the parameters takes precedence; a URL names a unix socket that way
 * (postgres://user@/database?host=/run/postgresql). The login ends at the last @ before the parameters, so a password
 * may contain an unescaped / or #.
 */
export function parseUrl(text: string): Address | null {
  const parts = /^postgres(?:ql)?:\/\/(?:([^?]*)@)?(\[[^\]/?]*\]|[^:/?]*)(?::(\d*))?(?:\/([^?]*))?(?:\?(.*))?$/s.exec(
    text,
  );
  if (parts === null) return null;
  const [, login, hostName = "", portText, databaseName, query] = parts;
  const colon = login?.indexOf(":") ?? -1;
  const [user, password] = colon === -1 ? [login] : [login!.slice(0, colon), login!.slice(colon + 1)];
  try {
    const { host, port, ...parameters } = Object.fromEntries(new URLSearchParams(query));
    const address = {
      host: host || decodeURIComponent(hostName).replace(/^\[(.*)\]$/, "$1") || "localhost",
      port: Number(port || portText || 5432),
      ...(user && { user: decodeURIComponent(user) }),
      ...(password && { password: decodeURIComponent(password) }),
      ...(databaseName && { database: decodeURIComponent(databaseName) }),
      ...(Object.keys(parameters).length > 0 && { parameters }),
    };
    return Number.isInteger(address.port) && address.port > 0 && address.port < 65_536 ? address : null;
  } catch {
    return null;
  }
}

/** Writes the URL of `address`, which libpq, psql and every driver read alike. */
export function formatUrl({ host, port, user, password, database = "", parameters = {} }: Address): string {
  // The drivers disagree about brackets around an IPv6 address.
  const isInQuery = isSocketFolder(host) || isIPv6(host);
  const login = [user ?? "", ...(password === undefined ? [] : [password])].map(encode).join(":");
  const place = isInQuery ? "" : `${host}:${port}`;
  const query = Object.entries({ ...(isInQuery && { host, port: String(port) }), ...parameters })
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .join("&");
  return `postgres://${login && `${login}@`}${place}/${encode(database)}${query && `?${query}`}`;
}

export function isSocketFolder(host: string): boolean {
  return host.startsWith("/");
}

const encode = encodeURIComponent;
