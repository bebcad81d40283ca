// Generated texts: codes as people type them, and free texts in a statement.
import fc from "fast-check";
import t from "tap";
import { crockfordAlphabet } from "../../src/formats/crockford.ts";
import { columns, renderFile, type Line } from "../../src/formats/statement-csv.ts";
import { checkCode, normalizeCode } from "../../src/crypto/coupon-code.ts";
import { containsCode } from "../../src/crypto/find-code.ts";
import { readCsv } from "../support/csv.ts";
import { keys } from "../support/stub.ts";

const anything = fc.string({ unit: "binary", maxLength: 80 });

t.test("Any text is read as a code of 16 characters or as no code, without an error", async () => {
  const odd = ["\u00a0", "\uff10", "\u0130", "\u017f", "\u212a"];
  const typed = fc.constantFrom(...crockfordAlphabet, ..."oOiIlLuU- ", ...odd);
  const text = fc.oneof(anything, fc.string({ unit: typed, minLength: 14, maxLength: 20 }));
  fc.assert(
    fc.property(text, (given) => {
      const code = normalizeCode(given);
      if (code === null) return true;
      checkCode(keys, code);
      // Only the documented characters are skipped or replaced.
      const plain = given
        .replace(/[\uff01-\uff5e]/g, (sign) => String.fromCharCode(sign.charCodeAt(0) - 0xfee0))
        .replace(/[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Dash}\u30fc\uff70\u2800]/gu, "")
        .replace(/[a-z]/g, (letter) => letter.toUpperCase())
        .replace(/O/g, "0")
        .replace(/[IL]/g, "1");
      const isCode = code.length === 16 && [...code].every((character) => crockfordAlphabet.includes(character));
      // Whatever the field coupon reads as a code is one in other texts too.
      const isFound = !checkCode(keys, code) || containsCode(keys, given);
      return isCode && plain === code && normalizeCode(code) === code && isFound;
    }),
    { numRuns: 1_500 },
  );
});

const freeTexts = ["store", "terminal", "order_id"];
// Requests with \u0000 or lone surrogates are refused before.
const stored = anything.map((text) => text.replaceAll("\u0000", ""));
const sign = fc.constantFrom(..."=+-@\uff1d\uff0b\uff0d\uff20");
const gap = fc.string({ unit: fc.constantFrom(..." \t\r\n\u00a0\u200b\ufeff\u0001\u2028\u00ad\u202e"), maxLength: 3 });
const cell = fc.oneof(
  stored,
  fc.string({ unit: fc.constantFrom(..."\",;'\r\n\t =+-@|0a"), maxLength: 12 }),
  fc.tuple(gap, sign, stored).map((parts) => parts.join("")),
  fc.constantFrom("=cmd|' /C calc'!A0", '"=1+1', "a\r\n=1", "',=1", "-2+3", "'=1", "@SUM(A1)"),
);
const isFormula = (value: string) =>
  /^[\s\p{C}]*[=+\-@\uff1d\uff0b\uff0d\uff20]/u.test(value) || /^[\t\r\n]/.test(value);

// A value for each column that is not a free text.
function valueOf(name: string): string | null {
  if (/^(entry|redemption|coupon)_id$/.test(name)) return "01890a5d-ac96-774b-bcce-b302099a8057";
  if (name === "discount_amount") return "-5.00";
  if (name === "reversal_id") return null;
  return name.endsWith("_at") ? "1767225600123999" : "x";
}

async function render(lines: Line[]): Promise<string> {
  const pieces = await Array.fromAsync(
    renderFile("detail", async (after, limit) => lines.filter(({ number }) => number > after).slice(0, limit)),
  );
  return Buffer.concat(pieces.map(({ bytes }) => bytes)).toString("utf8");
}

t.test("Any free text of a statement is read back by RFC 4180, with a ' in front of a formula", async () => {
  const texts = fc.dictionary(fc.constantFrom(...freeTexts), cell);
  await fc.assert(
    fc.asyncProperty(fc.array(texts, { minLength: 1, maxLength: 5 }), async (all) => {
      const lines = all.map((given, index) => ({
        number: index + 1,
        fields: columns.detail.map((name) => (freeTexts.includes(name) ? (given[name] ?? null) : valueOf(name))),
      }));
      const read = readCsv(await render(lines));
      return (
        read.length === all.length &&
        read.every(
          (line, index) =>
            line["discount_amount"] === "-5.00" &&
            // Truncated to milliseconds.
            line["recorded_at"] === "2026-01-01T00:00:00.123Z" &&
            freeTexts.every((name) => {
              const sent = all[index]![name] ?? "";
              return line[name] === (isFormula(sent) ? `'${sent}` : sent) && !isFormula(line[name]!);
            }),
        )
      );
    }),
    { numRuns: 500 },
  );
});
