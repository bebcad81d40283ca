// The addresses that a webhook may be sent to. A subscriber chooses the URL and this service connects to it. Without
// this rule, anyone who may set a webhook could reach our neighbours, from loopback to the cloud's metadata service.
//
// The rule checks addresses in the lookup of the connection itself, so no second lookup can return other addresses.
// A host is refused if any of its addresses is refused.
//
// Addresses are compared as numbers in one 128-bit space, IPv4 at ::ffff:0:0/96, so different notations need no rules.
import { Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { isIP, type LookupFunction } from "node:net";
import { AttemptFailure, noAddress } from "./attempt-failure.ts";

export type AddressRule = (address: string) => boolean;
/** Returns all addresses of a host name. */
export type Resolve = (hostname: string) => Promise<string[]>;

type Block = { first: bigint; bits: number };

const ipv4 = block("::ffff:0:0/96");
// IPv4 addresses in networks that have only IPv6 (RFC 6052). The embedded IPv4 address is checked.
const nat64 = block("64:ff9b::/96");

// Only public IPv6 is allowed, so unassigned ranges are refused as well. This refuses ::, ::1,
// IPv4-compatible addresses, 64:ff9b:1::/48, fc00::/7, fe80::/10, fec0::/10 and ff00::/8.
const publicIpv6 = block("2000::/3");

const refused = [
  "0.0.0.0/8", // this network
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16", // private
  "100.64.0.0/10", // carrier-grade NAT
  "127.0.0.0/8", // loopback
  "169.254.0.0/16", // link-local, metadata services
  "192.0.0.0/24", // protocol assignments
  "192.0.2.0/24",
  "198.51.100.0/24",
  "203.0.113.0/24", // documentation
  "192.88.99.0/24", // 6to4 relays
  "198.18.0.0/15", // benchmarks
  "224.0.0.0/4",
  "240.0.0.0/4", // multicast; reserved and broadcast
  "2001::/23", // protocol assignments, with Teredo (2001::/32) and benchmarks (2001:2::/48)
  "2001:db8::/32",
  "3fff::/20", // documentation
  "2002::/16", // 6to4, with any IPv4 address inside: it is obsolete
].map(block);

/** `allow` lists CIDRs that are allowed although they are not public (WEBHOOK_ALLOW). */
export function createAddressRule(allow: readonly string[] = []): AddressRule {
  const allowed = allow.map(block);
  return (address) => {
    // A zone (fe80::1%eth0) names the interface and does not matter here.
    const number = toNumber(address.replace(/%.*/s, ""));
    return number !== null && (allowed.some((one) => contains(one, number)) || isPublic(number));
  };
}

function refuse(hostname: string, address: string): AttemptFailure {
  return new AttemptFailure(
    hostname === address
      ? `refused: ${address} is not a public address`
      : `refused: ${hostname} has ${address}, which is not a public address`,
    "refused: the address of the receiver is not public",
  );
}

/** The lookup function of a connection. Node calls it for names only; checkLiteral covers literal addresses. */
export function createLookup(mayConnect: AddressRule, resolve: Resolve): LookupFunction {
  return (hostname, options, callback) => {
    const answer = (addresses: string[]) => {
      const found = addresses.map((address) => ({ address, family: isIP(address) }));
      const bad = found.find(({ address }) => !mayConnect(address));
      if (bad !== undefined) callback(refuse(hostname, bad.address), []);
      else if (found[0] === undefined) callback(new AttemptFailure(`${hostname} has no address`, noAddress), []);
      else if (options.all) callback(null, found);
      else callback(null, found[0].address, found[0].family);
    };
    void resolve(hostname).then(answer, (error: Error) => callback(error, []));
  };
}

/** Throws if the host is a literal address that is refused. Node never looks up literal addresses. */
export function checkLiteral(mayConnect: AddressRule, host: string): void {
  if (isIP(host) !== 0 && !mayConnect(host)) throw refuse(host, host);
}

/**
 * Asks the hosts file, then the DNS. The system's resolver has only four threads, so a few dead name servers would
 * delay all deliveries. The price is that search domains do not apply, so names must be fully qualified. Each lookup
 * reads the name servers of the machine again, because a resolver keeps those that it was made with.
 */
export const resolveHost: Resolve = async (hostname) => {
  const name = hostname.replace(/\.$/, "");
  const listed = findInHosts(await readFile("/etc/hosts", "utf8").catch(() => ""), name);
  if (listed.length > 0) return listed;
  const resolver = new Resolver({ timeout: 3_000, tries: 2 });
  return joinAnswers(await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]));
};

/** Returns the IPv4 and IPv6 addresses that were found. Fails only if there is none and a lookup failed. */
export function joinAnswers(answers: PromiseSettledResult<string[]>[]): string[] {
  const found = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  const failed = answers.find((answer) => answer.status === "rejected");
  if (found.length === 0 && failed !== undefined) throw failed.reason;
  return found;
}

/** Returns the addresses of a name, which is in lower case, from the text of a hosts file. */
export function findInHosts(text: string, name: string): string[] {
  const lines = text.split("\n").map((line) => line.replace(/#.*/, "").trim().split(/\s+/));
  return lines
    .filter(([, ...names]) => names.some((one) => one.toLowerCase() === name))
    .map(([address = ""]) => address);
}

function isPublic(number: bigint): boolean {
  const address = contains(nat64, number) ? ipv4.first | BigInt.asUintN(32, number) : number;
  return (contains(ipv4, address) || contains(publicIpv6, address)) && !refused.some((one) => contains(one, address));
}

function contains({ first, bits }: Block, number: bigint): boolean {
  const rest = BigInt(128 - bits);
  return first >> rest === number >> rest;
}

function block(cidr: string): Block {
  const [address = "", bits] = cidr.split("/");
  const first = toNumber(address);
  if (first === null) throw new Error(`${cidr} is not a CIDR`);
  return { first, bits: Number(bits) + (isIP(address) === 4 ? 96 : 0) };
}

function toNumber(address: string): bigint | null {
  if (isIP(address) === 4) {
    const [a, b, c, d] = address.split(".").map(BigInt) as [bigint, bigint, bigint, bigint];
    return (0xffffn << 32n) | (a << 24n) | (b << 16n) | (c << 8n) | d;
  }
  if (isIP(address) !== 6) return null;
  // The URL parser writes hexadecimal groups and omits at most one run of zeros.
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const [before, after] = [groups(head), groups(tail ?? "")];
  const zeros = Array<string>(tail === undefined ? 0 : 8 - before.length - after.length).fill("0");
  return [...before, ...zeros, ...after].reduce((number, group) => (number << 16n) | BigInt(`0x${group}`), 0n);
}

function groups(text: string): string[] {
  return text === "" ? [] : text.split(":");
}
