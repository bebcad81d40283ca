// How commands print rows. Rows may quote a receiver, and a terminal might execute what it says.
import t from "tap";
import { formatRows } from "../../src/commands/table.ts";
import { fits } from "../support/fits.ts";

const at = new Date("2026-01-31T12:00:00.500Z");
const rows = [
  { name: "one", at, count: 1, error: null },
  { name: "two\n\u001b[31m\u009b2J\u{e0001}", at: null, count: -12, error: "é ✓" },
];

t.test("a table replaces control characters", async (t) => {
  t.equal(
    formatRows(rows, { json: false }),
    `name           at                        count  error
one            2026-01-31T12:00:00.500Z  1      -
two??[31m?2J?  -                         -12    é ✓`,
  );
  t.equal(formatRows([], { json: false }), "none");
});

t.test("JSON escapes control characters and loses nothing", async (t) => {
  const text = formatRows(rows, { json: true });
  t.strictSame(JSON.parse(text), [
    { name: "one", at: "2026-01-31T12:00:00.500Z", count: 1, error: null },
    { name: "two\n\u001b[31m\u009b2J\u{e0001}", at: null, count: -12, error: "é ✓" },
  ]);
  t.notMatch(text.replaceAll("\n", ""), /\p{C}/u);
  fits(t, text, '"two\\n\\u001b[31m\\u009b2J\\udb40\\udc01"');
  t.equal(formatRows([], { json: true }), "[]");
});
