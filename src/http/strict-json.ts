// Parses the JSON of a request body more strictly than JSON.parse. Refuses invalid UTF-8, duplicate keys (readers
// disagree about which one counts), the key __proto__ (zod drops it, so different bodies would count as equal), deep
// nesting, and characters that PostgreSQL cannot store.
import { invalid } from "./problem.ts";

// Bounds the depth of recursion in functions that visit a value.
const maxDepth = 32;
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function parseObject(bytes: Uint8Array): Record<string, unknown> {
  const value = parse(bytes);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw refuse("must be a JSON object");
  return value as Record<string, unknown>;
}

function parse(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    throw refuse("is not UTF-8");
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message quotes the text around the error, which may contain a code.
    throw refuse("is not JSON");
  }
  const wrong = findAmbiguity(text);
  if (wrong !== null) throw refuse(wrong);
  return value;
}

// Finds input that JSON.parse accepts but other readers understand differently or cannot store. The text is valid JSON,
// so it is enough to look at strings and brackets. The stack holds the field names of each open object, and null for
// each open array. Only escapes can bring in what PostgreSQL cannot store, or a second spelling of a name.
export function findAmbiguity(text: string): string | null {
  const open: (Set<string> | null)[] = [];
  const hasEscapes = text.includes("\\");
  for (let at = 0; at < text.length; at += 1) {
    if (open.length > maxDepth) return `is nested more than ${maxDepth} levels deep`;
    const character = text.charCodeAt(at);
    if (character === 0x7b) open.push(new Set());
    else if (character === 0x5b) open.push(null);
    else if (character === 0x7d || character === 0x5d) open.pop();
    else if (character === 0x22) {
      const end = endOfString(text, at);
      const value = hasEscapes ? (JSON.parse(text.slice(at, end + 1)) as string) : null;
      if (value !== null && (value.includes("\u0000") || !value.isWellFormed()))
        return "contains \\u0000 or half of a surrogate pair";
      const fields = open.at(-1);
      if (fields && isFollowedByColon(text, end)) {
        const name = value ?? text.slice(at + 1, end);
        if (name === "__proto__") return "has a key __proto__";
        if (fields.has(name)) return "has a duplicate key";
        fields.add(name);
      }
      at = end;
    }
  }
  return null;
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
