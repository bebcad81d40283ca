// The free texts of a detail.csv, generated: they come back as they were sent, and run nowhere.
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
// \u0000 and half surrogates never get as far.
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

async function render(lines: Line[]): Promise<string> {
  const pieces = await Array.fromAsync(
    renderFile("detail", async (after, limit) => lines.filter(({ number }) => number > after).slice(0, limit)),
  );
  return Buffer.concat(pieces.map(({ bytes }) => bytes)).toString("utf8");
}

t.test(
  "whatever stands in store, terminal and order_id comes back from RFC 4180 as it was, a formula behind an apostrophe",
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(places, { minLength: 1, maxLength: 5 }), async (all) => {
        const other = (name: string) =>
          /^(entry|redemption|coupon)_id$/.test(name)
            ? uuid
            : name === "discount_amount"
              ? "-5.00"
              : name === "reversal_id"
                ? null
                : name.endsWith("_at")
                  ? "1767225600123999"
                  : "x";
        const lines = all.map((given, index) => ({
          number: index + 1,
          fields: columns.detail.map((name) =>
            ["store", "terminal", "order_id"].includes(name)
              ? (given[name as keyof typeof given] ?? null)
              : other(name),
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
          if (read[index]!["discount_amount"] !== "-5.00") throw new Error("an amount was taken for a text");
          if (read[index]!["recorded_at"] !== "2026-01-01T00:00:00.123Z")
            throw new Error("a time is not cut to milliseconds");
        }
      }),
      { numRuns: 1_000 },
    );
  },
);
