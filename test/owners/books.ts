// The books that the story keeps: the rows that each report view must show. They follow from the requests of the story,
// from the IDs in their answers, and from the clock before and after each step. The database calculates none of them.

import type { Test } from "tap";

/** Between two readings of the database's clock, in seconds since 1970. */
export type Window = { from: number; to: number };
/** Values as text, null, or a time. Columns that a row does not name are null, or follow from others (reports.ts). */
export type Row = Record<string, any>;

export type Books = ReturnType<typeof openBooks>;

export function openBooks() {
  const views: Record<string, Row[]> = {};
  return {
    views,
    /** The rows of a view, in the order in which they came to be. */
    of: (view: string): Row[] => (views[view] ??= []),
    note(view: string, row: Row): Row {
      (views[view] ??= []).push(row);
      return row;
    },
    /** The outcomes of attempts to deliver. */
    outcomes: [] as string[],
  };
}

export const shift = ({ from, to }: Window, seconds: number): Window => ({ from: from + seconds, to: to + seconds });
export const moment = (text: string): Window => ({ from: Date.parse(text) / 1000, to: Date.parse(text) / 1000 });
export const first = (windows: Window[]): Window =>
  windows.reduce((one, other) => (other.from < one.from ? other : one));

/** The columns of a row with these names; "id=coupon" is the column coupon under the name id. */
export const pick = (row: Row, names: string): Row =>
  Object.fromEntries(
    names.split(/\s+/).map((pair) => {
      const [name, column = name] = pair.split("=") as [string, string?];
      return [name, row[column] ?? null];
    }),
  );

/** Compares values of which some are times or figures, each with the window in which it must be. */
export function compare(t: Test, seen: unknown, wanted: unknown, what: string): void {
  t.strictSame(readWindows(seen, wanted), wanted, what);
}

// Times in their window read as that window. Some readers show milliseconds only.
function readWindows(seen: any, wanted: any): unknown {
  if (typeof wanted?.from === "number") {
    const value = typeof seen === "number" ? seen : Date.parse(String(seen).replace(/\+00$/, "Z")) / 1_000;
    return value > wanted.from - 0.001 && value <= wanted.to + 0.001 ? wanted : seen;
  }
  if (typeof seen !== "object" || seen === null) return seen;
  const entries = Object.entries(seen).map(([key, value]) => [key, readWindows(value, wanted?.[key])] as const);
  return Array.isArray(seen) ? entries.map(([, value]) => value) : Object.fromEntries(entries);
}

export const decimalsOf: Record<string, number> = { EUR: 2, JPY: 0, BHD: 3 };

/** Minor units as a decimal number of major units: 1250 of a currency with three decimals is 1.250. */
export function major(minor: number, currency: string): string {
  const decimals = decimalsOf[currency]!;
  const digits = String(Math.abs(minor)).padStart(decimals + 1, "0");
  const text = decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
  return minor < 0 ? `-${text}` : text;
}

/** The reverse of major. */
export const minorOf = (amount: string): number => Number(amount.replace(".", ""));

/** The UUID of an external ID: after the prefix, 26 digits of Crockford Base32, lower case. */
export function uuidOf(id: string): string {
  let value = 0n;
  for (const digit of id.slice(id.indexOf("_") + 1))
    value = value * 32n + BigInt("0123456789abcdefghjkmnpqrstvwxyz".indexOf(digit));
  const digits = value.toString(16).padStart(32, "0");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The same key under another prefix: the ledger entry and the event of a redemption have its key. */
export const sameKey = (prefix: string, id: string): string => prefix + id.slice(id.indexOf("_"));
