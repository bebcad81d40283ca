// Parses JSON more strictly than JSON.parse. Refuses invalid UTF-8, duplicate keys (readers disagree about which one
// counts), the key __proto__ (zod drops it, so different bodies would count as equal), deep nesting, and characters
// that PostgreSQL cannot store. Skips a byte order mark. Messages name line and column, and never quote the text: it
// may contain a code or a secret.
import { findJsonError } from "../formats/json-error.ts";
import { invalid } from "./problem.ts";

// Bounds the depth of recursion in functions that visit a value.
const maxDepth = 32;
// Skips a byte order mark.
const decoder = new TextDecoder("utf-8", { fatal: true });

/** The message continues "the body" or the name of a file. */
export class JsonError extends Error {}

export function parseObject(bytes: Uint8Array): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseJson(bytes);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw refuse(error.message);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw refuse("must be a JSON object");
  return value as Record<string, unknown>;
}

/** Throws a JsonError. */
export function parseJson(bytes: Uint8Array): unknown {
  const text = decode(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw errorAt(text, findJsonError(text), "is not JSON");
  }
  checkAmbiguity(text);
  return value;
}

function decode(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff))
      throw new JsonError("is UTF-16, not UTF-8");
    // The first byte that is not the same after decoding and encoding.
    const text = Buffer.from(bytes).toString("utf8");
    const back = Buffer.from(text);
    const end = bytes.findIndex((byte, index) => byte !== back[index]);
    const before = back
      .subarray(0, end)
      .toString("utf8")
      .replace(/^\ufeff/, "");
    throw errorAt(before, before.length, "is not UTF-8");
  }
}

function placeOf(text: string, at: number): string {
  const lines = text.slice(0, at).split(/\r\n|\r|\n/);
  return `at line ${lines.length}, column ${[...lines.at(-1)!].length + 1}`;
}

// Finds input that JSON.parse accepts but other readers understand differently or cannot store. The text is valid JSON,
// so it is enough to look at strings and brackets. The stack holds the field names of each open object, and null for
// each open array. Only escapes can bring in what PostgreSQL cannot store, or a second spelling of a name. A coupon's
// code is not stored, and scanners end it with NUL.
function checkAmbiguity(text: string): void {
  const open: (Set<string> | null)[] = [];
  const hasEscapes = text.includes("\\");
  let latestName = "";
  for (let at = 0; at < text.length; at += 1) {
    if (open.length > maxDepth) throw errorAt(text, at, `is nested more than ${maxDepth} levels deep`);
    const character = text.charCodeAt(at);
    if (character === 0x7b) open.push(new Set());
    else if (character === 0x5b) open.push(null);
    else if (character === 0x7d || character === 0x5d) open.pop();
    else if (character === 0x22) {
      const end = endOfString(text, at);
      const value = hasEscapes ? (JSON.parse(text.slice(at, end + 1)) as string) : null;
      const fields = open.at(-1);
      const isName = fields && isFollowedByColon(text, end);
      const isCoupon = !isName && open.length === 1 && latestName === "coupon";
      if (value !== null && !isCoupon && (value.includes("\u0000") || !value.isWellFormed()))
        throw errorAt(text, at, "contains \\u0000 or half of a surrogate pair");
      if (isName) {
        const name = value ?? text.slice(at + 1, end);
        if (name === "__proto__") throw errorAt(text, at, "has a key __proto__");
        if (fields.has(name)) throw errorAt(text, at, "has a duplicate key");
        fields.add(name);
        latestName = name;
      }
      at = end;
    }
  }
}

function errorAt(text: string, at: number, what: string): JsonError {
  return new JsonError(`${what} ${placeOf(text, at)}`);
}

function endOfString(text: string, start: number): number {
  let end = start + 1;
  while (text.charCodeAt(end) !== 0x22) end += text.charCodeAt(end) === 0x5c ? 2 : 1;
  return end;
}

function isFollowedByColon(text: string, end: number): boolean {
  let at = end + 1;
  while (text.charCodeAt(at) <= 0x20) at += 1;
  return text.charCodeAt(at) === 0x3a;
}

function refuse(what: string) {
  return invalid([{ path: "(body)", message: `the body ${what}` }]);
}
