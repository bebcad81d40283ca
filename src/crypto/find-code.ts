// Finds coupon codes in other text. A code may be sent in the field `coupon` only, because other texts are stored and
// logged. The tag shows whether 16 characters are a code of this service, so this needs no database.
//
// Chance alone gives 16 other characters the right tag once in 2^20, if they begin with a known key version.
import { checkCode, fillers, isAscii } from "./coupon-code.ts";
import type { MasterKeys } from "./keys.ts";

export type FindsCode = (text: string) => boolean;

const codeLength = 16;
// Each candidate costs an HMAC, about 1.5 µs. A usual request has a few candidates, and a body of 64 KiB of English
// text about 4,500.
const defaultMostCandidates = 8_000;

const tags = /[\u{e0020}-\u{e007e}]/gu;
const marks = /\p{M}/gu;
const separators = /[^\p{L}\p{N}]/gu;
const runEnd = "\n";

/**
 * Returns a function that tells whether a text contains a code, in any spelling and among other words. It counts the
 * candidates of all texts it gets. After `mostCandidates`, it takes each candidate for a code, so that no request can
 * keep the process busy.
 */
export function createCodeFinder(keys: MasterKeys, mostCandidates = defaultMostCandidates): FindsCode {
  let candidates = 0;

  return (text) => {
    if (text.length < codeLength && isAscii.test(text)) return false;
    const read = readAll(text);
    let runLength = 0;
    for (let index = 0; index < read.length; index += 1) {
      // equivalent mutant (literal 0): it adds only windows that begin with the end of a run, which is no key version
      runLength = read[index] === runEnd ? 0 : runLength + 1;
      const start = index + 1 - codeLength;
      if (runLength < codeLength || !keys.versions.has(read[start]!)) continue;
      candidates += 1;
      if (candidates > mostCandidates || checkCode(keys, read.slice(start, index + 1))) return true;
    }
    return false;
  };
}

export function containsCode(keys: MasterKeys, text: string): boolean {
  return createCodeFinder(keys)(text);
}

// Reads a text more generously than the field `coupon` is read. All characters other than letters and digits are left
// out, because any of them may separate the groups of a code. A letter that no code has ends the run.
function readAll(text: string): string {
  const plain = isAscii.test(text) ? text : toAscii(text);
  let read = "";
  for (let index = 0; index < plain.length; index += 1) read += readAs[plain.charCodeAt(index)] ?? runEnd;
  return read;
}

// Full-width and accented letters become ASCII, and so do tags, the invisible letters of flags. Accents that are
// separate characters are removed first, because sorting thousands of them would take a second.
function toAscii(text: string): string {
  const read = text.replace(tags, (tag) => String.fromCodePoint(tag.codePointAt(0)! - 0xe0000));
  return read.replace(fillers, "").replace(marks, "").normalize("NFKD").replace(separators, "");
}

// Index: ASCII code.
const readAs = Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code).toUpperCase();
  if (!/[0-9A-Z]/.test(character)) return "";
  if (character === "O") return "0";
  if (character === "I" || character === "L") return "1";
  return character === "U" ? runEnd : character;
});
