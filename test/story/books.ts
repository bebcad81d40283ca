// The books that the story keeps of what it does: plain data, written from its own requests, from the IDs in their
// answers, and from the clock before and after each step. Views and metrics are then compared with figures that follow
// from these books. Nothing in them is calculated by the database.

/** Between two readings of the database's clock, in seconds since 1970. */
export type Window = { from: number; to: number };
/** A value as text, null, or a time. */
export type Cell = string | null | Window;
export type Row = Record<string, Cell>;
/** The rows of each view. */
export type Expected = Record<string, Row[]>;

export const shift = ({ from, to }: Window, seconds: number): Window => ({ from: from + seconds, to: to + seconds });
export const moment = (text: string): Window => ({ from: Date.parse(text) / 1000, to: Date.parse(text) / 1000 });
export const first = (windows: Window[]): Window =>
  windows.reduce((one, other) => (other.from < one.from ? other : one));

export type Tenant = {
  id: string;
  // Its internal key.
  number: number;
  variant: "A" | "B";
  unit: "major" | "minor";
  // The currency of tpl_second.
  foreign: "JPY" | "BHD";
  // The discount of tpl_fixed.
  fixedMinor: number;
  document: any;
  appliedAt: Window;
};
export type Batch = {
  tenant: Tenant;
  id: string;
  template: string;
  distributor: string;
  currency: string;
  status: "PENDING" | "COMPLETED" | "ALLOCATED";
  total: number;
  minted: number;
  leasedUntil: Window | null;
  createdAt: Window;
  mintedAt: Window | null;
  completedAt: Window | null;
  allocatedAt: Window | null;
  destroyedAt: Window | null;
};
export type Coupon = {
  batch: Batch;
  id: string;
  code: string;
  number: number;
  status: string;
  stored: string;
  validTo: Window;
  live: Redemption | null;
};
export type Redemption = {
  coupon: Coupon;
  id: string;
  merchant: string;
  caller: string | null;
  lockRequestId: string;
  discountMinor: number;
  orderMinor: number | null;
  store: string | null;
  terminal: string | null;
  orderId: string | null;
  status: string;
  stored: string;
  startedAt: Window;
  expiresAt: Window | null;
  redeemedAt: Window | null;
  endedAt: Window | null;
  reversal: string | null;
  reason: string | null;
};
export type Entry = {
  redemption: Redemption;
  // The redemption's ID or the reversal's.
  id: string;
  type: "REDEMPTION" | "REVERSAL";
  minor: number;
  occurredAt: Window;
  recordedAt: Window;
  // The business day it is posted to; null: the sequencer has not seen it yet.
  date: string | null;
  number: number | null;
};
export type Event = {
  tenant: Tenant;
  // In the order in which they happened.
  seq: number;
  type: string;
  party: string;
  batch: Batch | null;
  coupon: Coupon | null;
  // Of a redemption or a reversal: the entry, whose ID is the event's.
  entry: Entry | null;
  date: string | null;
  occurredAt: Window;
  recordedAt: Window;
};
export type Voiding = {
  coupon: Coupon;
  merchant: string | null;
  caller: string | null;
  reason: string | null;
  at: Window;
};
export type Request = {
  tenant: Tenant;
  caller: string | null;
  requestId: string;
  key: string | null;
  // Of a retry that was found by its key.
  firstRequestId: string | null;
  operation: string;
  status: number;
  response: string;
  at: Window;
};
// An answer over HTTP, as its client saw it.
export type Answered = { operation: string; status: number; code: string; seconds: number };
export type Audit = {
  tenant: Tenant;
  action: string;
  target: string;
  reason: string | null;
  details: string;
  at: Window;
};
export type Statement = {
  tenant: Tenant;
  distributor: string;
  date: string;
  closedAt: Window;
  readyAt: Window | null;
  entries: Entry[];
  isOneOfSeveral: boolean;
  files: Record<"detail" | "summary", { bytes: number; sha256: string; text: string }> | null;
};
export type Webhook = {
  tenant: Tenant;
  party: string;
  url: string;
  disabledAt: Window | null;
  pausedUntil: Window | null;
  rotatedAt: Window | null;
};
export type Delivery = {
  webhook: Webhook;
  event: Event;
  attempts: number;
  nextAttemptAt: Window;
  parkedAt: Window | null;
  lastError: string | null;
};
export type Attempt = {
  webhook: Webhook;
  event: Event;
  attempt: number;
  status: number | null;
  error: string | null;
  outcome: "taken" | "failed" | "parked" | "gone";
  durationMs: number;
  at: Window;
};

export type Books = ReturnType<typeof openBooks>;

export function openBooks() {
  return {
    tenants: [] as Tenant[],
    batches: [] as Batch[],
    coupons: [] as Coupon[],
    redemptions: [] as Redemption[],
    entries: [] as Entry[],
    events: [] as Event[],
    voidings: [] as Voiding[],
    requests: [] as Request[],
    answers: [] as Answered[],
    audits: [] as Audit[],
    statements: [] as Statement[],
    webhooks: [] as Webhook[],
    // Those that were not taken.
    deliveries: [] as Delivery[],
    attempts: [] as Attempt[],
    revoked: new Map<string, Window>(),
    keyRegisteredAt: { from: 0, to: 0 } as Window,
  };
}

const decimalsOf: Record<string, number> = { EUR: 2, JPY: 0, BHD: 3 };

/** Minor units as a decimal number of major units: 1250 of a currency with three decimals is 1.250. */
export function major(minor: number, currency: string): string {
  const decimals = decimalsOf[currency]!;
  const digits = String(Math.abs(minor)).padStart(decimals + 1, "0");
  const text = decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
  return minor < 0 ? `-${text}` : text;
}

/** An amount as the tenant sends and gets it. */
export const amount = ({ unit }: Tenant, minor: number, currency: string): string =>
  unit === "minor" ? String(minor) : major(minor, currency);

/** The UUID of an external ID: after the prefix, 26 digits of Crockford Base32, lower case. */
export function uuidOf(id: string): string {
  let value = 0n;
  for (const digit of id.slice(id.indexOf("_") + 1))
    value = value * 32n + BigInt("0123456789abcdefghjkmnpqrstvwxyz".indexOf(digit));
  return value
    .toString(16)
    .padStart(32, "0")
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The same key under another prefix: the ledger entry and the event of a redemption have its key. */
export const sameKey = (prefix: string, id: string): string => prefix + id.slice(id.indexOf("_"));
