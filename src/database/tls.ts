// TLS to the database. The two drivers read sslmode differently, so neither gets it: both get options of Node's TLS.
import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import { type Address, isSocketFolder } from "../config/database-address.ts";

const authorities = new Map<string, string>();

/**
 * What the parameters of the URL mean in libpq: `require` encrypts, `verify-ca` also checks the certificate, and
 * `verify-full` also the host's name in it. Without `sslrootcert`, the certificate authorities that Node trusts apply.
 */
export function readTls({ host, parameters = {} }: Address): false | ConnectionOptions {
  const { sslmode = "disable", sslrootcert } = parameters;
  if (sslmode === "disable" || isSocketFolder(host)) return false;
  if (sslmode === "require") return { rejectUnauthorized: false };
  return {
    // For an IP address, Node would otherwise look for `localhost` in the certificate.
    host,
    ...(sslrootcert !== undefined && { ca: readAuthority(sslrootcert) }),
    ...(sslmode === "verify-ca" && { checkServerIdentity: () => undefined }),
  };
}

export function withoutTls(address: Address): Address {
  const { sslmode: _, sslrootcert: __, ...parameters } = address.parameters ?? {};
  return { ...address, parameters };
}

// Each file is read once, so a file that disappears later stops no program.
function readAuthority(file: string): string {
  const known = authorities.get(file) ?? readFileSync(file, "utf8");
  authorities.set(file, known);
  return known;
}
