// All settings of the service. Nothing else reads the environment. A wrong value is refused here, before anything
// starts.
import { readFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { type Address, parseUrl } from "./database-address.ts";
import { readConsole, type ConsoleConfig } from "./console.ts";
import { ConfigError, createCountReader, type Read } from "./read.ts";
import { findMisspelt } from "./misspelt.ts";

export { ConfigError } from "./read.ts";

export interface Config {
  port: number;
  host: string;
  /** DATABASE_URL and PGPASSWORD. null: the embedded server in `dataDir`. */
  address: Address | null;
  dataDir: string;
  /** The unparsed COUPON_MASTER_KEY. Only programs that use keys parse it. */
  masterKeyText: string | null;
  /** Private networks (CIDRs) that webhooks may reach. */
  webhookAllow: string[];
  requestRetentionDays: number;
  deliveryLogRetentionDays: number;
  feedRetentionDays: number;
  logLevel: string;
  limits: Limits;
  /** Whether to serve the API description and its page. */
  docs: boolean;
  /** null: the program serves no metrics. */
  metricsPort: number | null;
  metricsHost: string;
  console: ConsoleConfig;
}

/** Limits per process: n processes allow n times as much. Some are settings, see readLimits. */
export interface Limits {
  bodyBytes: number;
  headerBytes: number;
  /** The longest time from the first byte of a request to the last byte of its head. */
  headersTimeoutSeconds: number;
  /** The longest time from the first byte of a request to the last byte of its body. */
  requestTimeoutSeconds: number;
  keepAliveTimeoutSeconds: number;
  connections: number;
  /** Requests in progress at the same time. */
  openRequests: number;
  /** Files of codes that are sent at the same time. A tenant may have half. */
  exports: number;
  /** Per credential; null: no limit. */
  requestsPerSecond: number | null;
  /** What a credential may send at once: one second's worth. */
  requestBurst: number;
  /** Per credential: codes with a wrong tag, and as many codes of no coupon; null: no limit. */
  wrongCodesPerMinute: number | null;
}

const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"];

export function readConfig(env: Record<string, string | undefined> = process.env): Config {
  // An empty value counts as absent, because compose files pass unset variables that way.
  const read: Read = (name) => env[name]?.trim() || null;
  const count = createCountReader(read);

  return {
    port: count("PORT", 8080, 0, 65_535),
    host: read("HOST") ?? "127.0.0.1",
    address: readAddress(read("DATABASE_URL"), env["PGPASSWORD"]),
    dataDir: readDataDir(read("DATA_DIR") ?? ".data"),
    masterKeyText: read("COUPON_MASTER_KEY"),
    webhookAllow: readCidrs(read("WEBHOOK_ALLOW") ?? ""),
    requestRetentionDays: count("REQUEST_RETENTION_DAYS", 90, 1, 36_500),
    deliveryLogRetentionDays: count("DELIVERY_LOG_RETENTION_DAYS", 30, 1, 36_500),
    feedRetentionDays: count("FEED_RETENTION_DAYS", 400, 1, 36_500),
    logLevel: readLogLevel(read("LOG_LEVEL") ?? "info"),
    limits: readLimits(read),
    docs: readDocs(read("DOCS") ?? "on"),
    // equivalent mutant (literal 0): METRICS_PORT has a value here
    metricsPort: read("METRICS_PORT") === null ? null : count("METRICS_PORT", 0, 0, 65_535),
    metricsHost: read("METRICS_HOST") ?? "127.0.0.1",
    console: readConsole(read),
  };
}

/** The secrets of a webhook, for `webhooks -- listen`: an argument would be visible to other users of the machine. */
export function readWebhookSecrets(env: Record<string, string | undefined> = process.env): string[] {
  const secrets = (env["WEBHOOK_SECRET"] ?? "").split(/\s+/).filter((part) => part !== "");
  if (secrets.length === 0 || !secrets.every((secret) => /^whsec_[A-Za-z0-9+/]+={0,2}$/.test(secret)))
    throw new ConfigError(
      "WEBHOOK_SECRET must hold the secret of the webhook (whsec_…), or several with spaces between",
    );
  return secrets;
}

/** The secret of a credential, for `sign`. It is not trimmed, because each of its bytes counts. */
export function readCredentialSecret(env: Record<string, string | undefined> = process.env): string {
  const secret = env["CREDENTIAL_SECRET"] ?? "";
  if (/\p{Cc}/u.test(secret) || secret.length < 32 || secret.length > 256)
    throw new ConfigError("CREDENTIAL_SECRET must hold the secret of the credential: 32 to 256 printable characters");
  return secret;
}

/** The cell of `coupon cells`: an argument would show its password to other users of the machine. */
export const readCellUrl = (env: Record<string, string | undefined> = process.env) =>
  readServerUrl("CELL_URL", env["CELL_URL"]);

/** Where the reports of that cell are read. null: nowhere. */
export const readCellReportUrl = (env: Record<string, string | undefined> = process.env) =>
  env["CELL_REPORT_URL"]?.trim() ? readServerUrl("CELL_REPORT_URL", env["CELL_REPORT_URL"]) : null;

function readServerUrl(name: string, text = ""): Address & { user: string } {
  const { user, ...address } = parseUrl(text.trim()) ?? { host: "", port: 0 };
  if (user === undefined)
    throw new ConfigError(`${name} must be a URL such as postgres://user:password@host:5432/database`);
  return { ...address, user };
}

/** Sentences about variables that are probably misspelt settings. */
export const listMisspelt = (env: Record<string, string | undefined> = process.env): string[] => findMisspelt(env);

/** The npm script that runs this program; null if no script does. A program that npm started passes this on. */
export const readNpmScript = (): string | null => process.env["npm_lifecycle_event"] ?? null;

export const defaultLimits: Limits = readLimits(() => null);

function readLimits(read: Read): Limits {
  const count = createCountReader(read);
  const requestsPerSecond = count("RATE_LIMIT", 0, 0, 1_000_000);
  return {
    bodyBytes: 65_536,
    headerBytes: 16_384,
    headersTimeoutSeconds: 10,
    requestTimeoutSeconds: 30,
    keepAliveTimeoutSeconds: count("KEEP_ALIVE_TIMEOUT_SECONDS", 65, 1, 3_600),
    connections: count("MAX_CONNECTIONS", 5_000, 1, 1_000_000),
    openRequests: 2_000,
    exports: 8,
    requestsPerSecond: requestsPerSecond || null,
    requestBurst: requestsPerSecond || 1,
    wrongCodesPerMinute: count("WRONG_CODE_LIMIT", 60, 0, 10_000) || null,
  };
}

// A password in PGPASSWORD may hold any character. A password in the URL takes precedence.
function readAddress(text: string | null, password: string | undefined): Address | null {
  const address = text === null ? null : parseUrl(text);
  if (text !== null && address === null) {
    // The message does not repeat the value, which may hold a password.
    throw new ConfigError("DATABASE_URL must be a URL such as postgres://user:password@host:5432/database");
  }
  if (address !== null) {
    checkTls(address);
    // libpq has more values. Each of our programs writes, so each of them needs the server that takes writes.
    const { target_session_attrs: target = "read-write" } = address.parameters ?? {};
    if (target !== "read-write" && target !== "primary")
      throw new ConfigError("DATABASE_URL: target_session_attrs must be read-write or primary");
  }
  // The driver of graphile-worker does not decode these characters in the name of a database.
  if (/[;/?:@&=+$,#]/.test(address?.database ?? ""))
    throw new ConfigError("DATABASE_URL: the name of the database must not contain any of ; / ? : @ & = + $ , #");
  return address === null || !password ? address : { password, ...address };
}

const tlsModes = ["disable", "require", "verify-ca", "verify-full"];

// The drivers support fewer parameters than libpq, and one of them would send an unknown one to the server.
function checkTls({ parameters = {} }: Address): void {
  const { sslmode, sslrootcert } = parameters;
  const isTls = (name: string) => /^(ssl|channel_binding)/.test(name);
  const other = Object.keys(parameters).find((name) => isTls(name) && !/^ssl(mode|rootcert)$/.test(name));
  if (other !== undefined)
    throw new ConfigError(`DATABASE_URL: ${other} is not supported; for TLS, use sslmode and sslrootcert`);
  if (sslmode !== undefined && !tlsModes.includes(sslmode))
    throw new ConfigError(`DATABASE_URL: sslmode must be one of ${tlsModes.join(", ")}`);
  if (sslrootcert === undefined) return;
  if (!sslmode?.startsWith("verify-"))
    throw new ConfigError("DATABASE_URL: sslrootcert needs sslmode=verify-ca or sslmode=verify-full");
  // Node treats an empty text as absent, and would then trust every public authority.
  if (!readText(sslrootcert).includes("-----BEGIN CERTIFICATE-----"))
    throw new ConfigError("DATABASE_URL: the file sslrootcert cannot be read or has no certificate");
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function readDataDir(text: string): string {
  // The folder may be relative. PostgreSQL writes its path into files of lines.
  const folder = path.resolve(text);
  if (/[\r\n]/.test(folder)) throw new ConfigError("DATA_DIR must be a path without a line break");
  return folder;
}

function readCidrs(text: string): string[] {
  const cidrs = text.split(/[\s,]+/).filter((part) => part !== "");
  for (const cidr of cidrs) {
    const [address = "", bits = "", ...rest] = cidr.split("/");
    const version = net.isIP(address);
    // A zone (fe80::1%eth0) is not part of an address. An IPv4 address in IPv6 has 96 bits before it: with fewer, as in
    // ::ffff:10.0.0.0/8, the range would hold all of IPv4.
    const least = version === 6 && isMapped(address) ? 96 : 0;
    const isValid =
      version !== 0 &&
      !address.includes("%") &&
      rest.length === 0 &&
      /^\d{1,3}$/.test(bits) &&
      Number(bits) >= least &&
      Number(bits) <= (version === 4 ? 32 : 128);
    if (!isValid) {
      throw new ConfigError(`WEBHOOK_ALLOW must list CIDRs such as 10.0.0.0/8, not "${cidr}"`);
    }
  }
  return cidrs;
}

// The URL parser knows every spelling, and writes hexadecimal groups. It knows no zones.
function isMapped(address: string): boolean {
  return /^\[::ffff:[^:]+:[^:]+\]$/.test(new URL(`http://[${address.replace(/%.*/s, "")}]`).hostname);
}

function readDocs(text: string): boolean {
  if (text !== "on" && text !== "off") throw new ConfigError(`DOCS must be on or off, not "${text}"`);
  return text === "on";
}

function readLogLevel(text: string): string {
  if (!logLevels.includes(text)) {
    throw new ConfigError(`LOG_LEVEL must be one of ${logLevels.join(", ")}, not "${text}"`);
  }
  return text;
}
