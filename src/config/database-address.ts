// How to reach a database, and the one place that reads and writes connection URLs. The settings use it to refuse a bad
// DATABASE_URL before anything starts.
import { isIPv6 } from "node:net";

/** `host` is a host name, an IP address or the folder of a socket. */
export type Server = { host: string; port: number };

/** For undefined fields the driver's defaults apply. */
export interface Address extends Server {
  /** Further servers of the same cluster. One of all takes writes, and that one is meant. */
  others?: Server[];
  user?: string;
  password?: string;
  database?: string;
  /** The other parameters of the URL, such as sslmode. */
  parameters?: Record<string, string>;
}

/**
 * Reads postgres://user:password@host:port/database?name=value, with commas between several host:port. Returns null if
 * `text` has another form. Hosts or ports among the parameters take precedence; a URL names a unix socket that way
 * (postgres://user@/database?host=/run/postgresql). The login ends at the last @ before the parameters, so a password
 * may contain an unescaped / or #.
 */
export function parseUrl(text: string): Address | null {
  const parts = /^postgres(?:ql)?:\/\/(?:([^?]*)@)?([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(text);
  if (parts === null) return null;
  const [, login, placesText = "", databaseName, query] = parts;
  const colon = login?.indexOf(":") ?? -1;
  const [user, password] = colon === -1 ? [login] : [login!.slice(0, colon), login!.slice(colon + 1)];
  try {
    const { host, port, ...parameters } = Object.fromEntries(new URLSearchParams(query));
    return {
      ...parsePlaces(placesText, host, port),
      ...(user && { user: decodeURIComponent(user) }),
      ...(password && { password: decodeURIComponent(password) }),
      ...(databaseName && { database: decodeURIComponent(databaseName) }),
      ...(Object.keys(parameters).length > 0 && { parameters }),
    };
  } catch {
    return null;
  }
}

// Throws if the text has another form. One port among the parameters is for every host.
function parsePlaces(text: string, hosts?: string, ports?: string): Pick<Address, "host" | "port" | "others"> {
  const written = text.split(",").map((one) => /^(\[[^\]]*\]|[^:]*)(?::(\d*))?$/.exec(one)!);
  const hostList = hosts ? hosts.split(",") : written.map(([, host]) => decodeURIComponent(host!));
  const portList = ports ? ports.split(",") : written.map(([, , port]) => port);
  if (portList.length !== 1 && portList.length !== hostList.length) throw new Error("not a port for each host");
  if (hostList.length > 1 && hostList.includes("")) throw new Error("a host is missing");
  const [place, ...others] = hostList.map((name, index) => {
    const port = Number((portList.length === 1 ? portList[0] : portList[index]) || 5432);
    if (!Number.isInteger(port) || port <= 0 || port >= 65_536) throw new Error("not a port");
    return { host: name.replace(/^\[(.*)\]$/, "$1") || "localhost", port };
  });
  return { ...place!, ...(others.length > 0 && { others }) };
}

/** Host and port of an address as libpq names several: with commas. */
export function joinPlaces({ host, port, others = [] }: Address): { host: string; port: string } {
  const places = [{ host, port }, ...others];
  return { host: places.map((one) => one.host).join(), port: places.map((one) => one.port).join() };
}

/** Reads options of libpq. Of those that are no address, it keeps what says which server to trust and to choose. */
export function readOptions({ host, port, dbname, user, password, ...more }: Record<string, string>): Address {
  const known = ["sslmode", "sslrootcert", "target_session_attrs"].filter((name) => more[name] !== undefined);
  return {
    ...parsePlaces("", host, port),
    ...(user !== undefined && { user }),
    ...(password !== undefined && { password }),
    ...(dbname !== undefined && { database: dbname }),
    ...(known.length > 0 && { parameters: Object.fromEntries(known.map((name) => [name, more[name]!])) }),
  };
}

/** Writes the URL of `address`, which libpq and psql read alike. With one host, every driver does. */
export function formatUrl({ host, port, others = [], user, password, database = "", parameters }: Address): string {
  const places = [{ host, port }, ...others];
  // The drivers disagree about brackets around an IPv6 address.
  const isInQuery = places.some((one) => isSocketFolder(one.host) || isIPv6(one.host));
  const login = [user ?? "", ...(password === undefined ? [] : [password])].map(encode).join(":");
  const place = isInQuery ? "" : places.map((one) => `${one.host}:${one.port}`).join();
  const listed = joinPlaces({ host, port, others });
  const query = Object.entries({ ...(isInQuery && listed), ...parameters })
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .join("&");
  return `postgres://${login && `${login}@`}${place}/${encode(database)}${query && `?${query}`}`;
}

/** The servers of an address, each as an address with one host that means just this server. */
export function listServers({ host, port, others = [], parameters, ...login }: Address): Address[] {
  const { target_session_attrs: _, ...rest } = parameters ?? {};
  return [{ host, port }, ...others].map((place) => ({ ...login, ...place, parameters: rest }));
}

/** Whether a connection must look for the server that takes writes. */
export const isSought = ({ others, parameters }: Address): boolean =>
  others !== undefined || parameters?.["target_session_attrs"] !== undefined;

export function isSocketFolder(host: string): boolean {
  return host.startsWith("/");
}

const encode = encodeURIComponent;
