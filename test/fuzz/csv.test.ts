// Generated free texts in a detail file: they are read back unchanged, and no spreadsheet runs them.
import fc from "fast-check";
import t from "tap";
import { columns, renderFile, type Line } from "../../src/common/statement-csv.ts";
import { readCsv } from "../support/csv.ts";

const uuid = "01890a5d-ac96-774b-bcce-b302099a8057";
const sign = fc.constantFrom("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20");
const gap = fc.string({
  unit: fc.constantFrom(" ", "\t", "\r", "\n", "\u00a0", "\u200b", "\ufeff", "\u0001", "\u2028", "\u00ad", "\u202e"),
  maxLength: 3,
});
// Requests with \u0000 or lone surrogates are refused before.
const anything = fc.string({ unit: "binary", maxLength: 64 }).map((text) => text.replaceAll("\u0000", ""));
const text = fc.oneof(
  anything,
  fc.string({ unit: fc.constantFrom(..."\",;'\r\n\t =+-@|0a"), maxLength: 12 }),
  fc.tuple(gap, sign, anything).map((parts) => parts.join("")),
  fc.constantFrom("=cmd|' /C calc'!A0", '"=1+1', "a\r\n=1", "',=1", "-2+3", "'=1", "@SUM(A1)"),
);
const places = fc.record({ store: text, terminal: text, order_id: text }, { requiredKeys: [] });

const isFormula = (value: string) =>
  /^[\s\p{C}]*[=+\-@\uff1d\uff0b\uff0d\uff20]/u.test(value) || /^[\t\r\n]/.test(value);

// A value for each column that is not a free text.
function valueOf(name: string): string | null {
  if (/^(entry|redemption|coupon)_id$/.test(name)) return uuid;
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

t.test(
  "Any store, terminal and order_id is read back by RFC 4180 unchanged, with a ' in front of a formula",
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(places, { minLength: 1, maxLength: 5 }), async (all) => {
        const lines = all.map((given, index) => ({
          number: index + 1,
          fields: columns.detail.map((name) =>
            ["store", "terminal", "order_id"].includes(name)
              ? (given[name as keyof typeof given] ?? null)
              : valueOf(name),
          ),
        }));
        const file = await render(lines);
        const read = readCsv(file);
        if (read.length !== all.length)
          throw new Error(`${read.length} lines of ${all.length}: ${JSON.stringify(file)}`);
        for (const [index, given] of all.entries()) {
          for (const name of ["store", "terminal", "order_id"] as const) {
            const sent = given[name] ?? "";
            const back = read[index]![name]!;
            if (back !== (isFormula(sent) ? `'${sent}` : sent) || isFormula(back))
              throw new Error(`${name} ${JSON.stringify(sent)} came back as ${JSON.stringify(back)}`);
          }
          if (read[index]!["discount_amount"] !== "-5.00") throw new Error("an amount was escaped like a text");
          if (read[index]!["recorded_at"] !== "2026-01-01T00:00:00.123Z")
            throw new Error("a time is not truncated to milliseconds");
        }
      }),
      { numRuns: 1_000 },
    );
  },
);
